# SPDX-License-Identifier: MIT
"""q<k> is only ever called by q<k-1>: by a plain call, through C, inside a generator, inside try; on several threads."""
import functools
import sys
import threading
import time

LEVELS = 40
source = ["def q0(n):\n    return q1(n)\n"]
for k in range(1, LEVELS):
    call = [f"return q{k + 1}(n)",
            f"return functools.partial(q{k + 1}, n)()",
            f"return next(map(q{k + 1}, (n,)))",
            f"try:\n        return q{k + 1}(n)\n    finally:\n        n += 1"][k % 4]
    if k % 5 == 4:
        source.append(f"def q{k}(n):\n    return next(g{k}(n))\ndef g{k}(n):\n    yield q{k + 1}(n)\n")
    else:
        source.append(f"def q{k}(n):\n    {call}\n")
source.append(f"def q{LEVELS}(n):\n    for i in range(n):\n        leaf(i)\n    return n\ndef leaf(i):\n    return i + 1\n")
exec(compile("\n".join(source), "ladder", "exec"))


def work(end):
    n = 0
    while time.time() < end:
        n = (n + 1) % 20
        q0(n)


end = time.time() + float(sys.argv[1])
threads = [threading.Thread(target=work, args=(end,)) for _ in range(2)]
for thread in threads:
    thread.start()
while time.time() < end:
    short = threading.Thread(target=q0, args=(5,))
    short.start()
    short.join()
for thread in threads:
    thread.join()
