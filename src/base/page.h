// SPDX-License-Identifier: MIT
// The kernel's page: 4 KiB on x86-64; 4, 16 or 64 KiB on aarch64. For what the kernel is asked about whole pages;
// a smaller granule does for the rest.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

// Bytes. Cost: ~5 ns.
static inline size_t gp_page_bytes(void)
{
    return getauxval(AT_PAGESZ);
}

static inline size_t gp_page_round_up(size_t bytes)
{
    size_t page = gp_page_bytes();
    return (bytes + page - 1) & ~(page - 1);
}
