// SPDX-License-Identifier: MIT
// Memory of the core that never goes through the host's malloc.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Map `bytes` of zeroed memory, which is not locked. Returns NULL when there is none. Signals: not safe.
void *gp_own_map(size_t bytes);

// The same for good, between two pages that cannot be accessed. Without these pages the kernel may make one mapping of
// this memory and a stack of the host's beside it; where no hook says a stack's bounds, they are those of its mapping.
// Signals: not safe.
void *gp_own_map_apart(size_t bytes);

// Touch the whole pages of it, in one system call: as if written to, or as if read, which takes no memory. No more than
// a help; kernels before 5.14 do nothing. Signals: not safe.
void gp_own_touch(void *memory, size_t bytes, bool is_written);

// mlockall(): before it locks what is mapped later; and to unlock all that is mapped. Signals: safe.
void gp_own_will_be_locked(void);
void gp_own_unlock(void);

// Give it back; most of it never is. NULL is nothing. Signals: not safe.
void gp_own_unmap(void *memory, size_t bytes);
