// SPDX-License-Identifier: MIT
// Answers of a store, as RowBinary, to a capture. Private to src/ship/ask/ask*.c.
#pragma once

#include "ship/ask/ask.h"
#include "ship/ask/ask_read.h"

// A row of samples; "%s" is what depends on the question.
#define GP_ASK_ROW(C)                                                                                                  \
    C(Text8, "stack", row.stack)                                                                                       \
    C(UInt8, "state", row.state)                                                                                       \
    C(Text, "%s AS name", row.name)                                                                                    \
    C(Text, "%s AS root", row.root)                                                                                    \
    C(Text16, "%s AS trace_id", row.trace)                                                                             \
    C(UInt32, "%s AS at", row.at_s)                                                                                    \
    C(UInt64, "sum(weight_ns) AS weight", row.weight_ns)                                                               \
    C(UInt64, "toUInt64(sum(samples)) AS taken", row.samples)                                                          \
    C(Float64, "%s AS squares", row.squares_ns2)                                                                       \
    C(UInt32, "toUInt32(min(time)) AS first", row.first_s)                                                             \
    C(UInt32, "toUInt32(max(time)) AS last", row.last_s)

// A row of stacks: id, and arrays of names, files and lines, root first, of the row with the most names.
extern const char gp_ask_of_stacks[];

typedef struct gp_ask_answer {
    gp_ask_bytes_t samples; // GP_ASK_ROW
    gp_ask_bytes_t stacks;  // gp_ask_of_stacks
    uint64_t from_s, to_s;  // as asked for, since 1970; 0 = from the first sample, to the last one
    uint64_t hosts;         // 0 = not asked for
} gp_ask_answer_t;

// The stacks that the samples refer to, in order, each once; to be freed. Returns 0, -EBADMSG, -ENOMEM.
int gp_ask_stack_ids(const gp_ask_answer_t *answer, uint64_t **ids, size_t *count);

// Write the capture. group: coroutines are the groups of an answer. Returns 0, -EBADMSG for an answer that is cut off
// or impossible, or another negative errno value.
int gp_ask_write(const gp_ask_answer_t *answer, const char *path, const gp_ask_t *ask);
