"""Runtimes that are linked into the program, by link-time hooks: Debian's static Boost, and others' shapes (shape.h)."""
from shares import check
import shares

ROUNDS = 200
SWITCHES = (ROUNDS, ROUNDS + 3)
ENTRY = [r"entry_"]
NAMES = {name: f"entry_{name}" for name in shares.WORKERS}


class Boost(shares.Shares):
    def test_static(self):
        self.check_shares(["boost_static", 1.0, ROUNDS], [r"void boost::context::detail::fiber_entry<"], switches=SWITCHES)

    def test_at_a_high_rate(self):
        self.check_shares(["boost_static", 0.5, 5000], [r"void boost::context::detail::fiber_entry<"], hz=10000,
                          in_step=True)


class Shapes(shares.Shares):
    def check(self, name, names=NAMES, switches=SWITCHES):
        self.check_shares([f"shape_{name}", 1.0, ROUNDS], ENTRY, names=names, switches=switches)

    def test_brpc(self):
        self.check("brpc")

    def test_libaco(self):
        self.check("libaco")

    def test_libco_tencent(self):
        self.check("libco-tencent")

    def test_libco_higan(self):
        self.check("libco-higan")

    def test_minicoro(self):
        self.check("minicoro")

    def test_libdill(self):
        """Named by the place of go(); nothing tells of a switch, so the stack pointer at samples decides."""
        names = {name: rf"shape_use\.c:{100 + i}" for i, name in enumerate(shares.WORKERS)}
        self.check("libdill", names=names, switches=None)


if __name__ == "__main__":
    check.main()
