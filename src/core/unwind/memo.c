// SPDX-License-Identifier: MIT
// The pool of stack memos.
#include "unwind/memo.h"

#include "base/copy_words.h"
#include "unwind/row_cache.h"

enum { MANY = 8 };

// About 2 MiB of zero pages; a memo's pages are touched when its stack is first walked.
static gp_memo_t memos[GP_MEMO_COUNT];
static _Atomic uintptr_t owners[GP_MEMO_COUNT]; // thread pointer of the thread that walks with it; 0 = none does

static _Atomic unsigned first_uses;

static uintptr_t memo_self(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static gp_memo_t *memo_of(uintptr_t stack_end)
{
    return &memos[(stack_end >> 4) * 0x9e3779b97f4a7c15u >> 56];
}

void gp_memo_prefetch(uintptr_t stack_end)
{
    const gp_memo_t *memo = memo_of(stack_end);
    __builtin_prefetch(&owners[memo - memos], 1);
    __builtin_prefetch(memo, 1);
}

static bool memo_can_trust(const gp_memo_t *memo, const gp_stack_memory_t *stack, unsigned epoch)
{
    return memo->epoch == epoch && memo->stack_end == stack->hi;
}

void gp_memo_take(gp_memo_use_t *use, const gp_stack_memory_t *stack)
{
    gp_memo_t *memo = memo_of(stack->hi);
    use->memo = NULL;
    use->record = use->record_end = NULL;
    use->next = NULL;
    use->run = use->last = NULL;
    use->gap = false;
    uintptr_t nothing = 0;
    // Acquire: pairs with memo_give_back().
    if (!atomic_compare_exchange_strong_explicit(&owners[memo - memos], &nothing, memo_self(), memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    use->memo = memo;
    atomic_store_explicit(&memo->taken, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    unsigned epoch = gp_cache_epoch();
    if (!memo_can_trust(memo, stack, epoch)) {
        if (memo->stack_end == 0)
            atomic_fetch_add_explicit(&first_uses, 1, memory_order_relaxed);
        memo->epoch = epoch;
        memo->stack_end = stack->hi;
        memo->start = memo->end = GP_MEMO_HEADROOM;
    }
    use->next = memo->chain[memo->current] + memo->start;
    use->last = memo->chain[memo->current] + memo->end;
    use->record = memo->chain[!memo->current] + GP_MEMO_HEADROOM;
    use->record_end = memo->chain[!memo->current] + GP_MEMO_FRAMES;
}

bool gp_memo_many(void **memory, size_t *bytes)
{
    *memory = memos;
    *bytes = sizeof memos;
    return atomic_load_explicit(&first_uses, memory_order_relaxed) >= MANY;
}

void gp_memo_leave(gp_memo_use_t *use)
{
    size_t count = (size_t)(use->next - use->run);
    size_t room = (size_t)(use->record_end - use->record);
    // Frames beyond the room are dropped, and all that follow with them: a chain has no holes.
    if (use->gap)
        count = 0;
    gp_copy_words(use->record, use->run, (count < room ? count : room) * sizeof *use->record);
    use->record += count < room ? count : room;
    use->gap |= count > room;
    use->run = NULL;
}

bool gp_memo_may_record(gp_memo_use_t *use)
{
    if (use->memo == NULL || (use->run != NULL && use->next == use->memo->chain[use->memo->current] + GP_MEMO_FRAMES))
        return false; // beyond the end of a full chain
    if (use->run != NULL)
        gp_memo_leave(use);
    use->gap |= use->record == use->record_end;
    return !use->gap;
}

// Put the recorded frames right before the old frame that was met.
static void memo_prepend(gp_memo_t *memo, const gp_memo_use_t *use, unsigned count)
{
    unsigned met = (unsigned)(use->run - memo->chain[memo->current]);
    gp_copy_words(memo->chain[memo->current] + met - count, use->record - count, count * sizeof *use->record);
    memo->start = met - count;
}

// Is there room for `count` frames before the old frame met, and do they belong there?
static bool memo_can_prepend(const gp_memo_t *memo, const gp_memo_use_t *use, unsigned count)
{
    return use->run != NULL && !use->gap && count <= (unsigned)(use->run - memo->chain[memo->current]);
}

static unsigned memo_recorded(const gp_memo_use_t *use)
{
    const gp_memo_t *memo = use->memo;
    return (unsigned)(use->record - memo->chain[!memo->current]) - (unsigned)GP_MEMO_HEADROOM;
}

static void memo_replace(gp_memo_t *memo, unsigned count)
{
    memo->current = !memo->current;
    memo->start = GP_MEMO_HEADROOM;
    memo->end = GP_MEMO_HEADROOM + count;
}

static void memo_give_back(const gp_memo_t *memo)
{
    // Release: pairs with the exchange in gp_memo_take().
    atomic_store_explicit(&owners[memo - memos], 0, memory_order_release);
}

// Give back those of walks that will not end.
static void memo_forget(bool own)
{
    for (size_t i = 0; i < GP_MEMO_COUNT; i++) {
        uintptr_t owner = atomic_load_explicit(&owners[i], memory_order_relaxed);
        if (owner != 0 && (owner == memo_self()) == own) {
            memos[i].stack_end = 0; // what is in it may be half written
            memo_give_back(&memos[i]);
        }
    }
}

void gp_memo_forget_own(void)
{
    memo_forget(true);
}

void gp_memo_forget_others(void)
{
    memo_forget(false);
}

void gp_memo_release(gp_memo_use_t *use)
{
    gp_memo_t *memo = use->memo;
    if (memo == NULL)
        return;
    if (memo_can_prepend(memo, use, memo_recorded(use))) {
        memo_prepend(memo, use, memo_recorded(use));
    } else {
        if (use->run != NULL && !use->gap)
            gp_memo_leave(use);
        memo_replace(memo, memo_recorded(use));
    }
    memo_give_back(memo);
}
