// The walk itself: a tight loop over packed rows, and everything that loop cannot do.
#include "unwind/unwind.h"

#include <stdatomic.h>
#include <string.h>

#include "unwind/resolve.h"
#include "unwind/row_cache.h"
#include "unwind/step.h"

enum { WORD = sizeof(uintptr_t), FORGED_BOTTOM_SPAN = 1024 };

typedef struct walk {
    gp_stack_t stack;
    gp_frame_t frame;    // the frame that `row` governs; not stored yet
    gp_packed_row_t row; // never volatile here
    uint32_t slot;       // where the row is cached, or GP_CACHE_SLOTS

    uintptr_t *frames, *out, *end; // out wraps to frames + 1: the root end overwrites the middle
    unsigned steps;                // frames stored, overwritten ones included

    uint32_t checked_module; // the last volatile module that was found in place
    gp_cursor_t base;        // registers known in full: at the leaf or below the last signal frame
    unsigned base_steps;     // frames walked since
} walk_t;

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

// Find the row of w->frame in the cache or compute it; leaves it checked and without its volatile
// bit.
static void look_up(walk_t *w)
{
    uintptr_t pc = w->frame.pc;
    bool is_return = !w->frame.exact;
    if (UNLIKELY(!gp_addr_plausible(pc))) {
        w->row = gp_row_special(GP_SPECIAL_NO_CODE, 0);
        w->slot = GP_CACHE_SLOTS;
        return;
    }
    uint64_t hash = gp_cache_hash(gp_arch_key(pc - is_return, is_return));
    w->slot = gp_cache_find(hash, &w->row);
    if (LIKELY(w->slot != GP_CACHE_SLOTS)) {
        if (LIKELY(!(w->row & GP_ROW_VOLATILE))) {
            return;
        }
        uint32_t module = gp_cache_module(w->slot, hash, w->row);
        if (module != UINT32_MAX &&
            (module == w->checked_module || gp_module_check(module, pc - is_return))) {
            w->checked_module = module;
            w->row &= ~GP_ROW_VOLATILE;
            return;
        }
    }
    w->row = gp_resolve(pc, is_return, &w->slot);
}

// Try the slot that followed `from` the last time. Returns false when it holds another row.
static inline bool guess(uint32_t from, uint64_t hash, gp_packed_row_t *row, uint32_t *slot)
{
    uint32_t at = atomic_load_explicit(&gp_row_cache[from].next, memory_order_relaxed);
    uint64_t word = atomic_load_explicit(&gp_row_cache[at].word, memory_order_relaxed);
    *slot = at;
    *row = (gp_packed_row_t)word & ((1u << GP_ROW_BITS) - 1);
    return gp_cache_matches(at, word, hash);
}

static inline bool is_simple(gp_packed_row_t row)
{
    // Kinds 1 and 2 without the volatile bit.
    return (row >> GP_ROW_KIND_SHIFT) - 1u <= 1u;
}

// Take one step by a simple row with every check there is, and look the caller's row up.
static enum gp_step step_careful(walk_t *w)
{
    enum gp_step status = gp_step_packed(w->row, &w->frame, &w->stack);
    if (status == GP_STEP_OK) {
        look_up(w);
    }
    return status;
}

// Step over return addresses as long as their rows are simple; leaves the first frame whose row is
// not, not yet stored. Everything on the way from one frame to the next is a prediction that is
// checked beside it: the caller's slot comes from `next`, so a load of the cache need not wait for
// the return address.
GP_UNSANITIZED static enum gp_step run_simple(walk_t *w)
{
    const uintptr_t lo = w->stack.lo, hi = w->stack.hi;
    uintptr_t *out = w->out, *const end = w->end;
    uintptr_t sp = w->frame.sp, fp = w->frame.fp, pc = w->frame.pc;
    gp_packed_row_t row = w->row;
    uint32_t slot = w->slot;
    enum gp_step status = GP_STEP_OK;
    unsigned steps = w->steps;
    while (is_simple(row) && steps < GP_UNWIND_STEPS_MAX) {
        steps++;
        *out++ = pc - 1;
        out = UNLIKELY(out == end) ? w->frames + 1 : out;
        uintptr_t cfa = (gp_row_kind(row) == GP_ROW_SP ? sp : fp) + gp_row_off(row) * WORD;
        // A frame's slots lie at most 63 words below its CFA.
        bool plain = cfa > sp && cfa <= hi && cfa % WORD == 0 &&
                     cfa - lo >= GP_ROW_SLOT_MASK * WORD &&
                     !(GP_RA_IN_REGISTER && gp_row_ra(row) == 0);
        uint32_t from = slot;
        if (LIKELY(plain)) {
            if (gp_row_fp(row) != 0) {
                fp = gp_stack_word(cfa - gp_row_fp(row) * WORD);
            }
            unsigned ra_slot = GP_RA_IN_REGISTER ? gp_row_ra(row) : 1;
            pc = gp_arch_strip(gp_stack_word(cfa - ra_slot * WORD));
            sp = cfa;
            uint64_t hash = gp_cache_hash(gp_arch_key(pc - 1, true));
            if (LIKELY(guess(from, hash, &row, &slot) && is_simple(row) &&
                       pc >> GP_ADDR_BITS == 0)) {
                continue;
            }
            w->frame = (gp_frame_t){.pc = pc, .sp = sp, .fp = fp};
            look_up(w);
        } else {
            w->frame = (gp_frame_t){.pc = pc, .sp = sp, .fp = fp};
            w->row = row;
            status = step_careful(w);
            if (status != GP_STEP_OK) {
                break;
            }
        }
        pc = w->frame.pc, sp = w->frame.sp, fp = w->frame.fp;
        row = w->row;
        slot = w->slot;
        atomic_store_explicit(&gp_row_cache[from].next, slot, memory_order_relaxed);
    }
    w->frame = (gp_frame_t){.pc = pc, .sp = sp, .fp = fp};
    w->row = row;
    w->slot = slot;
    w->base_steps += steps - w->steps;
    w->steps = steps;
    w->out = out;
    return status;
}

// Follow all registers from where they were last known up to the present frame.
static enum gp_step replay(walk_t *w, gp_cursor_t *cursor)
{
    *cursor = w->base;
    for (unsigned i = 0; i < w->base_steps; i++) {
        if (gp_step_full(cursor, &w->stack) != GP_STEP_OK) {
            return GP_STEP_LOST;
        }
    }
    bool same =
        cursor->regs.reg[GP_REG_PC] == w->frame.pc && cursor->regs.reg[GP_REG_SP] == w->frame.sp;
    return same ? GP_STEP_OK : GP_STEP_LOST;
}

static void set(gp_cursor_t *cursor, unsigned reg, uintptr_t value)
{
    cursor->regs.reg[reg] = value;
    cursor->regs.known |= 1ull << reg;
}

// Step by the full row, with as few registers as will do.
static enum gp_step step_full(walk_t *w)
{
    gp_cursor_t cursor = {.exact = w->frame.exact};
    if (w->base_steps == 0) {
        cursor = w->base;
    } else {
        set(&cursor, GP_REG_PC, w->frame.pc);
        set(&cursor, GP_REG_SP, w->frame.sp);
        set(&cursor, GP_REG_FP, w->frame.fp);
    }
    enum gp_step status = gp_step_full(&cursor, &w->stack);
    if (status == GP_STEP_NEED_REGS && w->base_steps > 0) {
        status = replay(w, &cursor);
        status = status == GP_STEP_OK ? gp_step_full(&cursor, &w->stack) : status;
        // However many such frames a stack has, its registers are followed once.
        w->base = status == GP_STEP_OK ? cursor : w->base;
        w->base_steps = status == GP_STEP_OK ? 0 : w->base_steps + 1;
    } else if (status == GP_STEP_OK && cursor.exact) {
        w->base = cursor;
        w->base_steps = 0;
    } else {
        w->base_steps++;
    }
    if (status == GP_STEP_OK) {
        w->frame = (gp_frame_t){
            .pc = cursor.regs.reg[GP_REG_PC],
            .sp = cursor.regs.reg[GP_REG_SP],
            .fp = cursor.regs.reg[GP_REG_FP],
            .lr = GP_RA_IN_REGISTER ? cursor.regs.reg[GP_REG_RA] : 0,
            .exact = cursor.exact,
        };
    }
    return status;
}

static void store(walk_t *w)
{
    *w->out++ = w->frame.pc - !w->frame.exact;
    w->out = w->out == w->end ? w->frames + 1 : w->out;
    w->steps++;
}

// No code at the pc: a bottom that was forged with a number that is no address, code that a JIT
// made, or the walk went wrong. Only an interrupted pc is code for certain.
static enum gp_step step_no_code(walk_t *w)
{
    if (w->frame.exact) {
        store(w);
        w->base_steps++;
        return gp_step_fallback(&w->frame, &w->stack);
    }
    bool forged = !gp_addr_plausible(w->frame.pc) && w->stack.hi - w->frame.sp < FORGED_BOTTOM_SPAN;
    return forged || w->frame.pc == 0 ? GP_STEP_END : GP_STEP_LOST;
}

// Step out of a frame whose row is special, or of the interrupted one.
static enum gp_step step_special(walk_t *w)
{
    if (gp_row_kind(w->row) != GP_ROW_SPECIAL) {
        store(w);
        w->base_steps++;
        return gp_step_packed(w->row, &w->frame, &w->stack);
    }
    switch (gp_row_special_of(w->row)) {
    case GP_SPECIAL_END:
        store(w);
        return GP_STEP_END;
    case GP_SPECIAL_HIDDEN:
        return GP_STEP_END;
    case GP_SPECIAL_NO_CODE:
        return step_no_code(w);
    case GP_SPECIAL_REALIGN:
        store(w);
        w->base_steps++;
        return gp_step_packed(w->row, &w->frame, &w->stack);
    case GP_SPECIAL_FULL:
        store(w);
        return step_full(w);
    default: // GP_SPECIAL_NO_CFI
        store(w);
        w->base_steps++;
        return gp_step_fallback(&w->frame, &w->stack);
    }
}

static enum gp_step run(walk_t *w)
{
    enum gp_step status = GP_STEP_OK;
    look_up(w);
    while (status == GP_STEP_OK && w->steps < GP_UNWIND_STEPS_MAX) {
        if (!w->frame.exact) {
            status = run_simple(w);
            if (status != GP_STEP_OK || w->steps >= GP_UNWIND_STEPS_MAX) {
                break;
            }
        }
        uint32_t from = w->slot;
        status = step_special(w);
        if (status == GP_STEP_OK) {
            look_up(w);
            atomic_store_explicit(&gp_row_cache[from].next, w->slot, memory_order_relaxed);
        }
    }
    return status;
}

static void reverse(uintptr_t *from, uintptr_t *to)
{
    while (from < --to) {
        uintptr_t word = *from;
        *from++ = *to;
        *to = word;
    }
}

// Once the ring has wrapped, its oldest frame stands at `out`: turn it so that it stands first.
static size_t unroll(walk_t *w)
{
    size_t max = (size_t)(w->end - w->frames);
    if (w->steps <= max) {
        return w->steps;
    }
    reverse(w->frames + 1, w->out);
    reverse(w->out, w->end);
    reverse(w->frames + 1, w->end);
    return max;
}

static void set_base(walk_t *w, const gp_unwind_regs_t *regs, bool exact)
{
    w->base.exact = exact;
    if (regs->gp != NULL) {
        memcpy(w->base.regs.reg, regs->gp, sizeof w->base.regs.reg);
        w->base.regs.known = (1ull << GP_REG_COUNT) - 1;
    } else if (GP_RA_IN_REGISTER && exact) {
        set(&w->base, GP_REG_RA, regs->lr);
    }
    set(&w->base, GP_REG_FP, regs->fp);
    set(&w->base, GP_REG_SP, regs->sp);
    set(&w->base, GP_REG_PC, regs->pc);
}

static size_t walk(const gp_unwind_regs_t *regs, bool exact, gp_stack_t stack, uintptr_t *frames,
                   size_t max, unsigned *flags)
{
    walk_t w;
    *flags = 0;
    if (max < 2) {
        *flags = GP_UNWIND_TRUNCATED;
        if (max == 1) {
            frames[0] = regs->pc - !exact;
        }
        return max;
    }
    w.stack = (gp_stack_t){.lo = stack.lo, .hi = stack.hi & ~(uintptr_t)(WORD - 1)};
    w.frame = (gp_frame_t){
        .pc = regs->pc, .sp = regs->sp, .fp = regs->fp, .lr = regs->lr, .exact = exact};
    w.frames = w.out = frames;
    w.end = frames + max;
    w.steps = w.base_steps = 0;
    w.checked_module = UINT32_MAX;
    w.base.regs.known = 0;
    set_base(&w, regs, exact);
    if (run(&w) != GP_STEP_END) {
        *flags |= GP_UNWIND_INCOMPLETE;
    }
    if (w.steps > max) {
        *flags |= GP_UNWIND_TRUNCATED;
    }
    return unroll(&w);
}

size_t gp_unwind_walk(const gp_unwind_regs_t *regs, uintptr_t lo, uintptr_t hi, uintptr_t *frames,
                      size_t max, unsigned *flags)
{
    return walk(regs, true, (gp_stack_t){.lo = lo, .hi = hi}, frames, max, flags);
}

size_t gp_unwind_walk_parked(const gp_unwind_regs_t *regs, uintptr_t lo, uintptr_t hi,
                             uintptr_t *frames, size_t max, unsigned *flags)
{
    return walk(regs, false, (gp_stack_t){.lo = lo, .hi = hi}, frames, max, flags);
}
