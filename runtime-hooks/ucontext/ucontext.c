// SPDX-License-Identifier: MIT
// glibc ucontext: makecontext announces a coroutine, swapcontext and setcontext switch, returning from its entry
// function ends it. Interposed, so that an unchanged program is covered. GNU Pth, PCL and others switch through these
// as well.
//
// Source: glibc sysdeps/unix/sysv/linux/{x86_64,aarch64}/{makecontext,swapcontext,__start_context}; runtimes.md's main
// table.
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <ucontext.h>

#include "base/arch.h"
#include "collect/sampling_signal.h"
#include "coro/announce.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "signal/ledger_edges.h"
#include "signal/region.h"
#include "unwind/unwind.h"

#include "ucontext_hook.h"

typedef void make_t(ucontext_t *, void (*)(void), int, ...);

enum { FEW_ARGUMENTS = 16, MOST_ARGUMENTS = 64 };

uintptr_t gp_ucontext_start_context;

static uintptr_t ucontext_saved_sp(const ucontext_t *context)
{
    return gp_arch_sp(context);
}

static void ucontext_announce_early(const ucontext_t *context, uintptr_t sp)
{
    uintptr_t lo = (uintptr_t)context->uc_stack.ss_sp, hi = lo + context->uc_stack.ss_size;
    uint64_t id;
    if (lo == 0 || sp < lo || sp >= hi)
        return;
    prof_coro_t *coro = gp_region_find(sp, &id);
    if (coro == NULL || coro->kind == GP_CORO_FOUND)
        gp_hook_owns(gp_coro_announce(lo, hi, 0, NULL));
}

void gp_ucontext_switch(const ucontext_t *target, const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_attach();
    if (thread == NULL || target == NULL)
        return;
    if (__builtin_expect(atomic_load_explicit(&gp_switch_meets_early, memory_order_relaxed), 0))
        ucontext_announce_early(target, ucontext_saved_sp(target));
    if (thread->ended.coro != NULL)
        gp_hook_retire_ended(thread, park->sp);
    gp_switch_to_stack(ucontext_saved_sp(target), park);
}

__attribute__((noinline, cold)) static void ucontext_swap_any(const uintptr_t *arguments, const gp_park_t *park)
{
    if (atomic_load_explicit(&gp_switch_meets_early, memory_order_relaxed))
        ucontext_announce_early((const ucontext_t *)arguments[0], park->sp);
    gp_ucontext_switch((const ucontext_t *)arguments[1], park);
}

void gp_ucontext_swap(const uintptr_t *arguments, const gp_park_t *park)
{
    const gp_thread_t *thread = gp_thread_self;
    const ucontext_t *target = (const ucontext_t *)arguments[1];
    if (__builtin_expect(thread != NULL && thread->keyed && thread->ended.coro == NULL && target != NULL &&
                             !atomic_load_explicit(&gp_switch_meets_early, memory_order_relaxed),
                         1))
        gp_switch_to_stack(ucontext_saved_sp(target), park);
    else
        ucontext_swap_any(arguments, park);
}

// setcontext() saves nothing: a coroutine that leaves its stack by it is over, unless a context saved before is kept.
void gp_ucontext_leave(const ucontext_t *target, const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_attach();
    uint64_t id = 0;
    bool outside;
    prof_coro_t *from = thread != NULL ? gp_thread_coro_at(thread, park->sp, &id, &outside) : NULL;
    gp_ucontext_switch(target, park);
    if (from == NULL || from->kind != GP_CORO_ANNOUNCED || gp_region_holds(from, id, ucontext_saved_sp(target)) ||
        atomic_load_explicit(&gp_ledger_edge_left_returns, memory_order_relaxed))
        return;
    if (atomic_load_explicit(&from->id, memory_order_relaxed) == id)
        gp_ledger_edge_store(&from->ready_ticks, GP_EDGE_LEFT);
}

void gp_ucontext_set(const uintptr_t *arguments, const gp_park_t *park)
{
    gp_ucontext_leave((const ucontext_t *)arguments[0], park);
}

void gp_ucontext_ended(const ucontext_t *link)
{
    gp_thread_t *thread = gp_thread_attach();
    if (thread == NULL)
        return;
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
    uint64_t id;
    prof_coro_t *self = gp_region_find(sp, &id);
    gp_park_t park = {.sp = sp}; // never goes on
    if (link != NULL && __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        gp_switch_to_stack(ucontext_saved_sp(link), &park);
    gp_hook_ends(thread, self, id, sp);
}

// Frames are looked up by return address - 1; both routines are shorter than 32 bytes.
static void ucontext_add_entries(void)
{
    gp_unwind_entry_add(gp_ucontext_start_context - 1, gp_ucontext_start_context + 32);
    gp_unwind_entry_add((uintptr_t)gp_ucontext_return - 1, (uintptr_t)gp_ucontext_return + 32);
}

// Let the entry function return through our stub. glibc put the address of its __start_context there.
static void ucontext_hook_return(ucontext_t *context)
{
    uintptr_t *slot = gp_arch_return_slot(context);
    static _Atomic bool entry_known;
    if (gp_arch_guards_returns())
        return;
    if (gp_ucontext_start_context == 0) {
        Dl_info info;
        if (dladdr((void *)*slot, &info) == 0 || info.dli_fbase == NULL)
            return;
        gp_ucontext_start_context = *slot;
    }
    if (*slot != gp_ucontext_start_context)
        return;
    if (!atomic_load_explicit(&entry_known, memory_order_relaxed) &&
        !atomic_exchange_explicit(&entry_known, true, memory_order_relaxed))
        ucontext_add_entries();
    *slot = (uintptr_t)gp_ucontext_return;
}

__thread const gp_hook_maker_t *gp_hook_maker;

static void ucontext_announce(ucontext_t *context, void (*entry)(void))
{
    if (gp_sampling_signal_is_wanted()) // a context must not block it either
        sigdelset(&context->uc_sigmask, gp_sampling_signal());
    const gp_hook_maker_t *maker = gp_hook_maker;
    uintptr_t lo = (uintptr_t)context->uc_stack.ss_sp, hi = lo + context->uc_stack.ss_size;
    uintptr_t start = maker != NULL && maker->entry != 0 ? maker->entry : (uintptr_t)entry;
    prof_coro_t *coro = gp_coro_announce(lo, hi, start, maker != NULL ? maker->name : NULL);
    if (coro == NULL)
        return;
    gp_hook_owns(coro);
    ucontext_hook_return(context);
}

#define FOUR(i)    a[i], a[(i) + 1], a[(i) + 2], a[(i) + 3]
#define SIXTEEN(i) FOUR(i), FOUR((i) + 4), FOUR((i) + 8), FOUR((i) + 12)

// Passing more arguments than argc says is harmless: glibc copies argc of them, each as a machine word.
static void ucontext_make(make_t *real_make, ucontext_t *context, void (*entry)(void), int argc, va_list list)
{
    long a[MOST_ARGUMENTS] = {0};
    for (int i = 0; i < argc && i < MOST_ARGUMENTS; i++)
        a[i] = va_arg(list, long);
    if (argc <= FEW_ARGUMENTS)
        real_make(context, entry, argc, SIXTEEN(0));
    else
        real_make(context, entry, argc, SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48));
}

PROF_API void makecontext(ucontext_t *context, void (*entry)(void), int argc, ...)
{
    make_t *real_make = GP_ORIGINAL(make_t, "makecontext");
    va_list list;
    va_start(list, argc);
    if (argc <= 0)
        real_make(context, entry, argc);
    else
        ucontext_make(real_make, context, entry, argc, list);
    va_end(list);
    ucontext_announce(context, entry);
}
