// SPDX-License-Identifier: MIT
#include "record/session_calls.h"

#include <stdlib.h>
#include <string.h>

#include "exact/recorder.h"
#include "settings.h"
#include "signal/ticks.h"

enum {
    EVERY_NS = 1000000000,
    SHARE = 50, // at most 1/50 of the collector's time
};

typedef struct seen { // of a pair: what is in the capture
    uint64_t key, calls, time_ns;
} seen_t;

static gp_exact_t *recorder;
static uint64_t next_ns;
static seen_t *seen; // open addressing, at most half full
static size_t seen_count, seen_slots;

void gp_session_calls_start(void)
{
    if (!gp_setting_is(GP_SETTING_MODE, "exact"))
        return;
    if (seen != NULL) // of an earlier capture
        memset(seen, 0, seen_slots * sizeof(*seen));
    seen_count = 0;
    next_ns = 0;
    recorder = gp_exact_new(PROF_SCOPE_PROCESS);
    if (recorder != NULL)
        gp_exact_start(recorder, 0);
}

void gp_session_calls_stop(void)
{
    if (recorder == NULL)
        return;
    gp_exact_stop(recorder);
    gp_exact_free(recorder);
    recorder = NULL;
}

void gp_session_calls_after_fork(void)
{
    next_ns = 0;
    if (seen != NULL)
        memset(seen, 0, seen_slots * sizeof(*seen));
    seen_count = 0;
    if (recorder != NULL)
        gp_exact_restart(recorder);
}

static seen_t *seen_slot(seen_t *slots, size_t count, uint64_t key)
{
    size_t slot = (size_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (count - 1);
    while (slots[slot].key != 0 && slots[slot].key != key)
        slot = (slot + 1) & (count - 1);
    return &slots[slot];
}

static bool make_room(void)
{
    if (seen_count * 2 < seen_slots)
        return true;
    size_t slots = seen_slots > 0 ? seen_slots * 2 : 1024;
    seen_t *grown = calloc(slots, sizeof(*grown));
    if (grown == NULL)
        return false;
    for (size_t i = 0; i < seen_slots; i++)
        if (seen[i].key != 0)
            *seen_slot(grown, slots, seen[i].key) = seen[i];
    free(seen);
    seen = grown;
    seen_slots = slots;
    return true;
}

// Does the capture lack what `call` says? If so it is noted as written.
static bool is_news(const gp_call_count_t *call)
{
    uint64_t time_ns = call->own_cpu_ns + call->own_wait_ns + call->cpu_ns + call->wait_ns;
    uint64_t key = (uint64_t)call->caller << 32 | call->callee; // a callee is never 0
    if (!make_room())
        return true;
    seen_t *slot = seen_slot(seen, seen_slots, key);
    if (slot->key == key && slot->calls == call->calls && slot->time_ns == time_ns)
        return false;
    seen_count += slot->key == 0;
    *slot = (seen_t){key, call->calls, time_ns};
    return true;
}

void gp_session_calls_write(gp_writer_t *writer, uint64_t now, bool ends)
{
    gp_exact_path_t *paths;
    gp_call_count_t *calls;
    size_t path_count, count;
    if (recorder == NULL || (now < next_ns && !ends) || gp_exact_collect(recorder, &paths, &path_count) != 0)
        return;
    int error = gp_exact_pairs(paths, path_count, &calls, &count);
    free(paths);
    for (size_t i = 0; i < count && error == 0; i++) {
        gp_call_count_t *record = is_news(&calls[i]) ? gp_writer_add(writer, GP_CHUNK_CALLS, sizeof(*record)) : NULL;
        if (record != NULL)
            *record = calls[i];
    }
    free(calls);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_ns = now + (took * SHARE > EVERY_NS ? took * SHARE : EVERY_NS);
}
