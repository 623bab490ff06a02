// SPDX-License-Identifier: MIT
#include "run_aside.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAM = STDERR_FILENO + 1 };

static bool run_aside_stand_aside(int program)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGTTOU};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_IGN);
    if (setsid() < 0 || chdir("/") != 0 || (program != PROGRAM && dup2(program, PROGRAM) < 0))
        return false;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    return syscall(SYS_close_range, PROGRAM + 1, UINT_MAX, 0) == 0;
}

static void run_aside_wipe(char **arguments)
{
    for (; *arguments != NULL; arguments++)
        memset(*arguments, 0, strlen(*arguments));
}

static bool run_aside_would_be_its_child(void)
{
    int adopts = 0;
    return getpid() == 1 || prctl(PR_GET_CHILD_SUBREAPER, &adopts) != 0 || adopts != 0;
}

int gp_run_aside(void (*work)(int program, void *context), void *context, const gp_arguments_t *arguments)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    int program = run_aside_would_be_its_child() ? -ECHILD : (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (program < 0)
        return program == -ECHILD ? program : -errno;
    // The process between leaves nothing to the program: no signal, and no time among that of its children.
    sigaction(SIGCHLD, &ignore, &old);
    pid_t between = fork();
    if (between == 0) {
        if (fork() == 0) {
            run_aside_wipe(arguments->operands);
            sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
            if (run_aside_stand_aside(program))
                work(PROGRAM, context);
        }
        _exit(0);
    }
    int result = between > 0 ? 0 : -errno;
    while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGCHLD, &old, NULL);
    close(program);
    return result;
}
