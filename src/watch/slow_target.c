// SPDX-License-Identifier: MIT
#include "watch/slow_target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

enum {
    STEPS = 8,
    STEP_BITS = 3,
    BUCKETS = 64 * STEPS,
    KNOWN_MIN = 100,
    HALVED_AT = 100000,
    ENDPOINTS_MAX = 4096, // beyond that many, names are no endpoints: they share the last one's counts
};

struct gp_slow_endpoint {
    char *name;
    uint32_t total, counts[BUCKETS];
};

bool gp_slow_time_parse(const char *text, uint64_t *ns)
{
    const char *unit;
    double number = gp_number_read(text, &unit);
    double scale = strcmp(unit, "s") == 0 ? 1e9 : strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "us") == 0 ? 1e3 : 0;
    if (text[0] < '0' || text[0] > '9' || scale == 0 || !(number > 0 && number <= 86400))
        return false;
    *ns = (uint64_t)(number * scale);
    return *ns > 0;
}

bool gp_slow_target_parse(gp_slow_target_t *target, const char *text)
{
    const char *end;
    *target = (gp_slow_target_t){0};
    if (text[0] != 'p')
        return gp_slow_time_parse(text, &target->over_ns);
    target->share = gp_number_read(text + 1, &end) / 100;
    return text[1] >= '0' && text[1] <= '9' && *end == '\0' && target->share >= 0.5 && target->share <= 0.9999;
}

static unsigned slow_target_bucket_of(uint64_t ns)
{
    if (ns < STEPS)
        return (unsigned)ns;
    unsigned exponent = 63 - (unsigned)__builtin_clzll(ns);
    return (exponent - STEP_BITS + 1) * STEPS + (unsigned)(ns >> (exponent - STEP_BITS) & (STEPS - 1));
}

// The first latency behind it.
static uint64_t slow_target_end_of(unsigned bucket)
{
    unsigned exponent = bucket / STEPS + STEP_BITS - 1;
    return bucket < STEPS ? bucket + 1 : (uint64_t)(STEPS + bucket % STEPS + 1) << (exponent - STEP_BITS);
}

static bool slow_target_has_name(const void *owner, uint32_t number, const void *key)
{
    const gp_slow_target_t *target = owner;
    return strcmp(target->endpoints[number].name, key) == 0;
}

static bool slow_target_make_room(gp_slow_target_t *target)
{
    if (target->count < target->capacity)
        return true;
    size_t capacity = target->capacity != 0 ? 2 * target->capacity : 16;
    gp_slow_endpoint_t *grown = realloc(target->endpoints, capacity * sizeof(*grown));
    if (grown == NULL)
        return false;
    target->endpoints = grown;
    target->capacity = capacity;
    return true;
}

static gp_slow_endpoint_t *slow_target_find(gp_slow_target_t *target, const char *name)
{
    uint64_t hash = gp_hash_bytes(name, strlen(name));
    uint32_t number = gp_index_find(&target->index, hash, slow_target_has_name, target, name);
    if (number != GP_INDEX_NONE)
        return &target->endpoints[number];
    if (target->count == ENDPOINTS_MAX)
        return &target->endpoints[ENDPOINTS_MAX - 1];
    char *copy = slow_target_make_room(target) ? strdup(name) : NULL;
    // -Wanalyzer-malloc-leak: it is the endpoint's, below
    if (copy == NULL || gp_index_add(&target->index, hash, (uint32_t)target->count) != 0) {
        free(copy);
        return NULL;
    }
    gp_slow_endpoint_t *endpoint = &target->endpoints[target->count++];
    *endpoint = (gp_slow_endpoint_t){.name = copy};
    return endpoint;
}

static uint64_t slow_target_percentile(const gp_slow_endpoint_t *endpoint, double share)
{
    double wanted = share * endpoint->total, seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        if ((seen += endpoint->counts[i]) >= wanted)
            return slow_target_end_of(i);
    return UINT64_MAX;
}

static void slow_target_halve(gp_slow_endpoint_t *endpoint)
{
    endpoint->total = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        endpoint->total += endpoint->counts[i] /= 2;
}

uint64_t gp_slow_target_add(gp_slow_target_t *target, const char *endpoint, uint64_t latency_ns)
{
    if (target->over_ns != 0)
        return target->over_ns;
    gp_slow_endpoint_t *known = slow_target_find(target, endpoint);
    if (known == NULL)
        return UINT64_MAX;
    uint64_t from_ns = known->total >= KNOWN_MIN ? slow_target_percentile(known, target->share) : UINT64_MAX;
    known->counts[slow_target_bucket_of(latency_ns)]++;
    if (++known->total == HALVED_AT)
        slow_target_halve(known);
    return from_ns;
}

void gp_slow_target_free(gp_slow_target_t *target)
{
    for (size_t i = 0; i < target->count; i++)
        free(target->endpoints[i].name);
    free(target->endpoints);
    gp_index_free(&target->index);
    *target = (gp_slow_target_t){0};
}
