# SPDX-License-Identifier: MIT
"""An unmodified program that does its work on coroutines: qemu-img encrypts an image."""
import os
import shutil
import subprocess

import check
import measured

SECRET = ["--object", "secret,id=s0,data=abc123"]


class QemuImg(check.Case):
    def setUp(self):
        super().setUp()
        check.need(shutil.which("qemu-img"), "qemu-img is not installed (Debian: qemu-utils)")

    def run_alone(self, *arguments):
        done = subprocess.run(["qemu-img", *arguments], cwd=self.directory, capture_output=True,
                              timeout=check.LIMIT_SECONDS)
        return measured.check_status(done)

    def insist(self, convert):
        """convert(); again where qemu-img saw its own clock stand still, which it does with and without greenprof."""
        for _ in range(4):
            try:
                return convert()
            except AssertionError as error:
                if "Unable to get accurate CPU usage" not in str(error):
                    raise
        return convert()

    def test_luks(self):
        with open(os.path.join(self.directory, "source.raw"), "wb") as file:
            file.write(os.urandom(64 << 20))
        convert = ["convert", *SECRET, "-f", "raw", "-O", "qcow2", "-o",
                   "encrypt.format=luks,encrypt.key-secret=s0,encrypt.iter-time=500", "source.raw"]
        alone = self.insist(lambda: self.run_alone(*convert, "alone.qcow2"))
        run = self.insist(lambda: self.profile([shutil.which("qemu-img"), *convert, "out.qcow2"]))
        self.assertEqual((run.stdout, run.stderr), (alone.stdout.decode(), alone.stderr.decode()))
        encrypted = "encrypt.key-secret=s0,driver=qcow2,file.filename="
        self.run_alone("check", *SECRET, "--image-opts", encrypted + "out.qcow2")
        self.run_alone("compare", *SECRET, "--image-opts", encrypted + "out.qcow2",
                       "driver=raw,file.filename=source.raw")
        self.run_alone("compare", *SECRET, "--image-opts", encrypted + "out.qcow2", encrypted + "alone.qcow2")
        folded = run.folded("--by", "coroutine")
        # Its key derivation and its thread pool are threads that block every signal.
        threads = [(stack, seconds) for stack, seconds in folded.stacks if stack[0].startswith("[thread")]
        main = sum(seconds for stack, seconds in threads if "__libc_start_main" in stack)
        workers = sum(seconds for _, seconds in threads) - main
        coroutines = folded.total - main - workers
        capture = run.capture()
        print(f"incomplete walks: {capture.counters['incomplete']} of {len(capture.samples)}")
        self.at_least("coroutines' share", coroutines / (main + coroutines), 0.9)
        self.at_least("threads that block every signal", workers, 0.1)
        self.at_most("not sampled", capture.counters["unsampled_ns"] / 1e9, 0.05)
        self.check_weights(capture)

    def test_many_switches(self):
        bench = ["bench", "-c", "500000", "-d", "16", "-s", "512", "--image-opts", "driver=null-co,size=1073741824"]
        run = self.profile([shutil.which("qemu-img"), *bench])
        folded = run.folded("--by", "coroutine")
        self.near("total", folded.total, run.capture().process_cpu_ns / 1e9, 0.005)
        self.assertTrue(any(root.startswith("[coroutine") for root in folded.roots()))
        # Each request enters a coroutine and leaves it; 500,000 and a few for the start.
        rows = run.ledger()
        entered = sum(row[3] for row in rows if not row[6].startswith("[thread"))
        left = sum(row[3] for row in rows if row[6].startswith("[thread"))
        print("switches to coroutines:", entered, "back:", left)
        self.assertTrue(500000 <= entered <= 500200, entered)
        self.assertLess(abs(entered - left), 200)


if __name__ == "__main__":
    check.main()
