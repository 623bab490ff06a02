# SPDX-License-Identifier: MIT
"""Stacks that no hook announced: a runtime that is linked in without its link-time hook."""
import re
import shutil

from shares import check
import shares

HINT = r"no hook: link with greenprof-wrap-libaco or call prof_coro_create\(\)"
STACK = r"stack@0x[0-9a-f]+-0x[0-9a-f]+"


class Unhooked(shares.Shares):
    def record(self, shape):
        return self.profile(self.prepare(["unhooked", "--shape", shape, 1.0, 200]), status=shares.STATUS)

    def report(self, run, *arguments):
        done = check.greenprof("report", run.output, "--by", "coroutine", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def test_guarded(self):
        """Each stack is a mapping behind a guard page: each worker is its own coroutine, and its times are right."""
        run = self.record("guarded")
        folded = run.folded("--by", "coroutine")
        self.check_functions(folded, run.truth, len(run.capture().samples))
        owners = self.check_owners(folded, [r"entry_"], "work_{}")
        for root in owners.values():
            self.assertRegex(root, rf"^\[coroutine \d+ {STACK}\]$")
        found = [coro for coro in run.capture().coros.values() if coro.kind == 3]
        self.assertIn(len(found), (3, 4))  # the one that only yields may never have been seen
        self.assertEqual({coro.stack_bytes for coro in found}, {65536})
        text = self.report(run)
        self.assertIn(len(re.findall(rf" {STACK} \({HINT}\)\n", text)), (3, len(found)), text)
        info = check.greenprof("info", run.output).stdout.decode()
        self.assertEqual(len(re.findall(rf" {STACK} \({HINT}\)\n", info)), len(found), info)

    def test_heap(self):
        """Stacks out of malloc() are all in one mapping: that they cannot be told apart is said."""
        run = self.record("libaco")
        found = [coro for coro in run.capture().coros.values() if coro.kind == 3]
        self.assertEqual(len(found), 1, found)
        self.assertRegex(self.report(run), rf" {STACK} \({HINT}; this is no mapping of its own: more than one ")
        self.near("heap", run.folded("--by", "coroutine").under("[coroutine").total, sum(run.truth.functions.values()),
                  check.SHARE_TOLERANCE, 0.01)

    def test_without_the_program(self):
        """On another machine, the runtime is not known."""
        path, = self.prepare(["unhooked"])
        copy = shutil.copy(path, self.directory)
        run = self.profile([copy, "--shape", "guarded", 0.3, 20], status=shares.STATUS)
        self.assertRegex(self.report(run), HINT)
        shutil.os.unlink(copy)
        self.assertRegex(self.report(run), rf" {STACK} \(no hook: call prof_coro_create\(\)\)\n")


if __name__ == "__main__":
    check.main()
