# SPDX-License-Identifier: MIT
"""Many short coroutines on few stacks, on real runtimes: memory stays bounded, and none has what another did."""
from shares import check
import shares


class Churn(shares.Shares):
    def check_churn(self, count, stacks, limit_kib, program="churn"):
        command = self.prepare([program, count, stacks])
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
        self.at_most("KiB more than alone", int(run.truth.values["PEAK"][0][0]) - int(alone.values["PEAK"][0][0]), limit_kib)

    def test_pool(self):
        self.check_churn(200000, 64, 64 << 10)

    def test_many_stacks(self):
        self.check_churn(100000, 5000, 64 << 10)

    def test_pool_of_ucontexts(self):
        self.check_churn(100000, 64, 64 << 10, "churn_ucontext")

    def test_a_million(self):
        """As many as a busy server has in a minute, from one thread, and on no more memory than few have."""
        run = self.profile(self.prepare(["churn", 1000000, 1000]), hz=100, status=shares.STATUS, healthy=False)
        self.assertEqual(run.truth.values["RAN"], [["1000000"]])
        self.at_most("KiB", int(run.truth.values["PEAK"][0][0]), 96 << 10)
        text = check.greenprof("info", run.output).stdout.decode()
        self.assertIn(" 1000000 coroutines,", text)
        self.assertNotIn("dropped, the collector could not keep up", text)


if __name__ == "__main__":
    check.main()
