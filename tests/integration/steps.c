// SPDX-License-Identifier: MIT
// Steps of a daemon, one after another:
//   burn SECONDS   of CPU time
//   root DIRECTORY chroot()
//   user UID       setresuid()
//   child ARG...   the rest in a child by fork and exec, which is waited for
#define _GNU_SOURCE
#include <sys/wait.h>

#include "truth.h"

static uint64_t burnt;

TRUTH_OUT_OF_LINE static void work_burn(double seconds)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + (uint64_t)(seconds * 1e9), &burnt);
}

static int run_child(char **words)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        execv("/proc/self/exe", words);
        _exit(9);
    }
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i + 1 < argc && failed == 0; i += 2) {
        if (strcmp(argv[i], "burn") == 0)
            work_burn(atof(argv[i + 1]));
        else if (strcmp(argv[i], "root") == 0)
            failed = chroot(argv[i + 1]) != 0 || chdir("/") != 0;
        else if (strcmp(argv[i], "user") == 0)
            failed = setresuid((uid_t)atoi(argv[i + 1]), (uid_t)atoi(argv[i + 1]), (uid_t)atoi(argv[i + 1]));
        else if (strcmp(argv[i], "child") == 0) {
            failed = run_child(argv + i);
            i = argc;
        }
    }
    printf("TOTAL %.6f\n", (double)burnt / 1e9);
    return failed != 0;
}
