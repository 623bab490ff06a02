// SPDX-License-Identifier: MIT
#include "collect/pools.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "collect/functions.h"

typedef struct pool {
    char name[GP_POOL_NAME_SIZE];
    uint32_t size;
    uint32_t function; // the collector's: 0 = not located yet
} pool_t;

static pool_t pools[GP_POOLS_MAX];
static _Atomic uint32_t pool_count;
static uint32_t latest; // most calls go where the one before went

static bool pools_is(const pool_t *pool, const char *name, uint32_t size)
{
    return pool->size == size && strncmp(pool->name, name, sizeof(pool->name) - 1) == 0;
}

uint32_t gp_pool_number(const char *name, uint32_t size)
{
    uint32_t count = atomic_load_explicit(&pool_count, memory_order_relaxed);
    if (count > 0 && pools_is(&pools[latest], name, size))
        return latest + 1;
    uint32_t i = 0;
    while (i < count && !pools_is(&pools[i], name, size))
        i++;
    if (i == GP_POOLS_MAX - 1) { // the last one stands for all that come after it
        name = "other pools";
        size = 0;
    }
    if (i == count && i < GP_POOLS_MAX) {
        snprintf(pools[i].name, sizeof(pools[i].name), "%s", name);
        pools[i].size = size;
        // Release: partner of the acquire in gp_pool_locate().
        atomic_store_explicit(&pool_count, count + 1, memory_order_release);
    }
    latest = i < GP_POOLS_MAX ? i : GP_POOLS_MAX - 1;
    return latest + 1;
}

gp_loc_t gp_pool_locate(uint32_t number)
{
    char text[GP_POOL_NAME_SIZE + 32];
    // Acquire: partner of the release in gp_pool_number().
    if (number == 0 || number > atomic_load_explicit(&pool_count, memory_order_acquire))
        return GP_LOC_OWN;
    pool_t *pool = &pools[number - 1];
    int length = pool->size != 0 ? snprintf(text, sizeof(text), "[pool %s of %" PRIu32 "]", pool->name, pool->size)
                                 : snprintf(text, sizeof(text), "[pool %s]", pool->name);
    if (pool->function == 0)
        pool->function = gp_functions_number(text, (size_t)length, "", 0, 0);
    return GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(pool->function, 0));
}
