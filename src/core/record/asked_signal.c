// SPDX-License-Identifier: MIT
#include "record/asked_signal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/signal_name.h"
#include "collect/sampling_signal.h"

extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old); // not host_signal.c's

bool gp_asked_signal_take(const char *name, void (*handler)(int number))
{
    int number = name != NULL ? gp_signal_by_name(name) : -EINVAL;
    struct sigaction old, mine;
    if (number < 0 || number == gp_sampling_signal() || __sigaction(number, NULL, &old) != 0)
        return false;
    if ((old.sa_flags & SA_SIGINFO) || (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN))
        return false;
    memset(&mine, 0, sizeof(mine));
    mine.sa_handler = handler;
    sigfillset(&mine.sa_mask);
    mine.sa_flags = SA_RESTART | SA_ONSTACK;
    return __sigaction(number, &mine, NULL) == 0;
}
