# SPDX-License-Identifier: MIT
"""--stitch: above a green thread's or task's own stack stands that of its creator."""
import re
import unittest

import support
import measured

support.require_package()
support.require("eventlet", "gevent")
COUNT = 25


class Spawners(measured.Case):
    def check(self, kind):
        run = support.Run("spawners.py", kind, COUNT)
        seen = set()
        for stack, _ in run.folded("--stitch").stacks:
            frames = [frame for frame in stack if re.fullmatch(r"(maker|child|grandchild)_\d+|\[spawned\]", frame)]
            if "burn" not in stack or "[incomplete]" in stack:
                continue
            number = frames[-1].rpartition("_")[2]
            expected = [f"maker_{number}", "[spawned]", f"child_{number}", "[spawned]", f"grandchild_{number}"]
            self.assertEqual(frames[-5:], expected, stack)
            seen.add(number)
        self.at_least("green threads in samples", len(seen), COUNT // 2 + 1)

    def test_eventlet(self):
        self.check("eventlet")

    def test_gevent(self):
        self.check("gevent")

    def test_asyncio(self):
        self.check("asyncio")

    def test_calls_for_other_threads(self):
        self.check("futures")


if __name__ == "__main__":
    unittest.main(verbosity=2)
