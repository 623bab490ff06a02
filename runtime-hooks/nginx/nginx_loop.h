// SPDX-License-Identifier: MIT
// The loop of an nginx worker.
#pragma once

#include "coro/threads.h"

// The loop goes on with a coroutine, which has waited for what the loop's look found.
void gp_nginx_woken(prof_coro_t *coro);
