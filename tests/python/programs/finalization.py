# SPDX-License-Identifier: MIT
"""Ends while daemon threads compute in C, without the interpreter's lock: their thread states are freed under them."""
import hashlib
import threading
import time


def hash_for_ever():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2000000)


for _ in range(3):
    threading.Thread(target=hash_for_ever, daemon=True).start()
time.sleep(0.2)
cycles = []
for _ in range(100000):  # collected while the interpreter ends
    cycle = []
    cycle.append(cycle)
    cycles.append(cycle)
print("over", flush=True)
