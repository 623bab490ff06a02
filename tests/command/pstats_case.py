# SPDX-License-Identifier: MIT
"""A capture with what pstats prints specially: recursion, equal times, functions of equal names in several places."""
import random


def script(seed=1, stacks=60):
    """A capture: its exported .prof and its own tables must read the same."""
    chance = random.Random(seed)
    lines = ["meta exe /opt/app/server", "module 1 /opt/app/server 0102 0x1000 0x9000 0x0", "module 2 /usr/lib/app/server - 0x10000 0x19000 0x0",
             "module 3 /usr/lib/na\u00efve.so - 0x20000 0x29000 0x0", "thread 1 10 1 0 main", "coro 1 0 - 0x1000 0x1000 1 1 -",
             "coro 2 1 1:40 0x3000 0x1000 2 0 -", "coro 3 1 - 0x5000 0x1000 2 0 worker", "trace 1 4bf92f3577b34da6a3ce929d0e0e4736"]
    total = 0
    for number in range(1, stacks + 1):
        depth = chance.randint(1, 7)
        frames = [f"{chance.randint(1, 3)}:{chance.choice((16, 32, 48, 64)):x}" for _ in range(depth)]
        lines.append(f"stack {number} 0 " + " ".join((["switching"] if chance.random() < .1 else []) + frames))
        for _ in range(chance.randint(1, 4)):
            weight = chance.choice((250000, 1000000, 1234567))
            total += weight
            lines.append(f"sample {total} {weight} {chance.randint(1, 3)} 1 {number} {chance.randint(0, 1)}")
    lines.append(f"counters {total} {total + 4321} 1000 9 9 0 0 0 0 0")
    lines.append(f"end {total} 0")
    return "\n".join(lines)
