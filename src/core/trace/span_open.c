// SPDX-License-Identifier: MIT
// Spans that are open, as the collector sees them.
#include <string.h>

#include "signal/ledger_edges.h"
#include "trace/span.h"
#include "trace/span_mark.h"
#include "trace/span_watch.h"

typedef union written { // a mark that goes to no ring
    gp_span_mark_t mark;
    char bytes[sizeof(gp_span_mark_t) + GP_SPAN_TEXT_MAX];
} written_t;

// Copy what a slot says, unless it is over by then. Fields added meanwhile may be missing.
static bool span_open_copy_open(const gp_span_slot_t *slot, uint64_t generation, uint64_t now, written_t *written)
{
    uint32_t renames = atomic_load_explicit(&slot->renames, memory_order_acquire);
    uint16_t text_len = atomic_load_explicit(&slot->text_len, memory_order_acquire);
    if (renames % 2 != 0)
        return false; // until the next look
    gp_span_mark_fill(&written->mark, slot, now);
    memcpy(written->mark.text, slot->text, text_len);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&slot->renames, memory_order_relaxed) != renames)
        return false;
    unsigned texts = 0;
    for (uint16_t i = written->mark.span.name_len; i < text_len; i++)
        texts += written->mark.text[i] == '\0';
    if (texts % 2 != 0) // a key without its value, yet
        do
            text_len--;
        while (text_len > written->mark.span.name_len && written->mark.text[text_len - 1] != '\0');
    written->mark.field_count = (uint16_t)(texts / 2);
    written->mark.fields_len = (uint16_t)(text_len - written->mark.span.name_len);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->generation, memory_order_relaxed) == generation &&
           slot->process == gp_span_slot_process();
}

void gp_span_each_open(uint64_t now, void (*take)(void *context, const gp_span_mark_t *mark), void *context)
{
    static written_t written; // the drain lock
    uint32_t slots = gp_span_slot_count();
    for (uint32_t i = 0; i < slots; i++) {
        const gp_span_slot_t *slot = gp_span_slot_nth(i);
        if (slot == NULL)
            continue;
        uint64_t generation = atomic_load_explicit(&slot->generation, memory_order_acquire);
        if (!(generation & 1) || !span_open_copy_open(slot, generation, now, &written))
            continue;
        written.mark.span.flags |= GP_SPAN_OPEN;
        take(context, &written.mark);
    }
}

void gp_span_coro_over(prof_coro_t *coro, uint64_t id, uint64_t ticks, void (*take)(const gp_span_mark_t *mark))
{
    static written_t written; // the drain lock
    uint64_t handle = gp_ledger_edge_load(&gp_coro_context(coro)->span);
    gp_span_slot_t *slot = gp_span_slot_open(handle);
    if (slot == NULL || slot->coro != coro || slot->span.coro_id != id || !gp_span_is_implicit(slot) ||
        !span_open_copy_open(slot, gp_span_handle_generation(handle), ticks, &written) ||
        !gp_span_slot_claim(slot, handle))
        return;
    gp_span_watch_end(slot, (gp_request_end_t){.is_collector = true}, ticks);
    written.mark.span.end_coro_id = id;
    take(&written.mark);
    gp_span_slot_give_back(handle);
}
