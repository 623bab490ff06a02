#include "signal/span.h"

#include "signal/edge.h"
#include "signal/handler.h"

enum {
    LEAST_NS = 100000, // of a wait that is shown
    SPANS_PER_SECOND = 5000,
    WINDOWS_PER_SECOND = 10, // how often the rate is looked at
    FEW = 4,                 // a window with a fourth of what is allowed halves `span_least`
};

_Atomic bool gp_span_wanted;

void gp_span_begin(gp_thread_t *thread)
{
    bool wanted = atomic_load_explicit(&gp_span_wanted, memory_order_relaxed);
    thread->span_least = wanted ? gp_ticks_from_ns(LEAST_NS) : INT64_MAX;
    thread->span_window = gp_ticks();
    thread->span_count = 0;
}

static void adapt(gp_thread_t *thread, uint64_t now)
{
    enum { MOST = SPANS_PER_SECOND / WINDOWS_PER_SECOND };
    bool over = now - thread->span_window >= gp_ticks_from_ns(1000000000u / WINDOWS_PER_SECOND);
    thread->span_count++;
    if (!over && thread->span_count < MOST)
        return;
    if (!over)
        thread->span_least *= 2;
    else if (thread->span_count < MOST / FEW && thread->span_least / 2 >= gp_ticks_from_ns(LEAST_NS))
        thread->span_least /= 2;
    thread->span_window = now;
    thread->span_count = 0;
}

// All but the wait's end.
static void fill(gp_span_mark_t *mark, prof_coro_t *coro, uint64_t id)
{
    mark->coro = coro;
    mark->coro_id = id;
    for (int i = 0; i < 2; i++)
        mark->trace[i] = atomic_load_explicit(&coro->trace[i], memory_order_relaxed);
    mark->start = gp_edge_load(&coro->span_start);
    mark->left = gp_edge_load(&coro->since);
    mark->slice_ticks = gp_edge_load(&coro->slice_ticks) - gp_edge_load(&coro->span_slice);
    mark->waker = gp_edge_load(&coro->waker);
    mark->thread = atomic_load_explicit(&coro->span_thread, memory_order_relaxed);
}

void gp_span_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t ready, uint64_t now)
{
    gp_span_mark_t *mark = gp_ring_reserve(&thread->ring, sizeof(*mark));
    if (mark == NULL) {
        gp_thread_count(thread, GP_COUNTER_MERGED_SPANS);
        return;
    }
    fill(mark, coro, id);
    mark->end = now;
    mark->ready = ready;
    mark->is_open = mark->is_waiting = false;
    gp_ring_commit(mark, GP_RING_SPAN);
    gp_edge_store(&coro->span_start, now);
    gp_edge_store(&coro->span_slice, gp_edge_load(&coro->slice_ticks));
    atomic_store_explicit(&coro->span_thread, thread->index, memory_order_relaxed);
    adapt(thread, now);
    if (gp_ring_fill(&thread->ring) > thread->ring.capacity / 2)
        gp_handler_kick();
}

bool gp_span_last(prof_coro_t *coro, uint64_t id, uint64_t now, gp_span_mark_t *mark)
{
    if (atomic_load_explicit(&coro->epoch, memory_order_acquire) !=
        atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed))
        return false; // it has done nothing since sampling started
    fill(mark, coro, id);
    mark->ready = gp_edge_load(&coro->ready_ticks);
    mark->ready = mark->ready < now ? mark->ready : now; // a timer to come
    mark->is_open = true;
    mark->is_waiting = atomic_load_explicit(&coro->running, memory_order_acquire) == 0;
    if (!mark->is_waiting) {
        mark->slice_ticks += now > mark->left ? now - mark->left : 0;
        mark->left = now;
    }
    mark->end = now;
    return mark->start <= mark->left && mark->left <= mark->end;
}
