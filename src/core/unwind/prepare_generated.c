// SPDX-License-Identifier: MIT
// Which memory is executable and no module's.
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/maps.h"
#include "unwind/arch.h"
#include "unwind/generated.h"
#include "unwind/module.h"

#define LEAST_NS 20000000ull   // between two looks
#define MOST_NS  5000000000ull // while they find nothing new
enum { SHARE = 100 };          // of the time, at most

static gp_generated_table_t tables[2];
static bool is_wanted;
static uint64_t next_ns, pause_ns = LEAST_NS;

typedef struct run { // of mappings without a gap that are such code, or reserved for more of it
    gp_generated_table_t *table;
    uintptr_t lo, hi;
    bool has_code;
} run_t;

static uint64_t prepare_generated_now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void prepare_generated_end_run(run_t *run)
{
    gp_generated_table_t *table = run->table;
    if (run->has_code && table->count < GP_GENERATED_MAX) {
        table->ranges[table->count].lo = run->lo;
        table->ranges[table->count++].hi = run->hi;
    }
    run->lo = run->hi = 0;
    run->has_code = false;
}

static bool prepare_generated_visit(const gp_mapping_t *mapping, void *argument)
{
    run_t *run = argument;
    gp_location_t where;
    bool is_code =
        (mapping->protection & PROT_EXEC) && gp_addr_plausible(mapping->lo) && !gp_module_locate(mapping->lo, &where);
    bool is_reserved = mapping->protection == PROT_NONE && mapping->inode == 0;
    if (run->hi != mapping->lo || !(is_code || is_reserved))
        prepare_generated_end_run(run);
    if (!is_code && !is_reserved)
        return true;
    run->lo = run->lo != 0 ? run->lo : mapping->lo;
    run->hi = mapping->hi;
    run->has_code |= is_code;
    return true;
}

static bool prepare_generated_are_equal(const gp_generated_table_t *a, const gp_generated_table_t *b)
{
    return b != NULL ? a->count == b->count && memcmp(a->ranges, b->ranges, a->count * sizeof(a->ranges[0])) == 0
                     : a->count == 0;
}

void gp_generated_met(uintptr_t pc)
{
    gp_location_t where;
    is_wanted |= !is_wanted && (gp_module_locate(pc, &where) || !gp_generated_has(pc));
}

void gp_generated_look(void)
{
    uint64_t now = is_wanted ? prepare_generated_now_ns(CLOCK_MONOTONIC) : 0;
    if (!is_wanted || now < next_ns)
        return;
    const gp_generated_table_t *was = atomic_load_explicit(&gp_generated, memory_order_relaxed);
    gp_generated_table_t *next = was == &tables[0] ? &tables[1] : &tables[0];
    run_t run = {.table = next};
    uint64_t begun_ns = prepare_generated_now_ns(CLOCK_THREAD_CPUTIME_ID);
    is_wanted = false;
    next->count = 0;
    gp_maps_each(prepare_generated_visit, &run);
    prepare_generated_end_run(&run);
    bool is_new = !prepare_generated_are_equal(next, was);
    if (is_new) // release: pairs with gp_generated_has()'s acquire
        atomic_store_explicit(&gp_generated, next, memory_order_release);
    uint64_t cost_ns = SHARE * (prepare_generated_now_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
    pause_ns = is_new ? LEAST_NS : pause_ns < MOST_NS / 2 ? 2 * pause_ns : MOST_NS;
    next_ns = now + (pause_ns > cost_ns ? pause_ns : cost_ns);
}
