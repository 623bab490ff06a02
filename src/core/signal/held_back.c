// SPDX-License-Identifier: MIT
#include "signal/held_back.h"

#include "base/arch.h"
#include "base/peek.h"
#include "signal/clock_engine.h"

enum {
    DELIVERY_NS = 50000,        // that a signal takes to come
    HANDLERS = 2,               // the handler's own time, before and after
    FRAME_BYTES_MAX = 16 << 10, // of a signal, AVX-512 and AMX, or SVE, included
    PIECE_WORDS = 64,
};

// For how long has its signal waited, of `used_ns` since the sample before?
static uint64_t held_back_late_ns(const gp_thread_t *thread, uint64_t used_ns, uint64_t cpu_ns)
{
    const gp_clock_engine_t *engine = atomic_load_explicit(&thread->timer.engine, memory_order_relaxed);
    return engine != NULL ? engine->overdue_ns(&thread->timer, used_ns, cpu_ns) : 0;
}

// The frame of a handler that has returned to this place is still below the stack pointer: nothing has been there
// since, as this handler is elsewhere.
static bool held_back_by_frame(const ucontext_t *context)
{
    const uintptr_t place[] = {gp_arch_sp(context), gp_arch_pc(context)};
    uintptr_t words[PIECE_WORDS + 1] = {0},
                                  from = (place[0] - GP_ARCH_RED_ZONE_BYTES) & ~(uintptr_t)(sizeof(*words) - 1);
    for (size_t bytes = 0; bytes < FRAME_BYTES_MAX; bytes += PIECE_WORDS * sizeof(*words)) {
        from -= PIECE_WORDS * sizeof(*words);
        words[PIECE_WORDS] = words[0]; // of the piece above
        if (!gp_peek(from, words, PIECE_WORDS * sizeof(*words)))
            return false;
        for (size_t i = 0; i < PIECE_WORDS; i++)
            if (words[i] == place[0] && words[i + 1] == place[1])
                return true;
    }
    return false;
}

static bool held_back_by_handler(const gp_thread_t *thread, const ucontext_t *context)
{
    return thread->returned_to.pc == gp_arch_pc(context) && thread->returned_to.sp == gp_arch_sp(context);
}

// In a short loop a signal comes to the place of a return by chance: there a late one tells, or a
// handler that is known to have blocked it.
static bool held_back_by_call(const gp_thread_t *thread, const ucontext_t *context, int number, bool is_late)
{
    return gp_held_back_by_mask(context, number, is_late) ||
           ((is_late || thread->returned_to.is_small) && held_back_by_handler(thread, context)) ||
           (is_late && held_back_by_frame(context));
}

uint64_t gp_held_back_ns(const gp_thread_t *thread, const ucontext_t *context, int number, uint64_t cpu_ns)
{
    uint64_t all_ns = cpu_ns - thread->cpu.sample_ns;
    uint64_t used_ns = all_ns > thread->cpu.carried_ns ? all_ns - thread->cpu.carried_ns : all_ns;
    uint64_t late_ns = held_back_late_ns(thread, used_ns, cpu_ns), due_ns = used_ns - late_ns;
    bool is_late = late_ns > DELIVERY_NS + HANDLERS * thread->timer.cost_ns;
    // In a wait with a mask of its own, such as ppoll(): the one that comes back behind it.
    bool is_apart = ((const uint64_t *)&context->uc_sigmask)[0] >> (number - 1) & 1;
    if (thread->blocks_all || (!is_apart && !held_back_by_call(thread, context, number, is_late)))
        return 0;
    return all_ns - (late_ns < due_ns / 2 ? late_ns : due_ns / 2);
}
