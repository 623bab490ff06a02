# SPDX-License-Identifier: MIT
"""A client of FastCGI servers. Source: FastCGI Specification 1.0, sections 3.3 and 5."""
import os
import socket
import struct

BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6


def record(kind, content):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def pair(name, value):
    """Lengths of up to 127 bytes take one byte, others four."""
    lengths = b"".join(struct.pack(">B", len(text)) if len(text) < 128 else struct.pack(">I", len(text) | 1 << 31) for text in (name, value))
    return lengths + name + value


def ask(path, script, body=b"", limit=120, **variables):
    """What the server at the socket `path` answers to a GET of a script, its headers included."""
    variables = {"SCRIPT_FILENAME": script, "SCRIPT_NAME": "/" + os.path.basename(script), "REQUEST_METHOD": "GET",
                 "CONTENT_LENGTH": str(len(body)), **variables}
    pairs = b"".join(pair(name.encode(), value.encode()) for name, value in variables.items())
    content = record(STDIN, body) if body else b""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(limit)
        link.connect(path)
        link.sendall(record(BEGIN, struct.pack(">HB5x", 1, 0)) + record(PARAMS, pairs) + record(PARAMS, b"") + content + record(STDIN, b""))
        stream, answer = link.makefile("rb"), b""
        while len(head := stream.read(8)) == 8:
            _, kind, _, length, padding, _ = struct.unpack(">BBHHBB", head)
            content = stream.read(length + padding)[:length]
            answer += content if kind == STDOUT else b""
            if kind == END:
                break
    return answer
