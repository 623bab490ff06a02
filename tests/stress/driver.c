// SPDX-License-Identifier: MIT
// Coroutines that work and do what a feature does, in turns; what comes of it is printed.
//   stress_RUNTIME FEATURE ROUNDS       status 0; 77 where the runtime cannot have the feature
#include <stdio.h>
#include <stdlib.h>

#include "features.h"
#include "runtime.h"

enum { COUNT = 4, WORK = 100, SKIPPED = 77 };

static const feature_t *feature;
static int rounds;
static uint64_t hashes[COUNT];

static void body(int id)
{
    uint64_t hash = (uint64_t)id;
    for (int round = 0; round < rounds; round++) {
        hash = features_work(hash + (uint64_t)round, WORK);
        if (round % feature->every == 0)
            hash ^= feature->step(id, round);
        runtime_yield();
    }
    hashes[id] = hash;
}

int main(int argc, char **argv)
{
    feature = argc == 3 ? features_find(argv[1]) : NULL;
    if (feature == NULL)
        return 2;
    rounds = atoi(argv[2]);
    if (feature->stack_bytes != 0 && feature->stack_bytes < runtime_stack_min())
        return SKIPPED;
    if (feature->before != NULL)
        feature->before(argv);
    features_on_guarded_stack = true;
    if (!runtime_run(COUNT, feature->stack_bytes != 0 ? feature->stack_bytes : FEATURE_STACK_BYTES, body))
        return 3;
    for (int id = 0; id < COUNT; id++)
        printf("COROUTINE %d %016llx\n", id, (unsigned long long)hashes[id]);
    return 0;
}
