// SPDX-License-Identifier: MIT
// Reading Ruby's memory in the handler: words that may be torn are not followed to where there is nothing.
#pragma once

#include "ruby_frames.h"
#include "signal/mapped.h"
#include "unwind/arch.h"

enum { GP_RUBY_WORD = 8 };

typedef struct gp_ruby_look { // of one walk
    bool is_sure;             // what is read now need not be checked
    gp_mapped_t mapped;
} gp_ruby_look_t;

typedef struct gp_ruby_method {
    uintptr_t entry, definition; // 0 = none
} gp_ruby_method_t;

GP_UNSANITIZED static inline uintptr_t gp_ruby_word(uintptr_t address)
{
    return *(const volatile uintptr_t *)address; // NOLINT(performance-no-int-to-ptr)
}

// An address in user space, of a byte.
static inline bool gp_ruby_is_address(uintptr_t word)
{
    enum { ADDRESS_BITS = 47 };
    return word >= GP_MAPPED_PAGE && word >> ADDRESS_BITS == 0;
}

static inline bool gp_ruby_may_read(gp_ruby_look_t *look, uintptr_t address, size_t bytes)
{
    return gp_ruby_is_address(address) && address % GP_RUBY_WORD == 0 &&
           (look->is_sure || gp_is_mapped(&look->mapped, address, bytes));
}

// The number of a function, 0 = there is no room, or it cannot be read. Two threads may make one each. Signals: safe.
uint32_t gp_ruby_function_number(gp_ruby_look_t *look, const gp_ruby_key_t *key, enum gp_ruby_kind kind,
                                 const gp_ruby_method_t *method);
