// SPDX-License-Identifier: MIT
// Memory that is going to be needed soon, asked for ahead.
#pragma once

static inline void gp_prefetch(const void *at)
{
    __builtin_prefetch(at);
    __asm__ volatile(""); // gcc drops calls of functions that do nothing else, as if they had no effect
}
