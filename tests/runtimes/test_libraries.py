"""C libraries with coroutines of their own, as Debian has them: GNU Pth, PCL, State Threads."""
from shares import check
import shares

ROUNDS = 200
SWITCH = r"swapcontext$"  # a few of its instructions have no caller: the stack pointer is already the next one's


PCL = [r"libpcl\.so", r"entry_", r"co_exit", SWITCH]  # co_exit_to() is the last that its runner calls


class Pth(shares.Shares):
    def check(self, *arguments, **options):
        """Its scheduler is a coroutine as well, with a name that Pth gives it."""
        # Pth's own trampoline calls the entry function.
        run = self.check_shares(["pth", *arguments], [r"libpth\.so", r"run$", SWITCH], extra=(1,),
                                names={name: f"the {name} one" for name in shares.WORKERS}, **options)
        names = {coro.name for coro in run.capture().coros.values()}
        self.assertTrue(any("SCHEDULER" in name for name in names), names)

    def test_shares(self):
        self.check(1.5, ROUNDS, switches=(ROUNDS, ROUNDS + 3))

    def test_at_a_high_rate(self):
        self.check(0.7, 5000, hz=10000, in_step=True)


class Pcl(shares.Shares):
    def test_shares(self):
        self.check_shares(["pcl", 1.5, ROUNDS], PCL, extra=(1,), switches=(ROUNDS, ROUNDS + 3),
                          names={name: f"entry_{name}" for name in shares.WORKERS})

    def test_at_a_high_rate(self):
        self.check_shares(["pcl", 0.7, 5000], PCL, extra=(1,), hz=10000, in_step=True)


class StateThreads(shares.Shares):
    def test_shares(self):
        """It has an idle thread, which is entered when nothing else can run."""
        self.check_shares(["st", 1.5, ROUNDS], [r"entry_", r"libst\.so"], extra=(0, 1), switches=(ROUNDS, ROUNDS + 3),
                          names={name: f"entry_{name}" for name in shares.WORKERS})

    def test_at_a_high_rate(self):
        self.check_shares(["st", 0.7, 5000], [r"entry_", r"libst\.so"], extra=(0, 1), hz=10000, in_step=True)


if __name__ == "__main__":
    check.main()
