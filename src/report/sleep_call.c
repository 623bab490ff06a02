// SPDX-License-Identifier: MIT
#include "report/sleep_call.h"

#include <stddef.h>
#include <string.h>

gp_sleep_call_t gp_sleep_call(const char *function)
{
    static const char *const loops[] = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter",
                                        "Selector.select"};
    static const char *const many[] = {"poll",  "ppoll",     "select",         "pselect",
                                       "futex", "cond_wait", "cond_timedwait", "cond_clockwait"};
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
        if (strstr(function, loops[i]) != NULL)
            return GP_SLEEP_LOOP;
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
        if (strstr(function, many[i]) != NULL)
            return GP_SLEEP_MANY;
    return GP_SLEEP_OTHER;
}
