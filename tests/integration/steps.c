// SPDX-License-Identifier: MIT
// Steps of a daemon, one after another:
//   burn SECONDS   of CPU time
//   tell SECONDS   the same, in spans of 1 ms with a text each: 200 KB of a capture a second
//   root DIRECTORY chroot()
//   user UID       setresuid()
//   child ARG...   the rest in a child by fork and exec, which is waited for
#define _GNU_SOURCE
#include <greenprof/trace.h>
#include <sys/wait.h>

#include "truth.h"

#pragma weak prof_span_begin // those of the library that is preloaded
#pragma weak prof_span_set
#pragma weak prof_span_end

enum { SPAN_NS = 1000000, TEXT_BYTES = 160 };

static uint64_t burnt;

TRUTH_OUT_OF_LINE static void work_burn(double seconds)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + (uint64_t)(seconds * 1e9), &burnt);
}

// Texts of random letters, so that they stay as long when the capture is compressed.
static void steps_tell(double seconds)
{
    char text[TEXT_BYTES + 1] = "";
    uint32_t number = 1;
    for (uint64_t end = truth_cpu_ns() + (uint64_t)(seconds * 1e9), now; (now = truth_cpu_ns()) < end;) {
        prof_span_t *span = prof_span_begin(PROF_SPAN_NATIVE_CALL, "tell", NULL);
        for (int i = 0; i < TEXT_BYTES; i++) {
            number = number * 1664525u + 1013904223u;
            text[i] = (char)('0' + (number >> 24) % 64);
        }
        prof_span_set(span, "text", text);
        truth_burn_until(now, now + SPAN_NS, &burnt);
        prof_span_end(span);
    }
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
        else if (strcmp(argv[i], "tell") == 0)
            steps_tell(atof(argv[i + 1]));
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
