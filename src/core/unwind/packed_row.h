// SPDX-License-Identifier: MIT
// A row in 30 bits: what the fast walk needs at one program counter.
//
//   bit 29     volatile: the module may be unloaded, check it before trusting the row
//   bits 26-28 kind
//   bits 20-25 return address at CFA - 8n; 0: still in its register
//   bits 14-19 frame pointer at CFA - 8n; 0: unchanged
//   bits 0-13  CFA = base register + 8n; for GP_ROW_SPECIAL: what is special, and its argument
//   above
//
// More than 99 % of the rows in Debian's libraries fit (UNWIND.md); the rest says GP_SPECIAL_FULL.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi.h"

typedef uint32_t gp_packed_row_t;

#define GP_ROW_OFF_BITS   14u
#define GP_ROW_OFF_MASK   ((1u << GP_ROW_OFF_BITS) - 1)
#define GP_ROW_FP_SHIFT   14u
#define GP_ROW_RA_SHIFT   20u
#define GP_ROW_SLOT_MASK  63u
#define GP_ROW_KIND_SHIFT 26u
#define GP_ROW_KIND_MASK  (7u << GP_ROW_KIND_SHIFT)
#define GP_ROW_VOLATILE   (1u << 29)
#define GP_ROW_BITS       30u

enum gp_row_kind {
    GP_ROW_NONE = 0u, // an empty cache slot
    GP_ROW_SP = 1u,   // CFA = stack pointer + offset
    GP_ROW_FP = 2u,   // CFA = frame pointer + offset
    GP_ROW_SPECIAL = 3u,
};

enum gp_row_special {
    GP_SPECIAL_END,       // outermost frame: shown, nothing above it
    GP_SPECIAL_HIDDEN,    // a coroutine's forged bottom: not shown, nothing above it
    GP_SPECIAL_NO_CALL,   // inside a function, but no call returns there: not shown, walk is lost
    GP_SPECIAL_LAST_CALL, // returns to the end of its function and the start of the next: see the
                          // walk
    GP_SPECIAL_NO_CFI,    // code of a module without a row
    GP_SPECIAL_NO_CODE,   // no module there, or not its code
    GP_SPECIAL_REALIGN,   // CFA = word at frame pointer - 8 * argument, frame pointer at frame
                          // pointer
    GP_SPECIAL_FULL,      // needs the full row: expressions, other registers, signal frames
};

#define GP_SPECIAL_BITS 4u

static inline gp_packed_row_t gp_row_special(enum gp_row_special special, unsigned argument)
{
    return GP_ROW_SPECIAL << GP_ROW_KIND_SHIFT | argument << GP_SPECIAL_BITS | (unsigned)special;
}

static inline gp_packed_row_t gp_row_simple(enum gp_row_kind kind, unsigned off, unsigned fp, unsigned ra)
{
    return (unsigned)kind << GP_ROW_KIND_SHIFT | ra << GP_ROW_RA_SHIFT | fp << GP_ROW_FP_SHIFT | off;
}

static inline unsigned gp_row_kind(gp_packed_row_t row)
{
    return (row & GP_ROW_KIND_MASK) >> GP_ROW_KIND_SHIFT;
}

static inline unsigned gp_row_off(gp_packed_row_t row)
{
    return row & GP_ROW_OFF_MASK;
}

static inline unsigned gp_row_fp(gp_packed_row_t row)
{
    return row >> GP_ROW_FP_SHIFT & GP_ROW_SLOT_MASK;
}

static inline unsigned gp_row_ra(gp_packed_row_t row)
{
    return row >> GP_ROW_RA_SHIFT & GP_ROW_SLOT_MASK;
}

static inline enum gp_row_special gp_row_special_of(gp_packed_row_t row)
{
    return (enum gp_row_special)(row & ((1u << GP_SPECIAL_BITS) - 1));
}

static inline unsigned gp_row_argument(gp_packed_row_t row)
{
    return gp_row_off(row) >> GP_SPECIAL_BITS;
}

// Pack the full row of `pc` (what an expression sees in the pc register); GP_SPECIAL_FULL where it
// does not fit, GP_SPECIAL_END where the return address is undefined. Signals: safe.
gp_packed_row_t gp_row_pack(const gp_row_t *row, uintptr_t pc);
