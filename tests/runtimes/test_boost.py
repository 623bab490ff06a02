"""Boost.Context from Debian, and what is built on it."""
from shares import check
import shares

# At its end a coroutine may throw: the last call of its entry function, which the walker takes for a forged bottom.
ENTRY = [r"void boost::context::detail::fiber_entry<", r"__cxa_throw$"]
ROUNDS = 200
ONE_EACH = (ROUNDS, ROUNDS + 3)  # and to start, to end, to unwind


class Boost(shares.Shares):
    def test_context(self):
        self.check_shares(["boost_context", 1.5, ROUNDS], ENTRY, switches=ONE_EACH)

    def test_context_at_a_high_rate(self):
        self.check_shares(["boost_context", 1.0, ROUNDS], ENTRY, hz=10000, switches=ONE_EACH)
        self.check_shares(["boost_context", 0.7, 20000], ENTRY, hz=10000, switches=(20000, 20003), in_step=True)

    def test_coroutine2(self):
        self.check_shares(["boost_coroutine2", 1.5, ROUNDS], ENTRY, switches=ONE_EACH)

    def test_fiber(self):
        """The dispatcher is a coroutine as well."""
        bottoms = ENTRY + [r"libboost_fiber\.so"]
        self.check_shares(["boost_fiber", 1.5, ROUNDS], bottoms, extra=(1,), switches=ONE_EACH)
        self.check_shares(["boost_fiber", 0.7, 5000], bottoms, extra=(1,), hz=10000, in_step=True)

    def test_asio_spawn(self):
        # The entry function jumps into run().
        bottoms = [r"void boost::coroutines::detail::trampoline_push_void<", r"boost::coroutines::detail::push_coroutine_object<"]
        self.check_shares(["boost_asio", 1.5, ROUNDS], bottoms, switches=ONE_EACH)


if __name__ == "__main__":
    check.main()
