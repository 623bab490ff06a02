// SPDX-License-Identifier: MIT
#include "collect/cost.h"

#include <link.h>
#include <stddef.h>

#include "collect/counter_sums.h"
#include "collect/cpu_time.h"
#include "coro/hook_cost.h"
#include "coro/threads.h"
#include "signal/handler.h"
#include "signal/rest.h"

// As in modules.c: there in libgreenprof.a only.
extern const char __start_gp_own_code[] __attribute__((weak, visibility("hidden")));
extern const char __stop_gp_own_code[] __attribute__((weak, visibility("hidden")));

static void cost_set_own_code(uintptr_t lo, uintptr_t hi)
{
    atomic_store_explicit(&gp_handler_own_code, lo, memory_order_relaxed);
    atomic_store_explicit(&gp_handler_own_bytes, hi - lo, memory_order_relaxed);
}

// The executable segment that this function is in.
static int cost_find_own(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + segment->p_vaddr, hi = lo + segment->p_memsz;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || (uintptr_t)cost_find_own - lo >= hi - lo)
            continue;
        cost_set_own_code(lo, hi);
        return 1;
    }
    return 0;
}

void gp_cost_begin(void)
{
    if (atomic_load_explicit(&gp_handler_own_bytes, memory_order_relaxed) != 0)
        return;
    if (__start_gp_own_code != NULL)
        cost_set_own_code((uintptr_t)__start_gp_own_code, (uintptr_t)__stop_gp_own_code);
    else
        dl_iterate_phdr(cost_find_own, NULL);
}

enum { TRUSTED_HITS = 50 }; // samples in hooks from which on they tell better than the number of switches

// Few samples hit a hook, and at 10 Hz each stands for 100 ms: until there are some, it is mostly the number of
// switches that counts, and what was timed. That includes what hooks call outside of greenprof's code, where samples
// are not hits: they only add to it.
uint64_t gp_cost_hooks_ns(uint64_t hit_ns, uint64_t switches, int64_t more_ns, uint64_t samples, uint64_t sampled_ns)
{
    double counted_ns = (double)switches * GP_HOOK_SWITCH_NS + (double)more_ns;
    if (counted_ns <= 0)
        return hit_ns;
    if (samples == 0 || sampled_ns == 0)
        return (uint64_t)counted_ns;
    double weight_ns = (double)sampled_ns / (double)samples;
    double told_ns = counted_ns * ((double)hit_ns / weight_ns + TRUSTED_HITS) / (counted_ns / weight_ns + TRUSTED_HITS);
    return (uint64_t)(more_ns > 0 && told_ns < counted_ns ? counted_ns : told_ns);
}

void gp_cost_read(gp_cost_t *cost)
{
    static const enum gp_counter which[] = {GP_COUNTER_HANDLER_NS, GP_COUNTER_HOOK_NS, GP_COUNTER_SIGNALS,
                                            GP_COUNTER_SWITCHES, GP_COUNTER_SAMPLES};
    uint64_t sums[sizeof(which) / sizeof(which[0])], program_ns = gp_cpu_time_process();
    gp_rest_sums_t rests;
    gp_rest_read(program_ns, &rests);
    gp_counters_sum(which, sums, sizeof(which) / sizeof(which[0]));
    *cost = (gp_cost_t){
        .handler_ns = sums[0],
        .hook_ns = gp_cost_hooks_ns(sums[1], sums[3], gp_hook_cost_more_ns(), sums[4], program_ns - rests.cpu_ns),
        .delivery_ns = gp_cost_delivery_of(sums[2]),
        .own_ns = gp_thread_helper_cpu_ns(),
        .program_ns = program_ns,
        .rest_ns = rests.cpu_ns,
        .switches = sums[3],
        .signals = sums[2],
    };
}
