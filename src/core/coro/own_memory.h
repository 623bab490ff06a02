// SPDX-License-Identifier: MIT
// Memory of the core that never goes through the host's malloc, and is never returned.
#ifndef GP_CORO_OWN_MEMORY_H
#define GP_CORO_OWN_MEMORY_H

#include <stddef.h>

// Map `bytes` of zeroed memory. Returns NULL when there is none. Signals: not safe.
void *gp_own_map(size_t bytes);

#endif
