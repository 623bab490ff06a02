// SPDX-License-Identifier: MIT
// A walk from its first frame to its last.
#include "unwind/walk.h"

#include "unwind/leaf.h"
#include "unwind/resolve.h"

// The rest of the stack is elsewhere: no memo has it, as a memo goes upwards, and no register but these is known.
static void walk_go_on_at(gp_walk_t *w, gp_stack_memory_t piece, gp_frame_t frame)
{
    gp_memo_release(&w->memo);
    w->memo = (gp_memo_use_t){.memo = NULL};
    w->stack = piece;
    w->frame = frame;
    w->base = (gp_unwind_cursor_t){.regs.known = 1ull << GP_REG_PC | 1ull << GP_REG_SP | 1ull << GP_REG_FP};
    w->base.regs.reg[GP_REG_PC] = frame.pc;
    w->base.regs.reg[GP_REG_SP] = frame.sp;
    w->base.regs.reg[GP_REG_FP] = frame.fp;
    w->base_known = true;
    w->base_steps = 0;
}

// Follow a frame pointer to another piece of unknown bounds: libgcc's __morestack has its own frame on the
// stack that it leaves. The segments lie in any order, wherever the kernel has had room for each.
static enum gp_step walk_cross(gp_walk_t *w)
{
    enum { REACH = GP_ROW_SLOT_MASK * sizeof(uintptr_t) };
    uintptr_t cfa = w->frame.fp + (uintptr_t)gp_row_off(w->row) * sizeof(uintptr_t);
    uintptr_t lo = (cfa - REACH) & ~(uintptr_t)(GP_STACK_PAGE - 1);
    gp_stack_memory_t piece = {.lo = lo, .hi = (uintptr_t)1 << GP_ADDR_BITS, .seen_lo = lo, .seen_hi = lo};
    gp_frame_t frame = w->frame;
    frame.sp = lo;
    if (gp_row_kind(w->row) != GP_ROW_FP || gp_step_packed(w->row, &frame, &piece) != GP_STEP_OK ||
        !gp_is_return_address(frame.pc))
        return GP_STEP_LOST;
    walk_go_on_at(w, piece, frame);
    return GP_STEP_OK;
}

enum gp_step gp_walk_step_packed(gp_walk_t *w)
{
    enum gp_step status = gp_step_packed(w->row, &w->frame, &w->stack);
    return status == GP_STEP_LOST && w->start->in_pieces ? walk_cross(w) : status;
}

static enum gp_step walk_run(gp_walk_t *w)
{
    enum gp_step status = GP_STEP_OK;
    // cppcheck-suppress ctuuninitvar ; gp_walk_start() fills it in
    // cppcheck-suppress ctuuninitvar ; the callers fill it in
    if (w->frame.exact)
        gp_walk_look_up(w);
    while (status == GP_STEP_OK && w->steps < GP_UNWIND_STEPS_MAX) {
        if (!w->frame.exact)
            status = gp_walk_fast(w);
        if (status == GP_STEP_OK)
            status = gp_walk_thorough(w);
        if (status == GP_STEP_OK && w->frame.exact)
            gp_walk_look_up(w);
    }
    return status;
}

// Is nothing left but musl's code that begins a program or a thread? Besides the lack of rows it is as good as a
// bottom.
static bool walk_is_in_start_code(const gp_walk_t *w)
{
    enum { START_SPAN = 512 };
    return !GP_LIBC_HAS_ROWS && w->stack.hi - w->frame.sp <= START_SPAN;
}

static void walk_reverse(uintptr_t *from, uintptr_t *to)
{
    while (from < --to) {
        uintptr_t word = *from;
        *from++ = *to;
        *to = word;
    }
}

// Once the ring has wrapped, its oldest frame stands at `out`: turn it so that it stands first.
static size_t walk_unroll(gp_walk_t *w)
{
    size_t max = (size_t)(w->end - w->frames);
    if (w->steps <= max)
        return w->steps;
    walk_reverse(w->frames + 1, w->out);
    walk_reverse(w->out, w->end);
    walk_reverse(w->frames + 1, w->end);
    return max;
}

// Memory that the walk may read at once. A stack pointer at a page's beginning may be a stack's end, with nothing
// behind it.
static gp_stack_memory_t walk_stack_of(const gp_unwind_regs_t *regs, uintptr_t lo, uintptr_t hi)
{
    gp_stack_memory_t stack = gp_stack_of(lo, hi & ~(uintptr_t)(sizeof(uintptr_t) - 1));
    uintptr_t page = regs->sp & ~(uintptr_t)(GP_STACK_PAGE - 1);
    if (regs->doubt == GP_UNWIND_SURE)
        return stack;
    stack.seen_lo = page > lo ? page : lo;
    stack.seen_hi = stack.hi - page > GP_STACK_PAGE ? page + GP_STACK_PAGE : stack.hi;
    if (regs->doubt == GP_UNWIND_DOUBTS_ALL || regs->sp == page || regs->sp < lo || regs->sp >= stack.hi)
        stack.seen_hi = stack.seen_lo;
    return stack;
}

static size_t walk(const gp_unwind_regs_t *regs, bool exact, gp_stack_memory_t stack, uintptr_t *frames, size_t max,
                   unsigned *flags)
{
    gp_walk_t w;
    *flags = 0;
    if (max < 2) {
        *flags = GP_UNWIND_TRUNCATED;
        if (max == 1)
            frames[0] = regs->pc - !exact;
        return max;
    }
    w.stack = stack;
    w.frame = (gp_frame_t){.pc = regs->pc, .sp = regs->sp, .fp = regs->fp, .lr = regs->lr, .exact = exact};
    w.frames = w.out = frames;
    w.end = frames + max;
    w.steps = w.base_steps = 0;
    w.checked_module = UINT32_MAX;
    w.start = regs;
    w.start_exact = exact;
    w.base_known = false;
    gp_memo_take(&w.memo, &w.stack);
    if (walk_run(&w) != GP_STEP_END && !walk_is_in_start_code(&w))
        *flags |= GP_UNWIND_INCOMPLETE;
    gp_memo_release(&w.memo);
    if (w.steps > max)
        *flags |= GP_UNWIND_TRUNCATED;
    return walk_unroll(&w);
}

void gp_unwind_prefetch(uintptr_t pc, uintptr_t hi)
{
    gp_memo_prefetch(hi);
    __builtin_prefetch(&gp_row_cache[gp_cache_bucket(gp_cache_hash_of_block(pc)) * GP_CACHE_WAYS]);
    __builtin_prefetch(&gp_row_cache[gp_cache_bucket(gp_cache_hash_of(pc, false)) * GP_CACHE_WAYS]);
}

size_t gp_unwind_walk(const gp_unwind_regs_t *regs, uintptr_t lo, uintptr_t hi, uintptr_t *frames, size_t max,
                      unsigned *flags)
{
    return walk(regs, true, walk_stack_of(regs, lo, hi), frames, max, flags);
}

size_t gp_unwind_walk_parked(const gp_unwind_regs_t *regs, uintptr_t lo, uintptr_t hi, uintptr_t *frames, size_t max,
                             unsigned *flags)
{
    return walk(regs, false, walk_stack_of(regs, lo, hi), frames, max, flags);
}
