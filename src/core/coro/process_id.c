// SPDX-License-Identifier: MIT
#include "coro/process_id.h"

#include <unistd.h>

static pid_t owner; // 0 before the library is set up
static __thread bool is_forking __attribute__((tls_model("initial-exec")));

void gp_process_claim(void)
{
    owner = getpid();
}

bool gp_process_is_mine(void)
{
    return getpid() == owner;
}

void gp_process_fork_begins(void)
{
    is_forking = true;
}

void gp_process_fork_ends(void)
{
    is_forking = false;
}

bool gp_process_is_open(void)
{
    return !is_forking && gp_process_is_mine();
}
