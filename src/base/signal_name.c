// SPDX-License-Identifier: MIT
#include "base/signal_name.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Any number that fits; -EINVAL for what is none.
static int signal_name_whole_number(const char *text)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return -EINVAL;
    long number = strtol(text, &end, 10);
    return *end == '\0' && number <= SIGRTMAX ? (int)number : -EINVAL;
}

// The rest after "RTMIN" or "RTMAX": nothing, or `sign` and a number.
static int signal_name_real_time(int from, char sign, const char *text)
{
    int offset = text[0] == '\0' ? 0 : text[0] == sign ? signal_name_whole_number(text + 1) : -EINVAL;
    int number = sign == '+' ? from + offset : from - offset;
    return offset >= 0 && number >= SIGRTMIN && number <= SIGRTMAX ? number : -EINVAL;
}

static int signal_name_named(const char *text)
{
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *name = sigabbrev_np(number);
        if (name != NULL && strcmp(name, text) == 0)
            return number;
    }
    return strcmp(text, "IO") == 0 ? SIGIO : -EINVAL; // glibc calls it POLL
}

static bool signal_name_is_free(int number)
{
    static const int free[] = {SIGPROF, SIGALRM, SIGIO,   SIGPWR,    SIGSTKFLT,
                               SIGURG,  SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH};
    for (size_t i = 0; i < sizeof(free) / sizeof(free[0]); i++)
        if (free[i] == number)
            return true;
    return number >= SIGRTMIN && number <= SIGRTMAX;
}

int gp_signal_by_name(const char *text)
{
    int number = signal_name_whole_number(text);
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    if (number < 0)
        number = strncmp(text, "RTMIN", 5) == 0   ? signal_name_real_time(SIGRTMIN, '+', text + 5)
                 : strncmp(text, "RTMAX", 5) == 0 ? signal_name_real_time(SIGRTMAX, '-', text + 5)
                                                  : signal_name_named(text);
    return signal_name_is_free(number) ? number : -EINVAL;
}
