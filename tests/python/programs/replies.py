# SPDX-License-Identifier: MIT
"""Green threads, or tasks, that wait for replies of another process while `blocks` keeps the loop from looking for them.
Arguments: eventlet, patched (eventlet with monkey_patch()) or asyncio. Prints for each how long it waited until its reply
was sent, and from then on until it was taken, in seconds; `quick` waits for replies while nothing keeps the loop."""
import os
import socket
import struct
import sys
import time

ROUNDS = 10
ASK_FOR = {"quick": 0.03, "late_one": 0.08}


def answer(peer):
    """Each request is how long to wait, each reply the time at which it was sent."""
    while request := peer.recv(8):
        time.sleep(struct.unpack("d", request)[0])
        peer.sendall(struct.pack("d", time.monotonic()))
    os._exit(0)


def server():
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        answer(theirs)
    theirs.close()
    return ours


peers = {name: server() for name in ASK_FOR}
kind = sys.argv[1]
waited, late = dict.fromkeys(ASK_FOR, 0), dict.fromkeys(ASK_FOR, 0)


def note(name, begin, reply):
    sent = struct.unpack("d", reply)[0]
    waited[name] += sent - begin
    late[name] += time.monotonic() - sent


def blocks():
    end = time.monotonic() + 0.15
    while time.monotonic() < end:
        pass


if kind == "asyncio":
    import asyncio

    async def asks(name):
        peer = peers[name]
        peer.setblocking(False)
        for _ in range(ROUNDS):
            begin = time.monotonic()
            await loop.sock_sendall(peer, struct.pack("d", ASK_FOR[name]))
            if name == "late_one":
                hog = asyncio.create_task(blocks_soon())
            note(name, begin, await loop.sock_recv(peer, 8))
            if name == "late_one":
                await hog

    async def quick():
        await asks("quick")

    async def late_one():
        await asks("late_one")

    async def blocks_soon():
        await asyncio.sleep(0.02)
        blocks()

    async def main():
        global loop
        loop = asyncio.get_running_loop()
        await asyncio.create_task(quick())
        await asyncio.create_task(late_one())

    asyncio.run(main())
else:
    import eventlet
    if kind == "patched":
        eventlet.monkey_patch()
    from eventlet.greenio import GreenSocket

    def asks(name):
        peer = GreenSocket(peers[name])
        for _ in range(ROUNDS):
            begin = time.monotonic()
            peer.sendall(struct.pack("d", ASK_FOR[name]))
            if name == "late_one":
                hog = eventlet.spawn_after(0.02, blocks)
            note(name, begin, peer.recv(8))
            if name == "late_one":
                hog.wait()

    def quick():
        asks("quick")

    def late_one():
        asks("late_one")

    eventlet.spawn(quick).wait()
    eventlet.spawn(late_one).wait()
for name in ASK_FOR:
    print(name, waited[name], late[name])
