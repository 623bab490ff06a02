# SPDX-License-Identifier: MIT
"""Python calls C calls Python: == of objects, in the thread and in a greenlet that is resumed from elsewhere."""
import time
import zlib

import greenlet


def equals(self, other):
    s = 0
    for i in range(40):
        s += i * self.value
    return s == other


class Number:
    __eq__ = equals

    def __init__(self, value):
        self.value = value


NUMBERS = [Number(value) for value in range(300)]


def compares():
    for number in NUMBERS:
        number == 7  # by PyObject_RichCompare(), a name that needs no debug information


def packs():
    zlib.compress(bytes(range(256)) * 40, 6)


def body():
    while True:
        compares()
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
    compares()
