// SPDX-License-Identifier: MIT
// Pairs of caller and callee, as pstats and callgrind want them, out of a tree of calls.
#include <errno.h>
#include <stdlib.h>

#include "exact/recorder.h"

typedef struct walk { // depth first: calls in progress are known
    const gp_exact_path_t *paths;
    uint32_t count;
    uint32_t *child, *sibling;   // of each path; 0 = none
    uint32_t *pair;              // and the number of its pair
    uint64_t *cpu_ns, *wait_ns;  // and its time with all it called
    uint32_t *functions, *pairs; // how many paths are in progress: by function, by pair
    gp_call_count_t *calls;
} walk_t;

typedef struct place { // to be sorted by pair
    uint64_t key;
    uint32_t path;
} place_t;

static int exact_pairs_by_key(const void *a, const void *b)
{
    uint64_t x = ((const place_t *)a)->key, y = ((const place_t *)b)->key;
    return (x > y) - (x < y);
}

static uint64_t exact_pairs_key_of(const gp_exact_path_t *paths, uint32_t path)
{
    return (uint64_t)paths[paths[path].parent].function << 32 | paths[path].function;
}

// Number the pairs and make a record of each. Returns how many there are, 0 when memory is short.
static size_t exact_pairs_number_pairs(walk_t *walk)
{
    place_t *places = malloc(walk->count * sizeof(*places));
    size_t count = 0;
    for (uint32_t i = 1; places != NULL && i < walk->count; i++)
        places[i - 1] = (place_t){exact_pairs_key_of(walk->paths, i), i};
    if (places != NULL)
        qsort(places, walk->count - 1, sizeof(*places), exact_pairs_by_key);
    for (uint32_t i = 0; places != NULL && i + 1 < walk->count; i++) {
        const gp_exact_path_t *path = &walk->paths[places[i].path], *caller = &walk->paths[path->parent];
        if (i == 0 || places[i].key != places[i - 1].key)
            walk->calls[count++] = (gp_call_count_t){.caller = caller->function,
                                                     .callee = path->function,
                                                     .caller_loc = caller->loc,
                                                     .callee_loc = path->loc};
        walk->pair[places[i].path] = (uint32_t)count - 1;
    }
    free(places);
    return count;
}

// Parents come before their children. Returns the highest number of a function.
static uint32_t exact_pairs_link_paths(walk_t *walk)
{
    uint32_t highest = 0;
    for (uint32_t i = walk->count; i-- > 1;) {
        const gp_exact_path_t *path = &walk->paths[i];
        walk->cpu_ns[i] += path->own_cpu_ns;
        walk->wait_ns[i] += path->own_wait_ns;
        walk->cpu_ns[path->parent] += walk->cpu_ns[i];
        walk->wait_ns[path->parent] += walk->wait_ns[i];
        walk->sibling[i] = walk->child[path->parent];
        walk->child[path->parent] = i;
        highest = path->function > highest ? path->function : highest;
    }
    return highest;
}

static void exact_pairs_enter(walk_t *walk, uint32_t at)
{
    const gp_exact_path_t *path = &walk->paths[at];
    gp_call_count_t *call = &walk->calls[walk->pair[at]];
    bool is_nested = walk->functions[path->function]++ > 0, is_same_edge = walk->pairs[walk->pair[at]]++ > 0;
    call->calls += path->calls;
    call->nested_calls += is_nested ? path->calls : 0;
    call->same_edge_calls += is_same_edge ? path->calls : 0;
    call->own_cpu_ns += path->own_cpu_ns;
    call->own_wait_ns += path->own_wait_ns;
    call->cpu_ns += is_nested ? 0 : walk->cpu_ns[at];
    call->wait_ns += is_nested ? 0 : walk->wait_ns[at];
    call->nested_cpu_ns += is_nested && !is_same_edge ? walk->cpu_ns[at] : 0;
    call->nested_wait_ns += is_nested && !is_same_edge ? walk->wait_ns[at] : 0;
}

static void exact_pairs_leave(walk_t *walk, uint32_t at)
{
    walk->functions[walk->paths[at].function]--;
    walk->pairs[walk->pair[at]]--;
}

static void exact_pairs_count_pairs(walk_t *walk)
{
    for (uint32_t at = walk->child[0]; at != 0;) {
        exact_pairs_enter(walk, at);
        uint32_t next = walk->child[at];
        for (; next == 0 && at != 0; at = walk->paths[at].parent) {
            exact_pairs_leave(walk, at);
            next = walk->sibling[at];
        }
        at = next;
    }
}

int gp_exact_pairs(const gp_exact_path_t *paths, size_t count, gp_call_count_t **calls, size_t *call_count)
{
    uint32_t *words = calloc(4 * count, sizeof(*words)); // its four arrays by path
    uint64_t *times = calloc(2 * count, sizeof(*times));
    walk_t walk = {.paths = paths, .count = (uint32_t)count, .child = words, .sibling = words + count};
    walk.pair = words + 2 * count;
    walk.pairs = words + 3 * count;
    walk.cpu_ns = times;
    walk.wait_ns = times + count;
    walk.calls = *calls = calloc(count, sizeof(*walk.calls));
    bool ok = words != NULL && times != NULL && walk.calls != NULL;
    if (ok)
        walk.functions = calloc((size_t)exact_pairs_link_paths(&walk) + 1, sizeof(*walk.functions));
    *call_count = ok && walk.functions != NULL ? exact_pairs_number_pairs(&walk) : 0;
    if (*call_count > 0)
        exact_pairs_count_pairs(&walk);
    free(walk.functions);
    free(words);
    free(times);
    return *call_count > 0 || (ok && count == 1) ? 0 : -ENOMEM;
}
