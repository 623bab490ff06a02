// SPDX-License-Identifier: MIT
// The texts of a span: its name, and fields, which are added while it is open.
#pragma once

#include <stddef.h>

#include "trace/span_slot.h"

// How much of a text is kept: of one that is too long, which is counted, whole characters (UTF-8).
size_t gp_span_text_cut(const char *text, size_t max);

// Returns 0; -EINVAL: a value of another type than the key has (PROF_SPAN_FIELDS); -ENOSPC: no room, which is counted.
int gp_span_text_add_field(gp_span_slot_t *slot, const char *key, const char *value);
