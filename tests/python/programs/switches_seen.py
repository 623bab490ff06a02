# SPDX-License-Identifier: MIT
"""How many of greenlet's virtual functions are greenprof's: before, while it samples, after a rest, and once more.

Greenlets switch before greenprof is imported. x86-64.
"""
import ctypes
import time

import greenlet

FUNCTIONS = 20  # in the table of virtual functions; 2.0 has 19, behind which there is a 0


def words(address, count):
    return (ctypes.c_uint64 * count).from_address(address)


def replaced():
    table = words(words(id(target) + 32, 1)[0], 1)[0]
    with open("/proc/self/maps") as file:
        ours = [[int(end, 16) for end in line.split()[0].split("-")] for line in file if "libgreenprof" in line]
    return sum(low <= function < high for function in words(table, FUNCTIONS) for low, high in ours)


def body():
    while True:
        greenlet.getcurrent().parent.switch()


def switch():
    for _ in range(1500):
        target.switch()


def sample():
    with greenprof.Profile(scope="process"):
        switch()
        print("replaced:", replaced())


target = greenlet.greenlet(body)
switch()
import greenprof
print("replaced:", replaced())
sample()
for _ in range(1000):  # sampling ends a moment after the last profile
    switch()
    if replaced() == 0:
        break
    time.sleep(0.01)
print("replaced:", replaced())
sample()
