// SPDX-License-Identifier: MIT
// Answers of a store, as RowBinary, to a capture. Private to src/ship/ask/ask*.c.
#pragma once

#include "ship/ask/ask.h"
#include "ship/ask/ask_read.h"

typedef struct gp_ask_answer {
    gp_ask_bytes_t samples; // stack UInt64, state UInt8, name String, root String, trace FixedString(16), time UInt32,
                            // weight UInt64, samples UInt64, squares Float64, first and last time UInt32
    gp_ask_bytes_t stacks;  // stack UInt64, names Array(String), files Array(String), lines Array(UInt32)
    uint64_t from_s, to_s;  // what was asked for, since 1970; 0 = from the first sample, to the last one
    uint64_t hosts;         // 0 = not asked for
} gp_ask_answer_t;

// The stacks that the samples refer to, in order, each once; to be freed. Returns 0, -EBADMSG, -ENOMEM.
int gp_ask_stack_ids(const gp_ask_answer_t *answer, uint64_t **ids, size_t *count);

// Write the capture. group: coroutines are what an answer was divided into, not coroutines. Returns 0, -EBADMSG for an
// answer that is cut off or that cannot be, or another negative errno value.
int gp_ask_write(const gp_ask_answer_t *answer, const char *path, const gp_ask_t *ask);
