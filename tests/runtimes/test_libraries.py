# SPDX-License-Identifier: MIT
"""What single libraries do, or programs with them; the rest is in test_shares.py."""
from shares import check
import shares

ROUNDS = 200


class Pth(shares.Shares):
    def test_scheduler(self):
        """It is a coroutine as well, with a name that Pth gives it."""
        run = self.profile(self.prepare(["pth", 0.2, 50]), status=shares.STATUS)
        names = {coro.name for coro in run.capture().coros.values()}
        self.assertTrue(any("SCHEDULER" in name for name in names), names)


class Plugin(shares.Shares):
    def test_library_of_a_plugin(self):
        """Only the plugin needs Boost.Context, and only it sees it: RTLD_NEXT, of which hooks ask, does not lead there."""
        plugin = check.program("boost_plugin.so")
        bottoms = (r"void boost::context::detail::fiber_entry<", r"__cxa_throw$")
        self.check_shares(["in_plugin", plugin, 1.0, ROUNDS], bottoms, switches=(ROUNDS, ROUNDS + 3))


class Fiber(shares.Shares):
    def test_dispatcher(self):
        """A coroutine of Boost's own has a name of Boost's, not of what it waits in."""
        run = self.profile(self.prepare(["boost_dispatcher", 0.2, 10]), status=shares.STATUS, options=("--clock", "wall"))
        names = {root.strip("[]").partition(" ")[2].partition(" ")[2] for root in run.folded("--by", "coroutine").roots()}
        self.assertTrue(any(name.startswith("boost::fibers::") for name in names), names)
        self.assertTrue(any(name.startswith("run_worker") for name in names), names)
        self.assertFalse([name for name in names if "pthread" in name or "@plt" in name or "clock_" in name], names)


if __name__ == "__main__":
    check.main()
