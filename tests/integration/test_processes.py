# SPDX-License-Identifier: MIT
"""fork, exec and what comes of it: each process has its own capture, with its own work and nothing else's."""
import os
import shutil
import signal
import subprocess
import time

import check


def works(folded):
    return {name for name in folded.inclusive() if name.startswith("work_")}


WAYS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words)
{
    int way = atoi(words[1]), status;
    char path[4096], line[4200], *name = words[2], *next[] = {name, NULL};
    pid_t pid = 0;
    FILE *pipe;
    snprintf(path, sizeof(path), "%s/%s", getcwd(line, sizeof(line)), name);
    int fd = open(path, O_RDONLY | O_CLOEXEC), here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    switch (way) {
    case 0: execve(path, next, environ); break;
    case 1: execv(path, next); break;
    case 2: execvp(name, next); break;
    case 3: execvpe(name, next, environ); break;
    case 4: execl(path, name, NULL); break;
    case 5: execlp(name, name, NULL); break;
    case 6: execle(path, name, NULL, environ); break;
    case 7: fexecve(fd, next, environ); break;
    case 8: execveat(fd, "", next, environ, AT_EMPTY_PATH); break;
    case 9: syscall(SYS_execveat, fd, "", next, environ, AT_EMPTY_PATH); break;
    case 10: execveat(open(".", O_RDONLY | O_DIRECTORY), name, next, environ, 0); break;
    case 11: syscall(SYS_execve, path, next, environ); break;
    case 12: posix_spawn(&pid, path, NULL, NULL, next, environ); break;
    case 13: posix_spawnp(&pid, name, NULL, NULL, next, environ); break;
    case 14:
        if ((pid = vfork()) == 0) {
            execlp(name, name, NULL);
            _exit(127);
        }
        break;
    case 15:
        pipe = popen(name, "r");
        line[fread(line, 1, sizeof(line) - 1, pipe)] = 0;
        pclose(pipe);
        fputs(line, stdout);
        return 0;
    case 16:
        return system(name);
    }
    if (pid <= 0)
        return 99;
    waitpid(pid, &status, 0);
    return 0;
}
"""


class Processes(check.Case):
    def test_emulated(self):
        """A program that an emulator runs has what the emulator was given. Before: a fault at its first sample."""
        emulator = shutil.which("qemu-x86_64")
        check.need(emulator and os.uname().machine == "x86_64", "there is no qemu-x86_64")
        for engine in "cpu", "monotonic":
            path = os.path.join(self.directory, f"{engine}.greenprof")
            library = os.path.join(check.LIBRARIES, "libgreenprof-core.so.0")
            words = ["-E", f"LD_PRELOAD={library}", "-E", f"GREENPROF_OUTPUT={path}", "-E", f"GREENPROF_ENGINE={engine}"]
            done = subprocess.run([emulator, *words, check.program("steps"), "burn", "0.3"], capture_output=True,
                                  timeout=check.LIMIT_SECONDS)
            self.assertEqual((done.returncode, done.stderr), (0, b""), engine)
            self.assertGreater(len(check.Capture(path).samples), 0, engine)

    def test_what_programs_inherit(self):
        """Whether SIGPROF is ignored, and blocked, in programs that are executed. Before: not ignored, not blocked."""
        for how in "nothing", "ignored", "by_signal", "reset", "blocked":
            for born in None, lambda: signal.signal(signal.SIGPROF, signal.SIG_IGN):
                words = [check.program("inherited"), how]
                alone = subprocess.run(words, capture_output=True, timeout=check.LIMIT_SECONDS, preexec_fn=born)
                for engine in "perf", "monotonic":
                    done = check.greenprof("run", "--quiet", "--engine", engine, "-o", os.path.join(self.directory, "x.greenprof"),
                                           "--", *words, preexec_fn=born)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, alone.stdout, b""), (how, born, engine))

    def check_work(self, run, path, expected):
        """`path` holds these functions' CPU seconds, and no other work."""
        folded, capture = run.folded(path=path), run.capture(path)
        self.check_health(capture)
        self.assertEqual(works(folded), set(expected))
        for name, seconds in expected.items():
            self.near(f"{name} in {os.path.basename(path)}", folded.inclusive()[name], seconds, 0.03)
        return capture

    def test_fork(self):
        run = self.profile(["processes", "fork"])
        (pid, seconds, _), = run.truth.values["CHILD"]
        self.assertEqual(set(run.files()), {"", "." + pid})
        self.check_work(run, run.output, {name: run.truth.functions[name] for name in ("work_before", "work_parent")})
        self.check_total(run.folded(), run.truth)
        child = self.check_work(run, run.files()["." + pid], {"work_child": float(seconds)})
        self.assertEqual(child.pid, int(pid))
        self.assertEqual(child.session, run.capture().session)
        self.near("total of the child", run.folded(path=run.files()["." + pid]).total, float(seconds), 0.01, 0.005)

    def test_percent_p(self):
        run = self.profile(["processes", "fork"], output="x.%p.greenprof")
        (pid, _, _), = run.truth.values["CHILD"]
        names = sorted(os.listdir(self.directory))
        self.assertEqual(len(names), 2, names)
        self.assertIn(f"x.{pid}.greenprof", names)
        captures = [check.Capture(os.path.join(self.directory, name)) for name in names]
        self.assertEqual(names, sorted(f"x.{capture.pid}.greenprof" for capture in captures))

    def test_fork_and_exec(self):
        run = self.profile(["processes", "fork_exec", check.program("coroutines"), "0.6", "100"])
        (pid, seconds), = run.truth.values["CHILD"]
        self.assertEqual(set(run.files()), {"", "." + pid, f".{pid}.1"})
        self.check_work(run, run.output, {"work_parent": run.truth.functions["work_parent"]})
        before = self.check_work(run, run.files()[f".{pid}.1"], {"work_child": float(seconds)})
        self.assertEqual(before.end, 2)  # exec
        after = run.folded(path=run.files()["." + pid])
        self.assertEqual(works(after), {"work_alpha", "work_beta", "work_gamma"})
        self.near("work_alpha after exec", after.inclusive()["work_alpha"], run.truth.functions["work_alpha"], 0.15)

    def test_exec_of_itself(self):
        run = self.profile(["processes", "exec_self"])
        self.assertEqual(set(run.files()), {"", ".1"})
        self.check_work(run, run.files()[".1"], {"work_before": float(run.truth.values["FIRST"][0][0])})
        self.check_work(run, run.output, {"work_parent": float(run.truth.values["SECOND"][0][0])})

    def test_children_of_another_libc(self):
        """The loader of musl, or of 32 bits, takes LD_PRELOAD for its own: such a child runs as alone."""
        source, program = (os.path.join(self.directory, name) for name in ("m.c", "m"))
        with open(source, "w") as file:
            file.write('#include <stdio.h>\n#include <stdlib.h>\n'
                       'int main(void) { puts(getenv("LD_PRELOAD") ? "preloaded" : "alone"); return 3; }\n')
        if shutil.which("musl-gcc") is None or subprocess.run(["musl-gcc", "-o", program, source]).returncode != 0:
            self.skipTest("musl-gcc is not installed")
        for command in ("./m", "exec ./m", "env ./m", "env -- ./m"):
            done = check.greenprof("run", "--quiet", "-o", os.path.join(self.directory, "x"), "--", "sh", "-c", command,
                                   cwd=self.directory)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (3, b"alone\n", b""), command)
        done = check.greenprof("run", "-o", os.path.join(self.directory, "x"), "--", program)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("is a musl program, and", done.stderr.decode())

    def test_ways_to_a_foreign_program(self):
        """Whichever function executes it, a program of another loader gets no LD_PRELOAD of greenprof's, and another
        one does. Before: not by execvp(), posix_spawn(), fexecve(), execveat() and syscall()."""
        if shutil.which("cc") is None:
            self.skipTest("cc is not installed")
        loader = os.path.join(self.directory, "ld-musl-x86_64.so.1")  # glibc's, by that name
        shutil.copy(os.path.realpath("/lib64/ld-linux-x86-64.so.2"), loader)
        self.put("say.c", '#include <stdio.h>\n#include <stdlib.h>\n'
                          'int main(void) { puts(getenv("LD_PRELOAD") ? "preloaded" : "alone"); return 0; }\n')
        self.put("ways.c", WAYS)
        self.put("script", f"#! {self.directory}/foreign -x\n")
        os.chmod(self.path("script"), 0o755)
        for words in (["-o", "native", "say.c"], ["-o", "foreign", "say.c", f"-Wl,--dynamic-linker={loader}"],
                      ["-o", "ways", "ways.c"]):
            subprocess.run(["cc", "-w", *words], check=True, cwd=self.directory)
        for way in range(17):
            for name, said in ("native", "preloaded"), ("foreign", "alone"), ("script", "alone"):
                if name == "script" and way in (7, 8, 9):
                    continue  # a script has no name by its descriptor, which is closed
                done = check.greenprof("run", "--quiet", "-o", self.path("x"), "--", self.path("ways"), way, name,
                                       cwd=self.directory,
                                       env={**os.environ, "PATH": f"/nowhere::{self.directory}:{os.environ['PATH']}"})
                self.assertEqual((done.stdout.decode(), done.stderr), (said + "\n", b""), f"{name}, way {way}")

    def test_forms_of_exec(self):
        """Arguments and environment arrive, and each image of the process has its own capture, which says how it ended."""
        run = self.profile(["processes", "exec_forms", "0"])
        said = ["nothing", "nothing", "more", "nothing", "more", "nothing", "more", "nothing", "more"]
        self.assertEqual(run.truth.values["STAGE"], [[str(stage), word] for stage, word in enumerate(said)])
        captures = [run.capture(path) for path in run.files().values()]
        self.assertEqual(sorted(capture.end for capture in captures), [0] + [2] * 8)
        self.assertEqual(len({(capture.pid, capture.session) for capture in captures}), 1)

    def test_fork_with_each_clock(self):
        """Timers are not inherited: the child has its own."""
        for engine in ("cpu", "monotonic"):
            run = self.profile(["processes", "fork"], options=["--engine", engine], output=engine)
            (pid, _, _), = run.truth.values["CHILD"]
            self.assertEqual(works(run.folded()), {"work_before", "work_parent"})
            self.check_health(run.capture(run.files()["." + pid]))
            self.assertEqual(works(run.folded(path=run.files()["." + pid])), {"work_child"})

    def test_exec_that_fails(self):
        run = self.profile(["processes", "failed_exec"])
        self.check_work(run, run.output, dict(run.truth.functions))
        self.check_total(run.folded(), run.truth)

    def test_children_that_live_shortly(self):
        run = self.profile(["processes", "children"])
        self.check_work(run, run.output, dict(run.truth.functions))
        self.assertEqual(run.stderr, "")

    def test_daemon(self):
        truth = os.path.join(self.directory, "truth")
        run = self.profile(["processes", "daemon", truth], healthy=False)
        text = self.wait_for(truth)
        pid = check.Truth(text).values["CHILD"][0][0]
        path = run.output + "." + pid
        for _ in range(200):  # it is the last to end, and has no parent left
            if os.path.exists(path) and check.Capture(path).end is not None:
                break
            time.sleep(0.05)
        self.check_work(run, path, dict(check.Truth(text).functions))

    def wait_for(self, path):
        def text():
            if os.path.exists(path):
                with open(path) as file:
                    return file.read()
            return ""
        return check.until(lambda: "CHILD" in text() and text(), "the daemon's truth")

    def test_all_descriptors_closed(self):
        run = self.profile(["processes", "close_all"], healthy=False)
        # Its timer was among them: the sampler notices within half a second.
        folded = run.folded()
        self.check_total(folded, run.truth)
        capture = run.capture()
        self.assertEqual(capture.end, 0)
        self.near("work_before", folded.inclusive()["work_before"], run.truth.functions["work_before"], 0.05)
        self.near("work_parent", folded.inclusive()["work_parent"], run.truth.functions["work_parent"], 0.05)
        self.check_weights(capture, slack=0.1)

    def test_forks_among_threads(self):
        before = os.times()
        run = self.profile(["processes", "many"], hz=5000)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        self.at_most("CPU time of all", used, 3 * run.truth.total + 4)  # a child that does nothing has nothing to write: it ends at once
        folded = run.folded()
        self.near("work_parent", folded.inclusive()["work_parent"], run.truth.functions["work_parent"], 0.03)


class Follow(check.Case):
    """Which of the processes that one starts are profiled."""

    def programs(self, *options):
        inner = f"{check.program('coroutines')} 0.3 100; true"
        run = self.profile(["/bin/sh", "-c", f"/bin/sh -c '{inner}'; true"], options=options,
                           output=f"all{''.join(options).replace('*', '')}.greenprof")
        return sorted(os.path.basename(run.capture(path).meta["exe"].decode()) for path in run.files().values())

    def test_shells(self):
        shell = os.path.basename(os.path.realpath("/bin/sh"))
        self.assertEqual(self.programs(), sorted([shell, "coroutines"]))  # only the shell asked for
        self.assertEqual(self.programs("--follow", "all"), sorted([shell, shell, "coroutines"]))
        self.assertEqual(self.programs("--follow", "exec"), [shell])
        self.assertEqual(self.programs("--follow-name", "corou*"), ["coroutines"])

    def test_children(self):
        run = self.profile(["processes", "fork"], options=["--follow", "exec"])
        self.assertEqual(set(run.files()), {""})
        self.assertEqual(works(run.folded()), {"work_before", "work_parent"})

    def test_exec(self):
        run = self.profile(["processes", "exec_self"], options=["--follow", "exec"])
        self.assertEqual(set(run.files()), {"", ".1"})
        run = self.profile(["processes", "exec_self"], options=["--follow", "none"], output="none.greenprof")
        self.assertEqual(set(run.files()), {""})
        self.assertEqual(works(run.folded()), {"work_before"})


if __name__ == "__main__":
    check.main()
