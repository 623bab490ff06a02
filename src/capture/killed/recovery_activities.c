// SPDX-License-Identifier: MIT
#include "capture/killed/recovery_activities.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"

enum { TIDY_MIN = 1024 };

static bool recovery_activities_has_coro(const void *owner, uint32_t number, const void *key)
{
    return ((const gp_recovery_activities_t *)owner)->items[number].coro_id == *(const uint64_t *)key;
}

static gp_activity_record_t *recovery_activities_find(const gp_recovery_activities_t *activities, uint64_t coro_id)
{
    uint32_t number =
        gp_index_find(&activities->index, gp_hash_u64(coro_id), recovery_activities_has_coro, activities, &coro_id);
    return number != GP_INDEX_NONE ? &activities->items[number] : NULL;
}

static gp_activity_record_t *recovery_activities_add(gp_recovery_activities_t *activities, uint64_t coro_id)
{
    size_t count = activities->count;
    if (gp_grow(&activities->items, &activities->capacity, count, sizeof(*activities->items)) < 0 ||
        gp_index_add(&activities->index, gp_hash_u64(coro_id), (uint32_t)count) < 0)
        return NULL;
    gp_activity_record_t *item = &activities->items[activities->count++];
    *item = (gp_activity_record_t){.coro_id = coro_id};
    return item;
}

int gp_recovery_activities_keep(gp_recovery_activities_t *activities, const gp_activity_record_t *activity)
{
    gp_activity_record_t *item = recovery_activities_find(activities, activity->coro_id);
    if (item == NULL && (item = recovery_activities_add(activities, activity->coro_id)) == NULL)
        return -ENOMEM;
    activities->open += item->is_open == 0;
    *item = *activity;
    item->is_open = 1;
    return 0;
}

void gp_recovery_activities_over(gp_recovery_activities_t *activities, uint64_t coro_id, uint64_t end_ns)
{
    gp_activity_record_t *item = activities->open > 0 ? recovery_activities_find(activities, coro_id) : NULL;
    if (item == NULL || item->is_open == 0 || item->start_ns >= end_ns)
        return;
    item->is_open = 0;
    activities->open--;
}

int gp_recovery_activities_tidy(gp_recovery_activities_t *activities)
{
    size_t kept = 0;
    if (activities->count < TIDY_MIN || activities->open > activities->count / 2)
        return 0;
    gp_index_clear(&activities->index);
    for (size_t i = 0; i < activities->count; i++)
        if (activities->items[i].is_open != 0)
            activities->items[kept++] = activities->items[i];
    activities->count = kept;
    for (size_t i = 0; i < kept; i++)
        if (gp_index_add(&activities->index, gp_hash_u64(activities->items[i].coro_id), (uint32_t)i) < 0)
            return -ENOMEM;
    return 0;
}

int gp_recovery_activities_put(const gp_recovery_activities_t *activities, gp_writer_t *writer)
{
    int error = 0;
    for (size_t i = 0; i < activities->count && error == 0; i++)
        if (activities->items[i].is_open != 0)
            error = gp_writer_put(writer, GP_CHUNK_ACTIVITIES, &activities->items[i], sizeof(activities->items[i]));
    return error;
}

void gp_recovery_activities_free(gp_recovery_activities_t *activities)
{
    free(activities->items);
    gp_index_free(&activities->index);
    *activities = (gp_recovery_activities_t){0};
}
