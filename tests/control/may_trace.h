// SPDX-License-Identifier: MIT
// Whether ptrace(2) is permitted here: tests of what needs it are skipped where not.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool gp_may_trace(void)
{
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    bool may = ptrace(PTRACE_SEIZE, child, 0, 0) == 0;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return may;
}
