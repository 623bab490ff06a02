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

struct gp_path_items {
    const gp_dataset_t *dataset;
    const gp_requests_t *requests;
    const bool *chosen;
    GP_TABLE(work_t) works;   // at most: by coroutine, then by beginning
    GP_TABLE(work_t) settled; // that there are, when all is read
    gp_sorter_t items;
};
typedef struct gp_path_items collecting_t;

static int path_items_add_work(gp_table_t *works, uint32_t coro, uint32_t trace, uint64_t from_ns, uint64_t to_ns)
{
    size_t known = works->count;
    uint32_t number = gp_table_need(works, gp_table_pair(coro, trace));
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    work_t *work = (work_t *)works->items + number;
    work->from_ns = number >= known || from_ns < work->from_ns ? from_ns : work->from_ns;
    work->to_ns = number >= known || to_ns > work->to_ns ? to_ns : work->to_ns;
    return 0;
}

// The work of an activity for a chosen trace's requests.
static int path_items_settle_work(collecting_t *collecting, const gp_path_item_t *item)
{
    const gp_requests_t *requests = collecting->requests;
    uint32_t trace = item->own_trace;
    if (trace == GP_INDEX_NONE || collecting->dataset->facts.traces.items[trace].index == 0 ||
        !collecting->chosen[trace])
        return 0;
    for (uint32_t i = requests->first[trace]; i < requests->first[trace + 1]; i++)
        if (item->end_ns >= requests->items[i].start_ns && item->start_ns <= requests->items[i].end_ns)
            return path_items_add_work(&collecting->settled.table, item->coro, trace, item->start_ns,
                                       item->end_ns + GP_PATH_SLACK_NS);
    return 0;
}

static int path_items_by_coro(const void *left, const void *right)
{
    const work_t *a = left, *b = right;
    if (a->coro != b->coro)
        return a->coro < b->coro ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return a->trace < b->trace ? -1 : a->trace > b->trace;
}

// A request is its coroutine's work, whatever is known of that.
static int path_items_add_request(collecting_t *collecting, const gp_request_t *request)
{
    uint64_t to_ns = request->end_ns + GP_PATH_SLACK_NS;
    gp_table_t *const tables[] = {&collecting->works.table, &collecting->settled.table};
    int result = 0;
    for (size_t i = 0; i < 2 && result == 0; i++) {
        result = path_items_add_work(tables[i], request->coro, request->trace, request->start_ns, to_ns);
        if (result == 0)
            result = path_items_add_work(tables[i], request->end_coro, request->trace, request->start_ns, to_ns);
    }
    return result;
}

// Works that may be of use; reading all tells which are.
static int path_items_find_works(collecting_t *collecting)
{
    const gp_dataset_t *dataset = collecting->dataset;
    int result = 0;
    for (size_t i = 0; i < collecting->requests->count && result == 0; i++)
        if (collecting->chosen[collecting->requests->items[i].trace])
            result = path_items_add_request(collecting, &collecting->requests->items[i]);
    for (size_t i = 0; i < dataset->works.count && result == 0; i++) {
        const gp_dataset_work_t *work = &dataset->works.items[i];
        if (collecting->chosen[work->trace])
            result = path_items_add_work(&collecting->works.table, work->coro, work->trace, work->from_ns,
                                         work->to_ns + GP_PATH_SLACK_NS);
    }
    work_t *works = collecting->works.items;
    if (collecting->works.count > 0)
        qsort(works, collecting->works.count, sizeof(*works), path_items_by_coro);
    for (size_t i = 0; i < collecting->works.count; i++) {
        bool follows = i > 0 && works[i - 1].coro == works[i].coro && works[i - 1].latest_ns > works[i].to_ns;
        works[i].latest_ns = follows ? works[i - 1].latest_ns : works[i].to_ns;
    }
    return result;
}

// From when on it may be looked at.
static uint64_t path_items_begins_at(const gp_dataset_t *dataset, const gp_path_item_t *item)
{
    uint64_t reach = item->is_sample ? gp_path_reach_ns(dataset, item->left_ns) : 0;
    return item->start_ns > reach ? item->start_ns - reach : 0;
}

static uint64_t path_items_ends_at(const gp_path_item_t *item)
{
    return item->is_sample ? item->start_ns : item->end_ns;
}

// Add an item to each trace that its coroutine may have worked for meanwhile.
static int path_items_add_item(collecting_t *collecting, gp_path_item_t *item)
{
    const work_t *works = collecting->works.items;
    uint64_t from_ns = path_items_begins_at(collecting->dataset, item), to_ns = path_items_ends_at(item);
    size_t lo = 0, hi = collecting->works.count;
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

// Did the coroutine work for the trace that the item is for?
static bool path_items_is_settled(const collecting_t *collecting, const gp_path_item_t *item)
{
    uint32_t number = gp_table_find(&collecting->settled.table, gp_table_pair(item->coro, item->trace));
    if (number == GP_INDEX_NONE)
        return false;
    const work_t *work = &collecting->settled.items[number];
    return work->from_ns <= path_items_ends_at(item) && work->to_ns >= path_items_begins_at(collecting->dataset, item);
}

static int path_items_take_activity(void *context, const gp_activity_record_t *activity)
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
        .gil_ns = activity->gil_ns,
        .lock_ns = activity->lock_ns,
        .has_times = activity->has_times,
        .ready_ns = activity->ready_ns,
        .waker = activity->waker_id != 0 ? gp_dataset_coro_find(dataset, activity->waker_id) : GP_INDEX_NONE,
        .thread = activity->thread,
        .is_last = activity->is_open,
    };
    if (item.coro == GP_INDEX_NONE || path_items_settle_work(collecting, &item) < 0)
        return item.coro == GP_INDEX_NONE ? 0 : -ENOMEM;
    bool is_whole = activity->start_ns <= activity->left_ns && activity->left_ns <= activity->end_ns;
    return is_whole ? path_items_add_item(collecting, &item) : 0;
}

uint64_t gp_path_reach_ns(const gp_dataset_t *dataset, uint64_t weight_ns)
{
    uint64_t period_ns = dataset->facts.header.frequency_hz > 0 ? 1000000000u / dataset->facts.header.frequency_hz : 0;
    return weight_ns > period_ns ? weight_ns : period_ns;
}

static int path_items_take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    collecting_t *collecting = context;
    const gp_dataset_t *dataset = collecting->dataset;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const gp_sample_record_t *sample = &samples[i];
        gp_path_item_t item = {
            .is_sample = 1,
            .coro = gp_dataset_coro_find(dataset, sample->coro_id),
            .start_ns = sample->time_ns,
            .left_ns = sample->weight_ns,
            .stack = gp_dataset_stack_find(dataset, sample->stack_id),
            .kind = sample->kind,
        };
        if (item.coro != GP_INDEX_NONE && item.stack != GP_INDEX_NONE && sample->kind < GP_KIND_COUNT)
            result = path_items_add_item(collecting, &item);
    }
    return result;
}

static int path_items_compare(const void *left, const void *right)
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
    const collecting_t *collecting;
    gp_path_group_t group;
    int (*take)(void *context, const gp_path_group_t *group);
    void *context;
    bool any;
} handing_t;

static int path_items_hand_out(handing_t *handing)
{
    int result = handing->any ? handing->take(handing->context, &handing->group) : 0;
    handing->group.activity_count = handing->group.sample_count = 0;
    return result;
}

// An activity that begins before the one before it has ended was written twice, when an exec failed: the later one is
// right.
static int path_items_keep_activity(gp_path_group_t *group, const gp_path_item_t *item)
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

static int path_items_take_sorted(void *context, const void *record)
{
    handing_t *handing = context;
    const gp_path_item_t *item = record;
    gp_path_group_t *group = &handing->group;
    if (!path_items_is_settled(handing->collecting, item))
        return 0;
    if (handing->any && item->trace != group->trace) {
        int result = path_items_hand_out(handing);
        if (result < 0)
            return result;
    }
    handing->any = true;
    group->trace = item->trace;
    if (!item->is_sample)
        return path_items_keep_activity(group, item);
    if (gp_grow(&group->samples, &group->sample_capacity, group->sample_count, sizeof(*item)) < 0)
        return -ENOMEM;
    group->samples[group->sample_count++] = *item;
    return 0;
}

gp_path_items_t *gp_path_items_begin(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                                     gp_reading_t *reading)
{
    static const gp_reader_handlers_t handlers = {.activity = path_items_take_activity,
                                                  .samples = path_items_take_samples};
    collecting_t *collecting = dataset->keep & GP_KEEP_WORKS ? calloc(1, sizeof(*collecting)) : NULL;
    errno = dataset->keep & GP_KEEP_WORKS ? ENOMEM : EINVAL;
    if (collecting == NULL)
        return NULL;
    *collecting = (collecting_t){.dataset = dataset,
                                 .requests = requests,
                                 .chosen = chosen,
                                 .works = GP_TABLE_BY_PAIR(work_t, coro),
                                 .settled = GP_TABLE_BY_PAIR(work_t, coro)};
    gp_sorter_init(&collecting->items, sizeof(gp_path_item_t), path_items_compare);
    if (path_items_find_works(collecting) < 0) {
        gp_path_items_free(collecting);
        return NULL;
    }
    gp_reading_add(reading, &handlers, collecting);
    return collecting;
}

int gp_path_items_each(gp_path_items_t *items, int (*take)(void *context, const gp_path_group_t *group), void *context)
{
    handing_t handing = {.collecting = items, .take = take, .context = context};
    int result = gp_sorter_end(&items->items);
    if (result == 0)
        result = gp_sorter_each(&items->items, path_items_take_sorted, &handing);
    if (result == 0)
        result = path_items_hand_out(&handing);
    free(handing.group.activities);
    free(handing.group.samples);
    return result;
}

void gp_path_items_free(gp_path_items_t *items)
{
    if (items == NULL)
        return;
    gp_sorter_free(&items->items);
    gp_table_free(&items->works.table);
    gp_table_free(&items->settled.table);
    free(items);
}
