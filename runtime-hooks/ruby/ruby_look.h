// SPDX-License-Identifier: MIT
// Functions of Ruby, looked at by the handler.
#pragma once

#include "ruby_frames.h"
#include "signal/look.h"

typedef struct gp_ruby_method {
    uintptr_t entry, definition; // 0 = none
} gp_ruby_method_t;

// The number of a function, 0 = there is no room, or it cannot be read. Two threads may make one each. Signals: safe.
uint32_t gp_ruby_function_number(gp_peeks_t *look, const gp_ruby_key_t *key, enum gp_ruby_kind kind,
                                 const gp_ruby_method_t *method);
