# SPDX-License-Identifier: MIT
"""Many short coroutines on few stacks, on real runtimes: memory stays bounded, none has what another did, and of those
that a slow disk leaves no room for the capture has the number."""
import os
import re
import subprocess
import time

from shares import check
import shares


BYTES_EACH = 200  # less than anything that would stay of each coroutine


class Churn(shares.Shares):
    def check_churn(self, count, stacks, room_kib, program="churn"):
        """room_kib: what it takes however many there are."""
        command = self.prepare([program, count, stacks])
        alone = check.Truth(self.outcome_text(command))
        run = self.profile(command, status=shares.STATUS)
        capture = run.capture()
        self.assertEqual(run.truth.values["RAN"], [[str(count)]])
        entered = {coro.id: capture.ledger[coro.id][1] for coro in capture.coros.values() if coro.kind == 2}
        print(f"{count} coroutines on {stacks} stacks: {len(entered)} in the capture, "
              f"{sum(entered.values())} switches to them, peak {run.truth.values['PEAK'][0][0]} KiB, "
              f"alone {alone.values['PEAK'][0][0]}")
        lost = capture.counters["unwritten_ledgers"]
        self.at_most("without times, the disk was slow", lost, count // 4)
        self.assertEqual(sum(entered.values()) + lost, count)
        self.assertLessEqual(set(entered.values()), {0, 1})  # none has what another did
        self.assertLessEqual(len(entered), count)
        more = int(run.truth.values["PEAK"][0][0]) - int(alone.values["PEAK"][0][0])
        self.at_most("KiB more than alone", more, room_kib + count * BYTES_EACH / 1024)

    def test_pool(self):
        self.check_churn(100000, 64, 28 << 10)

    def test_many_stacks(self):
        self.check_churn(50000, 5000, 32 << 10)

    def test_pool_of_ucontexts(self):
        self.check_churn(50000, 64, 28 << 10, "churn_ucontext")

    def test_a_slow_disk(self):
        """A pipe that is emptied late: each coroutine is in the capture or counted, and memory stays bounded."""
        count, path, copy = 600000, os.path.join(self.directory, "fifo"), os.path.join(self.directory, "copy.greenprof")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        command = ["sh", "-c", 'GREENPROF_PID=$$ LD_PRELOAD=$0 exec "$@"',
                   os.path.join(check.LIBRARIES, "libgreenprof-core.so"), *self.prepare(["churn_ucontext", count, 64])]
        with subprocess.Popen(command, env={**os.environ, "GREENPROF_OUTPUT": path}, stdout=subprocess.PIPE) as process:
            self.wait_for_cpu(process.pid, 1.4)
            os.set_blocking(reader, True)
            with open(copy, "wb") as file:
                while piece := os.read(reader, 65536):
                    file.write(piece)
            truth = check.Truth(process.stdout.read().decode())
        capture = check.Capture(copy)
        self.assertTrue(capture.whole)
        lost = capture.counters["unwritten_ledgers"]
        self.at_least("without times", lost, 1)
        threads = {thread.coro for thread in capture.threads.values()}
        self.assertEqual(sum(ledger[1] for id, ledger in capture.ledger.items() if id not in threads) + lost, count)
        self.at_most("KiB", int(truth.values["PEAK"][0][0]), 96 << 10)

    def wait_for_cpu(self, pid, seconds):
        """Until a process has used the CPU for so long, or uses it no more."""
        last, since = -1, time.monotonic()
        while last < seconds * os.sysconf("SC_CLK_TCK") and time.monotonic() - since < 1.0:
            with open(f"/proc/{pid}/stat") as file:
                now = int(file.read().rsplit(")", 1)[1].split()[11])
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.01)

    def test_a_million(self):
        """As many as a busy server has in a minute, from one thread, and on no more memory than few have."""
        run = self.profile(self.prepare(["churn", 1000000, 1000]), hz=100, status=shares.STATUS, healthy=False)
        self.assertEqual(run.truth.values["RAN"], [["1000000"]])
        self.at_most("KiB", int(run.truth.values["PEAK"][0][0]), 96 << 10)
        text = check.greenprof("info", run.output).stdout.decode()
        found, lost = (int(("0", *re.findall(rf"([0-9]+) {what}", text))[-1]) for what in
                       ("coroutines,", "coroutines' times, up to their end or a change of trace, not in the capture"))
        self.at_most("without times, the disk was slow", lost, 250000)
        self.assertGreaterEqual(found + lost, 1000000)
        self.assertLessEqual(found, 1000000)
        self.assertNotIn("dropped, the collector could not keep up", text)


if __name__ == "__main__":
    check.main()
