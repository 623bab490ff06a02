// SPDX-License-Identifier: MIT
// Memory of the core that never goes through the host's malloc.
#pragma once

#include <stddef.h>

// Map `bytes` of zeroed memory. Returns NULL when there is none. Signals: not safe.
void *gp_own_map(size_t bytes);

// Give it back; most of it never is. NULL is nothing. Signals: not safe.
void gp_own_unmap(void *memory, size_t bytes);
