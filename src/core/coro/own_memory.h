// SPDX-License-Identifier: MIT
// Memory of the core that never goes through the host's malloc, and is never returned.
#pragma once

#include <stddef.h>

// Map `bytes` of zeroed memory. Returns NULL when there is none. Signals: not safe.
void *gp_own_map(size_t bytes);
