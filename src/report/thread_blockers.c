// SPDX-License-Identifier: MIT
#include "report/thread_blockers.h"

#include <errno.h>
#include <stdlib.h>

typedef struct keeping {
    const gp_dataset_t *dataset;
    gp_path_ready_t *ready; // by thread, then by beginning
    uint64_t *latest_ns;    // the latest to_ns of a thread's up to each
    size_t count;
} keeping_t;

static int thread_blockers_by_thread(const void *left, const void *right)
{
    const gp_path_ready_t *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return a->to_ns < b->to_ns ? -1 : a->to_ns > b->to_ns;
}

static void thread_blockers_add_keeper(gp_path_ready_t *ready, uint32_t coro, uint64_t ns)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i < ready->keeper_count; i++) {
        if (ready->keepers[i].coro == coro) {
            ready->keepers[i].ns += ns;
            return;
        }
        if (ready->keepers[i].ns < ready->keepers[least].ns)
            least = i;
    }
    if (ready->keeper_count < GP_PATH_KEEPERS_MAX)
        least = ready->keeper_count++;
    else if (ready->keepers[least].ns >= ns)
        return;
    ready->keepers[least].coro = coro;
    ready->keepers[least].ns = ns;
}

static int thread_blockers_take_keeper(void *context, const gp_activity_record_t *activity)
{
    const keeping_t *keeping = context;
    uint32_t coro = gp_dataset_coro_find(keeping->dataset, activity->coro_id);
    size_t lo = 0, hi = keeping->count;
    if (coro == GP_INDEX_NONE || activity->thread == 0)
        return 0;
    while (lo < hi) { // the first that begins after it
        size_t mid = lo + (hi - lo) / 2;
        const gp_path_ready_t *ready = &keeping->ready[mid];
        if (ready->thread < activity->thread ||
            (ready->thread == activity->thread && ready->from_ns < activity->left_ns))
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = lo;
         i > 0 && keeping->ready[i - 1].thread == activity->thread && keeping->latest_ns[i - 1] > activity->start_ns;
         i--) {
        gp_path_ready_t *ready = &keeping->ready[i - 1];
        uint64_t ns = gp_dataset_activity_times(activity, ready->from_ns, ready->to_ns).slice_ns;
        if (ns > 0 && coro != ready->coro)
            thread_blockers_add_keeper(ready, coro, ns);
    }
    return 0;
}

static int thread_blockers_by_time_kept(const void *left, const void *right)
{
    uint64_t a = ((const uint64_t *)left)[1], b = ((const uint64_t *)right)[1];
    return a > b ? -1 : a < b;
}

// Order keepers, the longest first, and cut their times to the time there is.
static void thread_blockers_settle(gp_path_ready_t *ready)
{
    uint64_t left = ready->to_ns - ready->from_ns;
    _Static_assert(sizeof(ready->keepers[0]) == 2 * sizeof(uint64_t), "as by_time_kept() reads it");
    if (ready->keeper_count > 1)
        qsort(ready->keepers, ready->keeper_count, sizeof(ready->keepers[0]), thread_blockers_by_time_kept);
    for (uint32_t i = 0; i < ready->keeper_count; i++) {
        ready->keepers[i].ns = ready->keepers[i].ns < left ? ready->keepers[i].ns : left;
        left -= ready->keepers[i].ns;
    }
}

int gp_critical_keepers(const gp_dataset_t *dataset, gp_path_ready_t *ready, size_t count)
{
    const gp_reader_handlers_t handlers = {.activity = thread_blockers_take_keeper};
    keeping_t keeping = {dataset, ready, calloc(count + 1, sizeof(uint64_t)), count};
    if (keeping.latest_ns == NULL)
        return -ENOMEM;
    if (count > 0)
        qsort(ready, count, sizeof(*ready), thread_blockers_by_thread);
    for (size_t i = 0; i < count; i++) {
        keeping.latest_ns[i] = ready[i].to_ns;
        if (i > 0 && ready[i - 1].thread == ready[i].thread && keeping.latest_ns[i - 1] > ready[i].to_ns)
            keeping.latest_ns[i] = keeping.latest_ns[i - 1];
        ready[i].keeper_count = 0;
    }
    int result = count > 0 ? gp_dataset_read_for(dataset, &handlers, &keeping) : 0;
    for (size_t i = 0; i < count && result == 0; i++)
        thread_blockers_settle(&ready[i]);
    free(keeping.latest_ns);
    return result;
}
