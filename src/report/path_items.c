// SPDX-License-Identifier: MIT
#include "report/path_items.h"

#include <errno.h>
#include <stdlib.h>

#include "report/sorter.h"

typedef struct work { // a coroutine's for a trace
    uint32_t coro, trace;
    uint64_t from_ns, to_ns;
    uint64_t latest_ns; // the latest to_ns of this coroutine's up to this one, once they are sorted
} work_t;

typedef struct collecting {
    const gp_dataset_t *dataset;
    const gp_requests_t *requests;
    const bool *chosen;
    work_t *works; // by coroutine, then by beginning
    size_t work_count, work_capacity;
    gp_index_t work_index;
    gp_sorter_t items;
} collecting_t;

static bool same_work(const void *owner, uint32_t number, const void *key)
{
    const work_t *a = &((const collecting_t *)owner)->works[number], *b = key;
    return a->coro == b->coro && a->trace == b->trace;
}

static int add_work(collecting_t *collecting, uint32_t coro, uint32_t trace, uint64_t from_ns, uint64_t to_ns)
{
    const work_t key = {.coro = coro, .trace = trace, .from_ns = from_ns, .to_ns = to_ns};
    uint64_t hash = gp_hash_u64((uint64_t)coro << 32 | trace);
    uint32_t number = gp_index_find(&collecting->work_index, hash, same_work, collecting, &key);
    if (number == GP_INDEX_NONE) {
        if (gp_grow(&collecting->works, &collecting->work_capacity, collecting->work_count, sizeof(key)) < 0 ||
            gp_index_add(&collecting->work_index, hash, (uint32_t)collecting->work_count) < 0)
            return -ENOMEM;
        collecting->works[collecting->work_count++] = key;
        return 0;
    }
    work_t *work = &collecting->works[number];
    work->from_ns = from_ns < work->from_ns ? from_ns : work->from_ns;
    work->to_ns = to_ns > work->to_ns ? to_ns : work->to_ns;
    return 0;
}

static int take_work(void *context, const gp_activity_record_t *activity)
{
    collecting_t *collecting = context;
    const gp_requests_t *requests = collecting->requests;
    uint32_t trace = gp_dataset_trace_index_find(collecting->dataset, activity->trace);
    uint32_t coro = gp_dataset_coro_find(collecting->dataset, activity->coro_id);
    if (activity->trace == 0 || trace == GP_INDEX_NONE || coro == GP_INDEX_NONE || !collecting->chosen[trace])
        return 0;
    for (uint32_t i = requests->first[trace]; i < requests->first[trace + 1]; i++)
        if (activity->end_ns >= requests->items[i].start_ns && activity->start_ns <= requests->items[i].end_ns)
            return add_work(collecting, coro, trace, activity->start_ns, activity->end_ns + GP_PATH_SLACK_NS);
    return 0;
}

static int by_coro(const void *left, const void *right)
{
    const work_t *a = left, *b = right;
    if (a->coro != b->coro)
        return a->coro < b->coro ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return a->trace < b->trace ? -1 : a->trace > b->trace;
}

static int find_works(collecting_t *collecting)
{
    const gp_reader_handlers_t handlers = {.activity = take_work};
    char error[GP_READER_ERROR_SIZE];
    int result = 0;
    for (size_t i = 0; i < collecting->requests->count && result == 0; i++) {
        const gp_request_t *request = &collecting->requests->items[i];
        if (!collecting->chosen[request->trace])
            continue;
        result =
            add_work(collecting, request->coro, request->trace, request->start_ns, request->end_ns + GP_PATH_SLACK_NS);
        if (result == 0)
            result = add_work(collecting, request->end_coro, request->trace, request->start_ns,
                              request->end_ns + GP_PATH_SLACK_NS);
    }
    if (result == 0)
        result = gp_dataset_read_again(collecting->dataset, &(gp_taker_t){&handlers, collecting, NULL}, error);
    gp_index_free(&collecting->work_index);
    work_t *works = collecting->works;
    if (collecting->work_count > 0)
        qsort(works, collecting->work_count, sizeof(*works), by_coro);
    for (size_t i = 0; i < collecting->work_count; i++) {
        bool follows = i > 0 && works[i - 1].coro == works[i].coro && works[i - 1].latest_ns > works[i].to_ns;
        works[i].latest_ns = follows ? works[i - 1].latest_ns : works[i].to_ns;
    }
    return result;
}

// Add an item to each trace that its coroutine worked for in [from_ns, to_ns].
static int add_item(collecting_t *collecting, gp_path_item_t *item, uint64_t from_ns, uint64_t to_ns)
{
    const work_t *works = collecting->works;
    size_t lo = 0, hi = collecting->work_count;
    int result = 0;
    while (lo < hi) { // the first that begins later
        size_t mid = lo + (hi - lo) / 2;
        if (works[mid].coro < item->coro || (works[mid].coro == item->coro && works[mid].from_ns <= to_ns))
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = lo; i > 0 && works[i - 1].coro == item->coro && works[i - 1].latest_ns >= from_ns && result == 0;
         i--) {
        if (works[i - 1].to_ns < from_ns)
            continue;
        item->trace = works[i - 1].trace;
        result = gp_sorter_add(&collecting->items, item);
    }
    return result;
}

static int take_activity(void *context, const gp_activity_record_t *activity)
{
    collecting_t *collecting = context;
    const gp_dataset_t *dataset = collecting->dataset;
    gp_path_item_t item = {
        .coro = gp_dataset_coro_find(dataset, activity->coro_id),
        .own_trace = gp_dataset_trace_index_find(dataset, activity->trace),
        .start_ns = activity->start_ns,
        .left_ns = activity->left_ns,
        .end_ns = activity->end_ns,
        .slice_ns = activity->slice_ns,
        .cpu_ns = activity->cpu_ns,
        .blocked_ns = activity->blocked_ns,
        .has_times = activity->has_times,
        .ready_ns = activity->ready_ns,
        .waker = activity->waker_id != 0 ? gp_dataset_coro_find(dataset, activity->waker_id) : GP_INDEX_NONE,
        .thread = activity->thread,
        .is_last = activity->is_open,
    };
    if (item.coro == GP_INDEX_NONE || activity->start_ns > activity->left_ns || activity->left_ns > activity->end_ns)
        return 0;
    return add_item(collecting, &item, item.start_ns, item.end_ns);
}

uint64_t gp_path_reach_ns(const gp_dataset_t *dataset, uint64_t weight_ns)
{
    uint64_t period_ns = dataset->facts.header.frequency_hz > 0 ? 1000000000u / dataset->facts.header.frequency_hz : 0;
    return weight_ns > period_ns ? weight_ns : period_ns;
}

static int take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    collecting_t *collecting = context;
    const gp_dataset_t *dataset = collecting->dataset;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const gp_sample_record_t *sample = &samples[i];
        uint64_t reach = gp_path_reach_ns(dataset, sample->weight_ns);
        gp_path_item_t item = {
            .is_sample = 1,
            .coro = gp_dataset_coro_find(dataset, sample->coro_id),
            .start_ns = sample->time_ns,
            .left_ns = sample->weight_ns,
            .stack = gp_dataset_stack_find(dataset, sample->stack_id),
            .kind = sample->kind,
        };
        if (item.coro != GP_INDEX_NONE && item.stack != GP_INDEX_NONE && sample->kind < GP_KIND_COUNT)
            result = add_item(collecting, &item, item.start_ns > reach ? item.start_ns - reach : 0, item.start_ns);
    }
    return result;
}

static int compare(const void *left, const void *right)
{
    const gp_path_item_t *a = left, *b = right;
    if (a->trace != b->trace)
        return a->trace < b->trace ? -1 : 1;
    if (a->is_sample != b->is_sample)
        return a->is_sample < b->is_sample ? -1 : 1;
    if (a->coro != b->coro)
        return a->coro < b->coro ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->is_sample) // running comes last: what else a moment has is before it
        return a->kind > b->kind ? -1 : a->kind < b->kind;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

typedef struct handing {
    gp_path_group_t group;
    int (*take)(void *context, const gp_path_group_t *group);
    void *context;
    bool any;
} handing_t;

static int hand_out(handing_t *handing)
{
    int result = handing->any ? handing->take(handing->context, &handing->group) : 0;
    handing->group.activity_count = handing->group.sample_count = 0;
    return result;
}

// An activity that begins before the one before it has ended was written twice, when an exec failed: the later one is
// right.
static int keep_activity(gp_path_group_t *group, const gp_path_item_t *item)
{
    if (group->activity_count > 0) {
        gp_path_item_t *before = &group->activities[group->activity_count - 1];
        if (before->coro == item->coro && before->end_ns > item->start_ns) {
            *before = *item;
            return 0;
        }
    }
    if (gp_grow(&group->activities, &group->activity_capacity, group->activity_count, sizeof(*item)) < 0)
        return -ENOMEM;
    group->activities[group->activity_count++] = *item;
    return 0;
}

static int take_sorted(void *context, const void *record)
{
    handing_t *handing = context;
    const gp_path_item_t *item = record;
    gp_path_group_t *group = &handing->group;
    if (handing->any && item->trace != group->trace) {
        int result = hand_out(handing);
        if (result < 0)
            return result;
    }
    handing->any = true;
    group->trace = item->trace;
    if (!item->is_sample)
        return keep_activity(group, item);
    if (gp_grow(&group->samples, &group->sample_capacity, group->sample_count, sizeof(*item)) < 0)
        return -ENOMEM;
    group->samples[group->sample_count++] = *item;
    return 0;
}

int gp_path_each_group(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                       int (*take)(void *context, const gp_path_group_t *group), void *context)
{
    const gp_reader_handlers_t handlers = {.activity = take_activity, .samples = take_samples};
    collecting_t collecting = {.dataset = dataset, .requests = requests, .chosen = chosen};
    handing_t handing = {.take = take, .context = context};
    char error[GP_READER_ERROR_SIZE];
    gp_sorter_init(&collecting.items, sizeof(gp_path_item_t), compare);
    int result = find_works(&collecting);
    if (result == 0)
        result = gp_dataset_read_again(dataset, &(gp_taker_t){&handlers, &collecting, NULL}, error);
    if (result == 0)
        result = gp_sorter_end(&collecting.items);
    if (result == 0)
        result = gp_sorter_each(&collecting.items, take_sorted, &handing);
    if (result == 0)
        result = hand_out(&handing);
    gp_sorter_free(&collecting.items);
    gp_index_free(&collecting.work_index);
    free(collecting.works);
    free(handing.group.activities);
    free(handing.group.samples);
    return result;
}
