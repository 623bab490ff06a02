// SPDX-License-Identifier: MIT
#include "signal/held_back.h"

#include <sys/syscall.h>

#include "base/peek.h"
#include "signal/call_number.h"
#include "signal/clock_engine.h"

enum { DELIVERY_NS = 50000, HANDLERS = 2 }; // that a signal takes to come; and the handler's own time, before and after

// For how long has its signal waited, of `used_ns` since the sample before?
static uint64_t held_back_late_ns(const gp_thread_t *thread, uint64_t used_ns, uint64_t cpu_ns)
{
    const gp_clock_engine_t *engine = atomic_load_explicit(&thread->timer.engine, memory_order_relaxed);
    return engine != NULL ? engine->overdue_ns(&thread->timer, used_ns, cpu_ns) : 0;
}

#if defined(__x86_64__)

enum {
    RED_ZONE_BYTES = 128,
    FRAME_BYTES_MAX = 16 << 10, // of a signal, AVX-512 and AMX included
    PIECE_WORDS = 64,
    SET_BYTES = 8,
};

static bool held_back_has(uintptr_t set, int number, bool otherwise)
{
    uint64_t bits;
    return set != 0 && gp_peek(set, &bits, sizeof(bits)) ? bits >> (number - 1) & 1 : otherwise;
}

// rt_sigprocmask has just let it through. Source: syscall(2): the arguments are still in their registers.
static bool held_back_by_mask(const greg_t *registers, const ucontext_t *context, int number, bool is_late)
{
    greg_t how = registers[REG_RDI];
    uintptr_t set = (uintptr_t)registers[REG_RSI], old = (uintptr_t)registers[REG_RDX];
    uint64_t call;
    if (registers[REG_RCX] != registers[REG_RIP] || registers[REG_RAX] != 0 || registers[REG_R10] != SET_BYTES ||
        (how != SIG_UNBLOCK && how != SIG_SETMASK) || set == 0)
        return false;
    if (!held_back_has(old, number, is_late))
        return false;
    bool lets_through = old == set || held_back_has(set, number, how == SIG_SETMASK) == (how == SIG_UNBLOCK);
    return lets_through && gp_call_number(context, &call) && call == SYS_rt_sigprocmask;
}

// The frame of a handler that has returned to this place is still below the stack pointer: nothing has been there
// since, as this handler is elsewhere.
static bool held_back_by_frame(const greg_t *registers)
{
    const uintptr_t place[] = {(uintptr_t)registers[REG_RSP], (uintptr_t)registers[REG_RIP]};
    uintptr_t words[PIECE_WORDS + 1] = {0}, from = (place[0] - RED_ZONE_BYTES) & ~(uintptr_t)(sizeof(*words) - 1);
    _Static_assert(REG_RIP == REG_RSP + 1, "one behind the other in a frame");
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

static bool held_back_by_handler(const gp_thread_t *thread, const greg_t *registers)
{
    return thread->returned_to.pc == (uintptr_t)registers[REG_RIP] &&
           thread->returned_to.sp == (uintptr_t)registers[REG_RSP];
}

// In a short loop a signal comes to the place of a return by chance: there a late one tells, or a
// handler that is known to have blocked it.
static bool held_back_by_call(const gp_thread_t *thread, const ucontext_t *context, int number, bool is_late)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    return held_back_by_mask(registers, context, number, is_late) ||
           ((is_late || thread->returned_to.is_small) && held_back_by_handler(thread, registers)) ||
           (is_late && held_back_by_frame(registers));
}

#else

static bool held_back_by_call(const gp_thread_t *thread, const ucontext_t *context, int number, bool is_late)
{
    (void)thread, (void)context, (void)number, (void)is_late;
    return false;
}

#endif

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
