// SPDX-License-Identifier: MIT
// Reading a runtime's memory in the handler: words that may be torn are not followed to where there is nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal/mapped.h"
#include "unwind/arch.h"

enum { GP_LOOK_WORD = 8 };

typedef struct gp_peeks { // of one walk
    bool is_sure;         // what is read now need not be checked
    gp_mapped_t mapped;
} gp_peeks_t;

GP_UNSANITIZED static inline uintptr_t gp_look_word(uintptr_t address)
{
    return *(const volatile uintptr_t *)address; // NOLINT(performance-no-int-to-ptr)
}

GP_UNSANITIZED static inline uint32_t gp_look_half(uintptr_t address)
{
    return *(const volatile uint32_t *)address; // NOLINT(performance-no-int-to-ptr)
}

GP_UNSANITIZED static inline uint8_t gp_look_byte(uintptr_t address)
{
    return *(const volatile uint8_t *)address; // NOLINT(performance-no-int-to-ptr)
}

GP_UNSANITIZED static inline void gp_look_copy(char *to, uintptr_t from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = ((const volatile char *)from)[i]; // NOLINT(performance-no-int-to-ptr)
}

// An address in user space, of a byte.
static inline bool gp_look_is_address(uintptr_t word)
{
    enum { ADDRESS_BITS = 47 };
    return word >= GP_MAPPED_PAGE && word >> ADDRESS_BITS == 0;
}

static inline bool gp_look_may_read(gp_peeks_t *look, uintptr_t address, size_t bytes)
{
    return gp_look_is_address(address) && address % GP_LOOK_WORD == 0 &&
           (look->is_sure || gp_is_mapped(&look->mapped, address, bytes));
}
