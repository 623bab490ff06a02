// SPDX-License-Identifier: MIT
#include "coro/process_id.h"

#include <unistd.h>

static pid_t owner; // 0 before the library is set up

void gp_process_claim(void)
{
    owner = getpid();
}

bool gp_process_is_mine(void)
{
    return getpid() == owner;
}
