// SPDX-License-Identifier: MIT
// Threads of greenprof's own outside the core: their agreement with the core.
#pragma once

// Returned by one that has ended because no thread of greenprof's own may stay now, and is to begin anew with the same
// argument when they may again.
#define GP_THREAD_RETURNS ((void *)-1L) // NOLINT(performance-no-int-to-ptr)
