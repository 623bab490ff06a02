# SPDX-License-Identifier: MIT
"""What only GNU Pth does; the rest is in test_shares.py."""
from shares import check
import shares


class Pth(shares.Shares):
    def test_scheduler(self):
        """It is a coroutine as well, with a name that Pth gives it."""
        run = self.profile(self.prepare(["pth", 0.2, 50]), status=shares.STATUS)
        names = {coro.name for coro in run.capture().coros.values()}
        self.assertTrue(any("SCHEDULER" in name for name in names), names)


if __name__ == "__main__":
    check.main()
