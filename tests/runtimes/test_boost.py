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


class Churn(shares.Shares):
    def check_churn(self, count, stacks, limit_kib):
        command = self.prepare(["churn", count, stacks])
        alone = check.Truth(self.outcome_text(command))
        run = self.profile(command, status=shares.STATUS)
        capture = run.capture()
        self.assertEqual(run.truth.values["RAN"], [[str(count)]])
        entered = {coro.id: capture.ledger[coro.id][1] for coro in capture.coros.values() if coro.kind == 2}
        print(f"{count} coroutines on {stacks} stacks: {len(entered)} in the capture, "
              f"{sum(entered.values())} switches to them, peak {run.truth.values['PEAK'][0][0]} KiB, "
              f"alone {alone.values['PEAK'][0][0]}")
        self.assertEqual(len(entered), count)
        self.assertEqual(set(entered.values()), {1})  # none has what another did
        self.assertLess(int(run.truth.values["PEAK"][0][0]) - int(alone.values["PEAK"][0][0]), limit_kib)

    def test_pool(self):
        self.check_churn(200000, 64, 64 << 10)

    def test_many_stacks(self):
        self.check_churn(100000, 5000, 64 << 10)


if __name__ == "__main__":
    check.main()
