// SPDX-License-Identifier: MIT
#include "ship/send/limits.h"

#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
enum { PAUSE_MAX_S = 60 };

uint64_t gp_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void gp_limit_take(gp_limit_t *limit, uint64_t units, uint64_t now_ns)
{
    if (limit->rate == 0)
        return;
    uint64_t from = limit->free_ns > now_ns ? limit->free_ns : now_ns;
    limit->free_ns = from + (uint64_t)((double)units * 1e9 / (double)limit->rate);
}

void gp_backoff_more(gp_backoff_t *backoff, uint64_t first_ns, uint64_t now_ns)
{
    backoff->pause_ns = 2 * backoff->pause_ns > first_ns ? 2 * backoff->pause_ns : first_ns;
    if (backoff->pause_ns > PAUSE_MAX_S * SECOND_NS)
        backoff->pause_ns = PAUSE_MAX_S * SECOND_NS;
    backoff->until_ns = now_ns + backoff->pause_ns;
}
