// SPDX-License-Identifier: MIT
#include "watch/slow_held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts/names.h"
#include "model/kinds.h"
#include "report/sleep_call.h"
#include "watch/slow_held_private.h"

#define FRESH_NS UINT64_C(1000000000) // a coroutine unseen on its thread for so long may have left it

static gp_sleep_call_t slow_held_sleep_at(const gp_held_process_t *process, const gp_held_leaf_t *leaf,
                                          gp_symbolizer_t *symbolizer)
{
    gp_namer_t namer = {.facts = &process->facts, .symbolizer = symbolizer};
    const gp_symbol_t *symbol = NULL;
    for (size_t i = 0; i < GP_HELD_LEAF_FRAMES; i++) {
        gp_name_t name;
        if (GP_LOC_MODULE(leaf->frames[i]) == GP_MODULE_LANGUAGE)
            return GP_SLEEP_OTHER; // a language's loops are called [hub], or are on their threads' own stacks
        bool is_known = gp_facts_module(&process->facts, leaf->frames[i]) != NULL;
        symbol = is_known && gp_facts_name(&namer, leaf->frames[i], &name) == 0 ? name.symbol : NULL;
        if (symbol == NULL || !gp_symbol_is_hidden(symbol))
            break;
    }
    return symbol != NULL ? gp_sleep_call(symbol->function) : GP_SLEEP_MANY;
}

// Does a coroutine do a loop's work: do the others of its thread come back to it?
static bool slow_held_does_loops_work(const gp_held_process_t *process, const gp_held_coro_t *coro)
{
    uint32_t number = gp_table_find(&process->threads.table, coro->thread);
    if (number == GP_INDEX_NONE)
        return true;
    const gp_held_thread_t *thread = &process->threads.items[number];
    return thread->wakes > 0 ? 2 * coro->wakes >= thread->wakes : 2 * coro->switches + 2 >= thread->switches;
}

static bool slow_held_is_loop_at_rest(const gp_held_process_t *process, const gp_held_coro_t *coro,
                                      gp_symbolizer_t *symbolizer)
{
    if (coro->cpu_ns >= coro->blocked_ns)
        return false;
    if (strcmp(coro->name, "[hub]") == 0)
        return true;
    gp_sleep_call_t sleep = slow_held_sleep_at(process, &coro->leaf, symbolizer);
    return sleep == GP_SLEEP_LOOP || (sleep == GP_SLEEP_MANY && slow_held_does_loops_work(process, coro));
}

static size_t slow_held_count_others(const gp_held_process_t *process, const gp_held_coro_t *coro)
{
    size_t count = 0;
    for (size_t i = 0; i < process->coros.count; i++) {
        const gp_held_coro_t *other = &process->coros.items[i];
        count += other != coro && other->thread == coro->thread && other->over_ns == 0 &&
                 other->kind == GP_CORO_ANNOUNCED && strcmp(other->name, "[hub]") != 0;
    }
    return count;
}

static bool slow_held_works_for_request(const gp_recovery_t *recovery, const gp_held_coro_t *coro)
{
    for (size_t i = 0; i < recovery->count; i++) {
        const gp_span_record_t *span = recovery->spans[i].record;
        if (span != NULL && (span->coro_id == coro->id || (span->trace == coro->trace && coro->trace != 0)))
            return true;
    }
    return false;
}

static bool slow_held_has_thread(const gp_held_process_t *process, const gp_held_coro_t *coro, uint64_t least_ns)
{
    uint64_t held_ns = coro->last_ns - coro->since_ns, seen_ns = coro->cpu_ns + coro->blocked_ns;
    return coro->kind == GP_CORO_ANNOUNCED && coro->thread != 0 && coro->since_ns != 0 && coro->over_ns == 0 &&
           coro->last_ns > coro->since_ns && held_ns >= least_ns && seen_ns >= held_ns / 2 &&
           coro->last_ns + FRESH_NS >= process->now_ns;
}

int gp_slow_held_list(const gp_held_process_t *process, uint64_t least_ns, const gp_recovery_t *recovery,
                      gp_symbolizer_t *symbolizer, gp_held_found_t **found, size_t *count)
{
    *count = 0;
    *found = calloc(process->threads.count + 1, sizeof(**found)); // of a thread there is one at most
    if (*found == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < process->coros.count && *count < process->threads.count; i++) {
        gp_held_coro_t *coro = &process->coros.items[i];
        if (coro->is_told || !slow_held_has_thread(process, coro, least_ns))
            continue;
        size_t others = slow_held_count_others(process, coro);
        if (others > 0 && !slow_held_works_for_request(recovery, coro) &&
            !slow_held_is_loop_at_rest(process, coro, symbolizer))
            (*found)[(*count)++] = (gp_held_found_t){coro, others};
    }
    return 0;
}
