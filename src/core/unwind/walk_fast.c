// SPDX-License-Identifier: MIT
// The fast half of a walk: proven frames from the memo, simple rows from the cache.
#include <stdatomic.h>

#include "unwind/resolve.h"
#include "unwind/walk.h"

enum { WORD = sizeof(uintptr_t) };

// Trust a volatile row only while its module is in place.
static bool walk_fast_module_in_place(gp_walk_t *w, uint32_t module, uintptr_t pc)
{
    if (module == UINT32_MAX || (module != w->checked_module && !gp_module_check(module, pc)))
        return false;
    w->checked_module = module;
    return true;
}

// Find the row of `pc` where it is kept. Returns GP_ROW_NONE where it is not; `*hash` is what the slot was found by.
static inline gp_packed_row_t walk_fast_find(uintptr_t pc, bool is_return, uint64_t *hash, uint32_t *slot)
{
    gp_packed_row_t row = GP_ROW_NONE;
    *slot = GP_CACHE_SLOTS;
    if (!gp_addr_plausible(pc))
        return row;
    if (!is_return) {
        *hash = gp_cache_hash_of_block(pc);
        *slot = gp_cache_find(*hash, &row);
    }
    if (row != GP_ROW_NONE)
        return row;
    *hash = gp_cache_hash_of(pc, is_return);
    *slot = gp_cache_find(*hash, &row);
    return row;
}

void gp_walk_look_up(gp_walk_t *w)
{
    uintptr_t pc = w->frame.pc;
    bool is_return = !w->frame.exact;
    uint32_t module = UINT32_MAX;
    uint64_t hash = 0;
    w->row_volatile = false;
    w->row = walk_fast_find(pc, is_return, &hash, &w->slot);
    if (GP_LIKELY(w->row != GP_ROW_NONE)) {
        if (GP_LIKELY(!(w->row & GP_ROW_VOLATILE)))
            return;
        module = gp_cache_module(w->slot, hash, w->row);
        if (!walk_fast_module_in_place(w, module, pc - is_return))
            w->row = GP_ROW_NONE;
    }
    if (w->row == GP_ROW_NONE)
        w->row = gp_resolve(pc, is_return, &w->slot, &module);
    w->row_volatile = (w->row & GP_ROW_VOLATILE) != 0;
    w->row &= ~GP_ROW_VOLATILE;
}

static inline bool walk_fast_is_simple(gp_packed_row_t row)
{
    // Kinds 1 and 2 without the volatile bit.
    return (row >> GP_ROW_KIND_SHIFT) - 1u <= 1u;
}

// Try the slot that followed `from` the last time: its load need not wait for the return address, which is only
// compared. Returns false where the slot holds another row, or a row in need of more than a glance.
static inline bool walk_fast_guess(uint32_t from, uintptr_t pc, gp_packed_row_t *row, uint32_t *slot)
{
    uint32_t at = atomic_load_explicit(&gp_row_cache[from].next, memory_order_relaxed);
    uint64_t word = atomic_load_explicit(&gp_row_cache[at].word, memory_order_relaxed);
    *slot = at;
    *row = (gp_packed_row_t)word & ((1u << GP_ROW_BITS) - 1);
    return gp_cache_matches(at, word, gp_cache_hash_of(pc, true)) && pc >> GP_ADDR_BITS == 0 &&
           walk_fast_is_simple(*row);
}

GP_UNSANITIZED static inline bool walk_fast_unchanged(const gp_memo_frame_t *frame)
{
    return ((gp_stack_word(frame->ra_at) ^ frame->ra) | (gp_stack_word(frame->fp_at) ^ frame->fp_word)) == 0;
}

// Are the words on the way to a frame in the part of the stack from `lo` on? The walk that found it may have begun
// further down.
static inline bool walk_fast_is_above(const gp_memo_frame_t *frame, uintptr_t lo)
{
    return frame->ra_at >= lo && frame->fp_at >= lo;
}

// Are those of all frames above `frame`, too? A row reaches so far below where its frame ends, which is further up with
// each.
static inline bool walk_fast_is_far_above(const gp_memo_frame_t *frame, uintptr_t lo)
{
    return frame->sp - lo >= GP_ROW_SLOT_MASK * WORD && frame->sp >= lo;
}

// Store old frames from `frame` on as long as the next one's words are there, in a stack in doubt, not below `lo`, and
// the same, at most `room` of them. Returns the last frame that is proven; it is not stored.
__attribute__((always_inline)) static inline const gp_memo_frame_t *
walk_fast_prove(gp_stack_memory_t *doubted, uintptr_t lo, const gp_memo_frame_t *frame, const gp_memo_frame_t *last,
                uintptr_t *out, size_t room)
{
    size_t left = (size_t)(last - frame) - 1;
    const gp_memo_frame_t *stop = frame + (left < room ? left : room);
    for (; frame != stop; frame++) {
        if (doubted != NULL && !(gp_stack_holds(doubted, frame[1].ra_at) && gp_stack_holds(doubted, frame[1].fp_at)))
            break;
        if (!walk_fast_is_above(frame + 1, lo) || !walk_fast_unchanged(frame + 1))
            break;
        *out++ = gp_arch_strip(frame->ra) - 1;
    }
    return frame;
}

static bool walk_fast_is_seen(const gp_stack_memory_t *stack)
{
    return stack->seen_lo == stack->lo && stack->seen_hi == stack->hi;
}

// The walk stands on an old frame, `at`: store it and all that follow and are proven, but for the last. How the walk
// got there replaces how the old one did: a chain's link must be the step from the frame before.
static void walk_fast_follow_memo(gp_walk_t *w, const gp_memo_frame_t *at)
{
    gp_memo_use_t *use = &w->memo;
    const gp_memo_frame_t *frame = use->next;
    *use->next = *at;
    use->run = use->run != NULL ? use->run : frame;
    for (;;) {
        size_t room = (size_t)(w->end - w->out);
        const gp_memo_frame_t *proven =
            GP_LIKELY(walk_fast_is_seen(&w->stack) && walk_fast_is_far_above(frame, w->stack.lo))
                ? walk_fast_prove(NULL, 0, frame, use->last, w->out, room)
                : walk_fast_prove(&w->stack, w->stack.lo, frame, use->last, w->out, room);
        size_t count = (size_t)(proven - frame);
        w->out += count;
        w->steps += (unsigned)count;
        w->base_steps += (unsigned)count;
        frame = proven;
        if (GP_LIKELY(w->out != w->end))
            break;
        w->out = w->frames + 1;
    }
    use->next += frame + 1 - use->next;
    w->frame = (gp_frame_t){.pc = gp_arch_strip(frame->ra), .sp = frame->sp, .fp = frame->fp};
}

// However the walk got to w->frame, the next one must get there by itself.
static void walk_fast_set_unlinked(gp_memo_frame_t *at, const gp_frame_t *frame)
{
    at->sp = frame->sp;
    at->fp = frame->fp;
    at->ra = frame->pc;
    gp_memo_unlink(at);
}

// Where the frames that walk_fast_run_rows() passes are written: in the memo, or over one another.
typedef struct recorder {
    gp_memo_frame_t *at; // the present frame, not yet committed
    size_t advance;      // 1 while recording
    gp_memo_frame_t scratch;
} recorder_t;

static void walk_fast_recorder_open(recorder_t *rec, gp_memo_use_t *use, const gp_memo_frame_t *at)
{
    bool recording = gp_memo_may_record(use);
    rec->at = recording ? use->record : &rec->scratch;
    rec->advance = recording;
    *rec->at = *at;
}

static void walk_fast_recorder_close(const recorder_t *rec, gp_memo_use_t *use)
{
    if (rec->advance)
        use->record = rec->at;
}

// Keep the present frame, go to the place of the next.
static inline void walk_fast_recorder_commit(recorder_t *rec, gp_memo_use_t *use)
{
    rec->at += rec->advance;
    if (GP_UNLIKELY(rec->at == use->record_end)) {
        use->record = rec->at;
        use->gap = true;
        rec->advance = 0;
        rec->at = &rec->scratch;
    }
}

// A step without most checks: all slots that a row can name lie in the stack. Word by word: a copy
// in larger pieces would have to wait for the fields' way through memory.
GP_UNSANITIZED static inline void walk_fast_step_plain(gp_packed_row_t row, uintptr_t cfa, uintptr_t *fp,
                                                       gp_memo_frame_t *caller)
{
    uintptr_t ra_at = cfa - (GP_RA_IN_REGISTER ? gp_row_ra(row) * WORD : WORD);
    uintptr_t ra = gp_stack_word(ra_at), fp_at = ra_at, fp_word = ra;
    if (gp_row_fp(row) != 0) {
        fp_at = cfa - gp_row_fp(row) * WORD;
        *fp = fp_word = gp_stack_word(fp_at);
    }
    caller->ra_at = ra_at;
    caller->ra = ra;
    caller->fp_at = fp_at;
    caller->fp_word = fp_word;
    caller->sp = cfa;
    caller->fp = *fp;
}

// Does the frame end above `sp`, inside what was seen of the stack, and do all slots that a row can name lie in it?
static inline bool walk_fast_is_plain(gp_stack_memory_t stack, gp_packed_row_t row, uintptr_t sp, uintptr_t cfa)
{
    return cfa > sp && cfa <= stack.seen_hi && cfa % WORD == 0 && cfa - stack.seen_lo >= GP_ROW_SLOT_MASK * WORD &&
           !(GP_RA_IN_REGISTER && gp_row_ra(row) == 0);
}

// The stack pointer of the next old frame above the present one, which has not met any.
static uintptr_t walk_fast_next_meeting(const gp_memo_use_t *use, uintptr_t sp)
{
    const gp_memo_frame_t *next = use->next;
    next += next != use->last && next->sp <= sp; // the same stack pointer, but another call
    return next != use->last ? next->sp : UINTPTR_MAX;
}

// Step by rows from w->frame and its row w->row, until a row is special, an old frame may be met or the output is full.
// `*at` is the memo's view of w->frame. After a step, w->row is the row of the new frame.
static void walk_fast_run_rows(gp_walk_t *w, gp_memo_frame_t *at)
{
    const gp_stack_memory_t stack = w->stack;
    const uintptr_t meeting = walk_fast_next_meeting(&w->memo, w->frame.sp);
    uintptr_t pc = w->frame.pc, sp = w->frame.sp, fp = w->frame.fp;
    uintptr_t *out = w->out, *const end = w->end;
    gp_packed_row_t row = w->row;
    uint32_t slot = w->slot;
    bool unlink = w->row_volatile;
    recorder_t rec;
    walk_fast_recorder_open(&rec, &w->memo, at);
    while (walk_fast_is_simple(row) && out != end && sp < meeting) {
        uintptr_t cfa = (gp_row_kind(row) == GP_ROW_SP ? sp : fp) + (uintptr_t)gp_row_off(row) * WORD;
        if (GP_UNLIKELY(!walk_fast_is_plain(stack, row, sp, cfa)))
            break;
        *out++ = pc - 1;
        walk_fast_recorder_commit(&rec, &w->memo);
        walk_fast_step_plain(row, cfa, &fp, rec.at);
        if (GP_UNLIKELY(unlink)) {
            gp_memo_unlink(rec.at);
            unlink = false;
        }
        pc = gp_arch_strip(rec.at->ra);
        sp = cfa;
        uint32_t from = slot;
        if (GP_UNLIKELY(!walk_fast_guess(from, pc, &row, &slot))) {
            w->frame = (gp_frame_t){.pc = pc, .sp = sp, .fp = fp};
            gp_walk_look_up(w);
            row = w->row;
            slot = w->slot;
            unlink = w->row_volatile;
            atomic_store_explicit(&gp_row_cache[from].next, slot, memory_order_relaxed);
        }
    }
    w->steps += (unsigned)(out - w->out);
    w->base_steps += (unsigned)(out - w->out);
    w->out = out;
    w->frame = (gp_frame_t){.pc = pc, .sp = sp, .fp = fp};
    w->row = row;
    w->row_volatile = unlink;
    w->slot = slot;
    *at = *rec.at;
    walk_fast_recorder_close(&rec, &w->memo);
}

// How gp_walk_step_packed() got to w->frame by `row`.
GP_UNSANITIZED static void walk_fast_set_linked(gp_memo_frame_t *at, gp_packed_row_t row, const gp_frame_t *frame)
{
    walk_fast_set_unlinked(at, frame);
    at->ra_at = at->fp_at = frame->sp - gp_row_ra(row) * WORD;
    at->ra = at->fp_word = gp_stack_word(at->ra_at);
    if (gp_row_fp(row) != 0) {
        at->fp_at = frame->sp - gp_row_fp(row) * WORD;
        at->fp_word = frame->fp;
    }
}

// Take one step that walk_fast_run_rows() would not: with every check there is, or off the old chain.
static enum gp_step walk_fast_step_careful(gp_walk_t *w, gp_memo_frame_t *at, bool on_chain)
{
    if (!on_chain && gp_memo_may_record(&w->memo))
        *w->memo.record++ = *at;
    gp_walk_store(w, w->frame.pc - 1);
    enum gp_step status = gp_walk_step_packed(w);
    if (status == GP_STEP_OK && w->row_volatile)
        walk_fast_set_unlinked(at, &w->frame);
    else if (status == GP_STEP_OK)
        walk_fast_set_linked(at, w->row, &w->frame);
    return status;
}

enum gp_step gp_walk_fast(gp_walk_t *w)
{
    gp_memo_frame_t at;
    enum gp_step status = GP_STEP_OK;
    bool is_looked_up = false;
    walk_fast_set_unlinked(&at, &w->frame);
    while (status == GP_STEP_OK && w->steps < GP_UNWIND_STEPS_MAX) {
        bool on_chain = gp_memo_meets(&w->memo, at.ra, at.sp, at.fp);
        if (on_chain) {
            walk_fast_follow_memo(w, &at);
            at = w->memo.next[-1];
        }
        if (on_chain || !is_looked_up)
            gp_walk_look_up(w);
        if (!walk_fast_is_simple(w->row))
            break;
        unsigned before = w->steps;
        if (!on_chain)
            walk_fast_run_rows(w, &at);
        is_looked_up = w->steps != before;
        if (!is_looked_up)
            status = walk_fast_step_careful(w, &at, on_chain);
        w->out = w->out == w->end ? w->frames + 1 : w->out;
    }
    return status;
}
