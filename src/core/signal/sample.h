// SPDX-License-Identifier: MIT
// Words of the handler and of switches in records of a ring (model/ring_record.h) besides their fields.
#pragma once

#include <assert.h>

#include "signal/coro_record.h"
#include "signal/ring.h"
#include "unwind/unwind.h"

static_assert((int)GP_SAMPLE_TRUNCATED == (int)GP_UNWIND_TRUNCATED &&
                  (int)GP_SAMPLE_INCOMPLETE == (int)GP_UNWIND_INCOMPLETE,
              "what a walk says goes into a sample as it is");

// The stack of a coroutine that has not run yet, which has none. Returns the frames in `frames`, 1 at most.
static inline size_t gp_sample_not_started(const prof_coro_t *coro, uintptr_t *frames, unsigned *flags)
{
    *flags = GP_SAMPLE_NOT_STARTED;
    frames[0] = coro->entry;
    return coro->entry != 0 ? 1 : 0;
}
