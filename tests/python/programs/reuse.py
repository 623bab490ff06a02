# SPDX-License-Identifier: MIT
"""Code objects that live for moments, at addresses that come again: child_<k> is only ever called by parent_<k>."""
import gc
import sys
import time

TEMPLATE = """
def parent_{k}():
    return child_{k}({n})
def child_{k}(n):
    s = 0
    for i in range(n):
        s += i
    return s
parent_{k}()
"""
end = time.process_time() + float(sys.argv[1])
rounds = 0
while time.process_time() < end:
    k = rounds % 97
    exec(compile(TEMPLATE.format(k=k, n=300 + k), f"file_{k}", "exec"), {})
    rounds += 1
    if rounds % 200 == 0:
        gc.collect()
print(rounds)
