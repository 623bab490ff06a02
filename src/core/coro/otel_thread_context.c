// SPDX-License-Identifier: MIT
#include "coro/otel_thread_context.h"

#include <endian.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coro/switch.h"
#include "coro/threads.h"
#include "signal/handler.h"

_Atomic bool gp_otel_thread_is_on;
static const gp_otel_thread_source_t *source; // constant once `gp_otel_thread_is_on` may be set

void gp_otel_thread_begin(const gp_otel_thread_source_t *from)
{
    source = from;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    if (atomic_load_explicit(&gp_handler_sampling, memory_order_acquire))
        gp_otel_thread_resume();
}

void gp_otel_thread_resume(void)
{
    if (source != NULL) {
        atomic_fetch_or_explicit(&gp_switch_special, GP_SWITCH_SHOWN, memory_order_relaxed);
        atomic_store_explicit(&gp_otel_thread_is_on, true, memory_order_release);
    }
}

void gp_otel_thread_pause(void)
{
    if (!atomic_exchange_explicit(&gp_otel_thread_is_on, false, memory_order_seq_cst))
        return;
    atomic_fetch_and_explicit(&gp_switch_special, ~(uint32_t)GP_SWITCH_SHOWN, memory_order_relaxed);
    // Partner of the fence in gp_otel_thread_write(): a thread that still finds it on has set `valid` before the store
    // below.
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        atomic_store_explicit(&thread->shown.valid, 0, memory_order_relaxed);
}

// Set the thread's pointer. Returns false where the thread would not take it back when it ends.
static bool otel_thread_context_attach(gp_thread_t *thread)
{
    if (gp_thread_attach() != thread || !thread->keyed)
        return false;
    void **pointer = source->pointer();
    thread->shown_at = (void *volatile *)pointer;
    atomic_store_explicit(&thread->shown.valid, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    *thread->shown_at = &thread->shown;
    return true;
}

void gp_otel_thread_write(gp_thread_t *thread, prof_coro_t *coro)
{
    uint64_t trace[2], id;
    if (thread == NULL || (thread->shown_at == NULL && !otel_thread_context_attach(thread)))
        return;
    gp_otel_thread_record_t *record = &thread->shown;
    source->read(coro, trace, &id);
    uint64_t span = htobe64(id);
    bool is_shown = id != 0 && (trace[0] | trace[1]) != 0;
    atomic_store_explicit(&record->valid, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(record->trace, trace, sizeof(record->trace));
    memcpy(record->span, &span, sizeof(record->span));
    record->flags = GP_SHOWN_SAMPLED;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&record->valid, is_shown, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(!atomic_load_explicit(&gp_otel_thread_is_on, memory_order_relaxed), 0))
        atomic_store_explicit(&record->valid, 0, memory_order_relaxed);
}

void gp_otel_thread_end_thread(gp_thread_t *thread)
{
    if (thread->shown_at == NULL)
        return;
    *thread->shown_at = NULL;
    thread->shown_at = NULL;
}
