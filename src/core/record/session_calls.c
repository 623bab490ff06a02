// SPDX-License-Identifier: MIT
#include "record/session_calls.h"

#include <stdlib.h>

#include "base/index.h"
#include "base/memory.h"
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
static seen_t *seen;
static size_t seen_count, seen_capacity;
static gp_index_t seen_index;

static void session_calls_forget(void)
{
    gp_index_clear(&seen_index);
    seen_count = 0;
    next_ns = 0;
}

void gp_session_calls_start(void)
{
    if (!gp_setting_is(GP_SETTING_MODE, "exact"))
        return;
    session_calls_forget(); // of an earlier capture
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
    session_calls_forget();
    if (recorder != NULL)
        gp_exact_restart(recorder);
}

static bool session_calls_same(const void *owner, uint32_t number, const void *key)
{
    return ((const seen_t *)owner)[number].key == *(const uint64_t *)key;
}

// Does the capture lack what `call` says? If so it is noted as written.
static bool session_calls_is_news(const gp_call_count_t *call)
{
    uint64_t time_ns = call->own_cpu_ns + call->own_wait_ns + call->cpu_ns + call->wait_ns;
    uint64_t key = (uint64_t)call->caller << 32 | call->callee, hash = gp_hash_u64(key);
    uint32_t number = gp_index_find(&seen_index, hash, session_calls_same, seen, &key);
    if (number == GP_INDEX_NONE) {
        number = (uint32_t)seen_count;
        if (gp_grow(&seen, &seen_capacity, seen_count, sizeof(*seen)) < 0 ||
            gp_index_add(&seen_index, hash, number) < 0)
            return true;
        seen_count++;
    } else if (seen[number].calls == call->calls && seen[number].time_ns == time_ns)
        return false;
    seen[number] = (seen_t){key, call->calls, time_ns};
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
        gp_call_count_t *record =
            session_calls_is_news(&calls[i]) ? gp_writer_add(writer, GP_CHUNK_CALLS, sizeof(*record)) : NULL;
        if (record != NULL)
            *record = calls[i];
    }
    free(calls);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    next_ns = now + (took * SHARE > EVERY_NS ? took * SHARE : EVERY_NS);
}
