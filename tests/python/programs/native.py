"""Python calls C calls Python: sorted() with a key function, in the thread and in a greenlet that is resumed from elsewhere."""
import time
import zlib

import greenlet


def key(x):
    s = 0
    for i in range(40):
        s += i * x
    return s


def sorts():
    sorted(range(300), key=key)


def packs():
    zlib.compress(bytes(range(256)) * 40, 6)


def body():
    while True:
        sorts()
        packs()
        greenlet.getcurrent().parent.switch()


def elsewhere(g, depth):
    if depth:
        elsewhere(g, depth - 1)
    else:
        g.switch()


g = greenlet.greenlet(body)
end = time.process_time() + 1.5
n = 0
while time.process_time() < end:
    n += 1
    elsewhere(g, n % 7)
    sorts()
