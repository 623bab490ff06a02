# SPDX-License-Identifier: MIT
"""What the commands and a process say to each other, packet by packet: src/live/control_protocol.h in Python."""
import hashlib
import hmac
import os
import socket
import struct

from support import Case

MAGIC, VERSION = 0x43475052, 7
STATUS, START, STOP, DUMP, TOP, DETACH, HELLO = range(7)
PATH_SIZE, SPANS_SIZE, MAC_BYTES, NONCE_BYTES = 3024, 512, 32, 32


def request(command=STATUS, magic=MAGIC, version=VERSION, frequency=0, clock=-1, budget=0, flush=0, lease=0, path=b"", spans=b"", mac=b""):
    return struct.pack(f"<IIIIiIII{PATH_SIZE}s{SPANS_SIZE}s12x{MAC_BYTES}s", magic, version, command, frequency, clock, budget, flush, lease, path,
                       spans, mac)


def sign(key, nonce, packet):
    """A request with its code."""
    text = packet[:-MAC_BYTES]
    return text + hmac.new(key, b"greenprof control request\0" + nonce + text, hashlib.sha256).digest()


def error_of(reply):
    """None: there was no reply."""
    return struct.unpack_from("<i", reply, 8)[0] if reply else None


class Asking(Case):
    def connect(self, service):
        name, = self.socket_of(service.pid)
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(one.close)
        one.settimeout(100)
        one.connect(os.path.join(self.place, name))
        return one

    @staticmethod
    def exchange(one, packet, *descriptors):
        """The reply, b"" if there is none."""
        try:
            socket.send_fds(one, [packet], descriptors) if descriptors else one.send(packet)
            return one.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            return b""

    def answer(self, service, packet, *descriptors):
        """The error in the reply to the first packet; None: there was no reply."""
        one = self.connect(service)
        reply = self.exchange(one, packet, *descriptors)
        one.close()
        return error_of(reply)
