// SPDX-License-Identifier: MIT
#include "trace/span_watch.h"

#include <string.h>

#include "signal/ticks.h"

const gp_request_watch_t *_Atomic gp_request_watch;

void gp_span_watch_begin(gp_span_slot_t *slot, bool has_parent)
{
    slot->watch = atomic_load_explicit(&gp_request_watch, memory_order_acquire);
    bool is_watched = slot->watch != NULL && !has_parent && slot->span.is_chosen;
    slot->watched = is_watched ? slot->watch->begins() : NULL;
}

void gp_span_watch_end_watched(gp_span_slot_t *slot, gp_request_end_t end, uint64_t now)
{
    if (slot->process != gp_span_slot_process())
        return;
    memcpy(end.trace, slot->span.trace, sizeof(end.trace));
    end.id = slot->span.id;
    end.duration_ns = (int64_t)(now - slot->span.start) > 0 ? gp_ticks_to_ns(now - slot->span.start) : 0;
    end.is_asked = atomic_load_explicit(&slot->flags, memory_order_relaxed) & GP_SPAN_ASKED;
    slot->watch->ends(slot->watched, &end);
}
