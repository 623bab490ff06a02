// SPDX-License-Identifier: MIT
#include "output_guard.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

// The half-written file, removed when a signal ends the command.
static char *volatile half_written;

static void output_guard_clean_up(int signal_number)
{
    unlink(half_written);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void output_guard_clean_up_on_signals(char *path)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    const struct sigaction action = {.sa_handler = path ? output_guard_clean_up : SIG_DFL};
    struct sigaction old;
    half_written = path;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) // nohup
            sigaction(signals[i], &action, NULL);
}

static void output_guard_hold_signals(int how)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(how, &signals, NULL);
}

static int output_guard(const char *path, int (*open)(gp_output_t *, const char *), int (*write)(gp_output_t *, void *),
                        void *context)
{
    gp_output_t output;
    output_guard_hold_signals(SIG_BLOCK);
    int result = open(&output, path);
    if (result == 0) {
        output_guard_clean_up_on_signals(output.temporary);
        output_guard_hold_signals(SIG_UNBLOCK);
        result = write(&output, context);
        output_guard_hold_signals(SIG_BLOCK);
        output_guard_clean_up_on_signals(NULL);
        if (result != 0)
            gp_output_abort(&output);
        else
            result = gp_output_commit(&output);
    }
    output_guard_hold_signals(SIG_UNBLOCK);
    return result;
}

int gp_output_guarded(const char *path, int (*write)(gp_output_t *, void *), void *context)
{
    return output_guard(path, gp_output_open, write, context);
}

int gp_output_guarded_named(const char *path, int (*write)(gp_output_t *, void *), void *context)
{
    return output_guard(path, gp_output_open_named, write, context);
}

int gp_output_check(const char *path, const char *const *inputs, size_t count)
{
    struct stat output, input;
    if (stat(path, &output) != 0 || !S_ISREG(output.st_mode))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (stat(inputs[i], &input) == 0 && input.st_dev == output.st_dev && input.st_ino == output.st_ino)
            return gp_fail(path, "is an input and cannot be the output too");
    return 0;
}
