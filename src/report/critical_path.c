// SPDX-License-Identifier: MIT
#include "report/critical_path.h"

#include <errno.h>
#include <stdlib.h>

#include "report/path_walk.h"

enum {
    CLEARED_NS = 1000000, // a coroutine that is over is known to be at most this much later
    LOOKS_NS = 20000000,  // samples tell the end of a sleep, and loops see that a call is over, to this,
    LOOKS_PART = 32,      // and this part of a sleep,
    LATE_PART = 4,        // or of a wait;
    DONE_NS = 500000000,  // a worker that is done ends at most this much later,
    IDLE_NS = 3000000,    // and does no more than this
    LOOKED_MAX = 1000,    // children that ended beside a sleep
};

// Is an activity for the request? Not one of a coroutine that has a request of its own with the same trace.
static bool critical_path_works(const gp_path_walk_t *walk, const gp_path_item_t *activity)
{
    const gp_requests_t *requests = walk->requests;
    uint32_t trace = walk->group->trace;
    if (activity->own_trace != trace || trace == 0)
        return false;
    for (uint32_t i = requests->first[trace]; i < requests->first[trace + 1]; i++)
        if (i != walk->request && requests->items[i].coro == activity->coro &&
            requests->items[i].start_ns <= activity->start_ns && requests->items[i].end_ns > activity->start_ns)
            return false;
    return true;
}

static const gp_path_item_t *critical_path_activity_before(const gp_path_walk_t *walk, uint32_t coro, uint64_t at_ns)
{
    const gp_path_group_t *group = walk->group;
    size_t i = at_ns > 0 ? gp_path_first_after(group->activities, group->activity_count, coro, at_ns - 1) : 0;
    return i > 0 && group->activities[i - 1].coro == coro ? &group->activities[i - 1] : NULL;
}

// The coroutine's one before, if nothing is between the two.
static const gp_path_item_t *critical_path_adjoining(const gp_path_walk_t *walk, const gp_path_item_t *activity)
{
    const gp_path_item_t *before = activity - 1;
    return activity > walk->group->activities && before->coro == activity->coro && before->end_ns == activity->start_ns
               ? before
               : NULL;
}

// A coroutine's activity in which it was at work for the request at a moment; or was right before, and went on without
// a wait: a result may be handed over when the request's part is over already. NULL = it was not.
static const gp_path_item_t *critical_path_work_at(const gp_path_walk_t *walk, uint32_t coro, uint64_t at_ns)
{
    const gp_path_item_t *activity = critical_path_activity_before(walk, coro, at_ns);
    const gp_path_item_t *at = activity;
    if (activity == NULL || activity->left_ns < at_ns)
        return NULL;
    while (!critical_path_works(walk, at)) {
        at = critical_path_adjoining(walk, at);
        if (at == NULL || at->left_ns != at->end_ns || at_ns - at->end_ns > GP_PATH_SLACK_NS)
            return NULL;
    }
    return activity;
}

static bool critical_path_is_waiter(const gp_path_walk_t *walk, uint32_t coro)
{
    for (uint32_t i = 0; i < walk->waiter_count; i++)
        if (walk->waiters[i] == coro)
            return true;
    return false;
}

static uint64_t critical_path_walk_back(gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns,
                                        bool is_base);

static int critical_path_by_spawner(const void *left, const void *right)
{
    const gp_path_ended_t *a = left, *b = right;
    if (a->spawner_id != b->spawner_id)
        return a->spawner_id < b->spawner_id ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return a->coro < b->coro ? -1 : a->coro > b->coro;
}

static int critical_path_find_ended(gp_path_walk_t *walk)
{
    walk->ended_count = 0;
    for (size_t i = 0; i < walk->group->activity_count; i++) {
        const gp_path_item_t *activity = &walk->group->activities[i];
        uint64_t spawner = walk->dataset->facts.coros.items[activity->coro].record.parent_id;
        if (!activity->is_last || activity->end_ns - activity->left_ns > CLEARED_NS || spawner == 0)
            continue; // a wait at the capture's end is not over
        if (gp_grow(&walk->ended, &walk->ended_capacity, walk->ended_count, sizeof(*walk->ended)) < 0)
            return -ENOMEM;
        walk->ended[walk->ended_count++] = (gp_path_ended_t){spawner, activity->left_ns, activity->coro};
    }
    if (walk->ended_count > 0)
        qsort(walk->ended, walk->ended_count, sizeof(*walk->ended), critical_path_by_spawner);
    return 0;
}

// The last child of a coroutine that ended in (from_ns, to_ns]; NULL = none did.
static const gp_path_ended_t *critical_path_child_ended(const gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns,
                                                        uint64_t to_ns)
{
    const gp_path_ended_t key = {
        .spawner_id = walk->dataset->facts.coros.items[coro].record.id, .end_ns = to_ns, .coro = UINT32_MAX};
    size_t lo = 0, hi = walk->ended_count;
    while (lo < hi) { // the first that is beyond
        size_t mid = lo + (hi - lo) / 2;
        if (critical_path_by_spawner(&walk->ended[mid], &key) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    const gp_path_ended_t *found = lo > 0 ? &walk->ended[lo - 1] : NULL;
    return found != NULL && found->spawner_id == key.spawner_id && found->end_ns > from_ns ? found : NULL;
}

// The last child that ended in (since_ns, segment->to_ns]; or, in a pool of threads, not long before: a loop hears of
// it late where its thread is busy.
static const gp_path_ended_t *critical_path_awaited(const gp_path_walk_t *walk, const gp_path_segment_t *segment,
                                                    uint64_t since_ns)
{
    const gp_path_ended_t *child = critical_path_child_ended(walk, segment->coro, since_ns, segment->to_ns);
    uint64_t reach_ns = LOOKS_NS + (segment->to_ns - segment->from_ns) / LATE_PART,
             late_ns = segment->to_ns > reach_ns ? segment->to_ns - reach_ns : 0;
    if (child != NULL || late_ns >= since_ns)
        return child;
    child = critical_path_child_ended(walk, segment->coro, gp_path_later(segment->from_ns, late_ns), segment->to_ns);
    return child != NULL && walk->dataset->facts.coros.items[child->coro].pool != 0 ? child : NULL;
}

// An unexplained wait; perhaps for the child that ended last, after a moment.
static void critical_path_emit_unexplained(gp_path_walk_t *walk, gp_path_segment_t segment, uint64_t since_ns)
{
    const gp_path_ended_t *child = critical_path_awaited(walk, &segment, since_ns);
    if (child == NULL || walk->waiter_count >= GP_PATH_WAITERS_MAX || critical_path_is_waiter(walk, child->coro) ||
        critical_path_work_at(walk, child->coro, child->end_ns) == NULL) {
        gp_path_emit(walk, segment);
        return;
    }
    gp_path_segment_t rest = segment;
    rest.from_ns = child->end_ns;
    gp_path_emit(walk, rest);
    walk->inferred++;
    segment.to_ns = critical_path_walk_back(walk, child->coro, segment.from_ns, child->end_ns, false);
    walk->inferred--;
    gp_path_emit(walk, segment);
}

// A coroutine parked in [from_ns, to_ns). Where the loop ended the wait for a call handed to another thread, the call
// is a child that ended right before.
static void critical_path_emit_parked(gp_path_walk_t *walk, const gp_path_item_t *activity, gp_path_segment_t segment)
{
    uint32_t waker = activity->waker;
    segment.blame = waker;
    segment.state = GP_KIND_PARKED;
    if (waker != GP_INDEX_NONE && waker != activity->coro && walk->waiter_count < GP_PATH_WAITERS_MAX &&
        !critical_path_is_waiter(walk, waker) && critical_path_work_at(walk, waker, activity->ready_ns) != NULL) {
        segment.to_ns = critical_path_walk_back(walk, waker, segment.from_ns, segment.to_ns, false);
        gp_path_emit(walk, segment);
        return;
    }
    uint64_t near_ns = segment.to_ns > CLEARED_NS ? segment.to_ns - CLEARED_NS : 0;
    critical_path_emit_unexplained(walk, segment, gp_path_later(segment.from_ns, near_ns));
}

// Did a coroutine as good as nothing in [from_ns, to_ns)? Samples tell.
static bool critical_path_is_idle(const gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns)
{
    const gp_path_group_t *group = walk->group;
    size_t i = gp_path_first_after(group->samples, group->sample_count, coro, from_ns);
    uint64_t ns = 0;
    for (; i < group->sample_count && group->samples[i].coro == coro && group->samples[i].start_ns < to_ns; i++)
        ns += group->samples[i].kind == GP_KIND_CPU ? group->samples[i].left_ns : 0;
    return ns < IDLE_NS;
}

// Did a child end as a sleep did? A worker says that its work is done, and may wait for a processor before it ends.
static bool critical_path_ends_sleep(const gp_path_walk_t *walk, const gp_path_item_t *activity,
                                     const gp_path_ended_t *child, const gp_path_sleep_t *sleep)
{
    uint64_t awake_ns = activity->cpu_ns +
                        (activity->blocked_ns > activity->gil_ns ? activity->blocked_ns - activity->gil_ns : 0),
             late_ns = activity->slice_ns > awake_ns ? activity->slice_ns - awake_ns : 0; // for a processor, for a lock
    uint64_t apart = LOOKS_NS + (sleep->to_ns - sleep->from_ns) / LOOKS_PART + late_ns;
    if (sleep->to_ns == sleep->from_ns || sleep->to_ns + apart < child->end_ns)
        return sleep->to_ns > sleep->from_ns && child->end_ns - sleep->to_ns < DONE_NS &&
               critical_path_is_idle(walk, child->coro, sleep->to_ns, child->end_ns);
    return sleep->to_ns <= child->end_ns + apart;
}

// A child on another thread that ended as a coroutine's sleep in [from_ns, to_ns) did: most likely it slept for its
// result. NULL = there is none.
//   before_ns: of the one before on this way, which ended later.
static const gp_path_ended_t *critical_path_slept_for(gp_path_walk_t *walk, const gp_path_item_t *activity,
                                                      uint64_t from_ns, uint64_t to_ns, uint64_t before_ns,
                                                      gp_path_sleep_t *sleep)
{
    const gp_path_ended_t *child =
        critical_path_child_ended(walk, activity->coro, from_ns, gp_path_earlier(to_ns + DONE_NS, before_ns));
    for (int i = 0; child != NULL && i < LOOKED_MAX;
         i++, child = critical_path_child_ended(walk, activity->coro, from_ns, child->end_ns - 1)) {
        uint64_t end_ns = gp_path_earlier(child->end_ns, to_ns);
        *sleep = gp_path_sleep_before(walk, activity, end_ns);
        sleep->to_ns = gp_path_earlier(sleep->to_ns, to_ns);
        if (critical_path_ends_sleep(walk, activity, child, sleep) && !critical_path_is_waiter(walk, child->coro) &&
            critical_path_work_at(walk, child->coro, end_ns) != NULL)
            return child;
    }
    return NULL;
}

// [from_ns, to_ns) of an activity, in which its coroutine had its thread. A sleep for a call on another thread is what
// that call did meanwhile.
static void critical_path_emit_running(gp_path_walk_t *walk, const gp_path_item_t *activity, uint64_t from_ns,
                                       uint64_t to_ns)
{
    uint64_t before_ns = UINT64_MAX;
    while (to_ns > from_ns && walk->error == 0) {
        gp_path_sleep_t sleep;
        const gp_path_ended_t *child = walk->waiter_count < GP_PATH_WAITERS_MAX
                                           ? critical_path_slept_for(walk, activity, from_ns, to_ns, before_ns, &sleep)
                                           : NULL;
        uint64_t end_ns = child != NULL ? gp_path_earlier(child->end_ns, to_ns) : from_ns;
        if (child != NULL && child->end_ns > to_ns)
            end_ns = gp_path_later(from_ns, gp_path_earlier(sleep.to_ns, to_ns));
        gp_path_emit_running(walk, activity, end_ns, to_ns);
        to_ns = end_ns;
        if (child == NULL)
            break;
        before_ns = child->end_ns - 1;
        gp_path_pieces_t pieces = gp_path_put_by(walk);
        walk->inferred++;
        to_ns = critical_path_walk_back(walk, child->coro, gp_path_later(from_ns, sleep.from_ns), end_ns, false);
        walk->inferred--;
        gp_path_take_back(walk, pieces);
    }
}

// When a wait that is told in parts was over: the later parts begin with no time active.
static uint64_t critical_path_wait_end(const gp_path_walk_t *walk, const gp_path_item_t *activity)
{
    const gp_path_item_t *end = walk->group->activities + walk->group->activity_count, *next = activity + 1;
    uint64_t end_ns = activity->end_ns;
    for (; next < end && next->coro == activity->coro && next->start_ns == end_ns && next->left_ns == end_ns; next++)
        end_ns = next->end_ns;
    return end_ns;
}

// Has a call not left the queue of its pool yet?
static bool critical_path_is_queued(const gp_path_walk_t *walk, const gp_path_item_t *activity)
{
    return walk->dataset->facts.coros.items[activity->coro].pool != 0 && activity->slice_ns == 0;
}

// A wait in [from_ns, to_ns), a part of [left_ns, end_ns).
static void critical_path_emit_wait(gp_path_walk_t *walk, const gp_path_item_t *activity, uint64_t from_ns,
                                    uint64_t to_ns)
{
    const gp_path_group_t *group = walk->group;
    const gp_path_item_t *next = activity + 1;
    bool is_known =
        activity->ready_ns != 0 && activity->ready_ns >= activity->left_ns && activity->ready_ns <= activity->end_ns;
    bool has_next = next < group->activities + group->activity_count && next->coro == activity->coro;
    gp_path_segment_t segment = {
        .from_ns = from_ns,
        .to_ns = to_ns,
        .coro = activity->coro,
        .thread = has_next ? next->thread : activity->thread,
        .stack = gp_path_stack_of(gp_path_wait_sample(walk, activity->coro, activity->left_ns,
                                                      critical_path_wait_end(walk, activity), activity->end_ns - 1)),
        .blame = GP_INDEX_NONE,
        .state = GP_KIND_WAITING,
    };
    if (!is_known) {
        critical_path_emit_unexplained(walk, segment, segment.from_ns);
        return;
    }
    uint64_t ready = gp_path_later(from_ns, gp_path_earlier(activity->ready_ns, to_ns));
    gp_path_segment_t runnable = segment;
    runnable.from_ns = ready;
    runnable.state = critical_path_is_queued(walk, activity) ? GP_KIND_QUEUED : GP_KIND_READY;
    gp_path_emit(walk, runnable);
    segment.thread = 0;
    segment.to_ns = ready;
    if (segment.to_ns > segment.from_ns)
        critical_path_emit_parked(walk, activity, segment);
}

// Time of the coroutine on which the request began, without any activity of its.
static void critical_path_emit_gap(gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns,
                                   uint32_t flags)
{
    gp_path_emit(walk, (gp_path_segment_t){.from_ns = from_ns,
                                           .to_ns = to_ns,
                                           .coro = coro,
                                           .stack = GP_INDEX_NONE,
                                           .blame = GP_INDEX_NONE,
                                           .state = flags & GP_PATH_UNRECORDED ? GP_KIND_WAITING : GP_KIND_READY,
                                           .flags = flags});
}

// Explain [from_ns, to_ns) by a coroutine's activities. The coroutine on which the request began explains all of it;
// others, the time they were at work for it. Returns the beginning of the explained part.
static uint64_t critical_path_walk_back(gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns,
                                        bool is_base)
{
    const gp_request_t *request = &walk->requests->items[walk->request];
    const gp_path_item_t *activity = critical_path_activity_before(walk, coro, to_ns);
    bool is_handing_over = !is_base;
    uint64_t at = to_ns;
    walk->waiters[walk->waiter_count++] = coro;
    while (at > from_ns && walk->error == 0 && activity != NULL) {
        bool is_own = critical_path_works(walk, activity);
        is_handing_over = is_handing_over && !is_own && activity->left_ns >= at;
        if (!is_base && !is_own && !is_handing_over)
            break;
        if (activity->end_ns < at) {
            if (!is_base)
                break;
            uint64_t since = gp_path_later(from_ns, activity->end_ns);
            critical_path_emit_gap(walk, coro, since, at, GP_PATH_UNRECORDED);
            at = since;
        }
        uint64_t left = gp_path_later(from_ns, activity->left_ns), start = gp_path_later(from_ns, activity->start_ns);
        bool is_elsewhere = is_base && !request->is_about && !is_own &&
                            walk->dataset->facts.traces.items[activity->own_trace].index != 0;
        if (is_elsewhere && at > start)
            critical_path_emit_gap(walk, coro, start, at, GP_PATH_ELSEWHERE);
        if (!is_elsewhere && at > left)
            critical_path_emit_wait(walk, activity, left, at);
        if (!is_elsewhere && gp_path_earlier(at, left) > start)
            critical_path_emit_running(walk, activity, start, gp_path_earlier(at, left));
        at = gp_path_earlier(at, start);
        activity = activity > walk->group->activities && activity[-1].coro == coro ? activity - 1 : NULL;
    }
    if (is_base && at > from_ns) {
        bool is_born = at <= walk->dataset->facts.coros.items[coro].record.birth_ns + GP_PATH_WAITS_NS;
        critical_path_emit_gap(walk, coro, from_ns, at, is_born ? GP_PATH_NOT_STARTED : GP_PATH_UNRECORDED);
        at = from_ns;
    }
    walk->waiter_count--;
    return at;
}

struct gp_critical {
    gp_path_walk_t walk;
    gp_path_items_t *items;
    bool *traces; // bool[trace_count]: of wanted requests
    bool *wanted; // bool[requests->count]: not walked yet
    gp_path_taker_t *take;
    void *context;
};
typedef struct gp_critical paths_t;

static int critical_path_walk_request(paths_t *paths, uint32_t number)
{
    gp_path_walk_t *walk = &paths->walk;
    const gp_request_t *request = &walk->requests->items[number];
    uint64_t at = request->end_ns;
    walk->request = number;
    walk->count = 0;
    walk->waiter_count = 0;
    walk->error = 0;
    paths->wanted[number] = false;
    if (request->end_coro != request->coro)
        at = critical_path_walk_back(walk, request->end_coro, request->start_ns, at, false);
    if (at > request->start_ns)
        critical_path_walk_back(walk, request->coro, request->start_ns, at, true);
    for (size_t i = 0; i < walk->count / 2; i++) {
        gp_path_segment_t segment = walk->segments[i];
        walk->segments[i] = walk->segments[walk->count - 1 - i];
        walk->segments[walk->count - 1 - i] = segment;
    }
    return walk->error < 0 ? walk->error : paths->take(paths->context, number, walk->segments, walk->count);
}

static int critical_path_take_group(void *context, const gp_path_group_t *group)
{
    paths_t *paths = context;
    const gp_requests_t *requests = paths->walk.requests;
    paths->walk.group = group;
    paths->walk.divided = NULL;
    int result = critical_path_find_ended(&paths->walk);
    for (uint32_t i = requests->first[group->trace]; i < requests->first[group->trace + 1] && result == 0; i++)
        if (paths->wanted[i])
            result = critical_path_walk_request(paths, i);
    return result;
}

// The requests left: nothing at all was recorded of them.
static int critical_path_walk_rest(paths_t *paths)
{
    gp_path_group_t empty = {0};
    int result = 0;
    paths->walk.ended_count = 0;
    for (uint32_t i = 0; i < paths->walk.requests->count && result == 0; i++) {
        empty.trace = paths->walk.requests->items[i].trace;
        paths->walk.group = &empty;
        if (paths->wanted[i])
            result = critical_path_walk_request(paths, i);
    }
    return result;
}

gp_critical_t *gp_critical_begin(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                                 gp_reading_t *reading)
{
    paths_t *paths = calloc(1, sizeof(*paths));
    if (paths == NULL)
        return NULL;
    paths->walk = (gp_path_walk_t){.dataset = dataset, .requests = requests};
    paths->traces = calloc(dataset->facts.traces.count + 1, sizeof(*paths->traces));
    paths->wanted = calloc(requests->count + 1, sizeof(*paths->wanted));
    for (size_t i = 0; i < requests->count && paths->traces != NULL && paths->wanted != NULL; i++) {
        paths->wanted[i] = chosen == NULL || chosen[i];
        paths->traces[requests->items[i].trace] |= paths->wanted[i];
    }
    if (paths->traces != NULL && paths->wanted != NULL)
        paths->items = gp_path_items_begin(dataset, requests, paths->traces, reading);
    if (paths->items != NULL)
        return paths;
    gp_critical_free(paths);
    return NULL;
}

int gp_critical_walk(gp_critical_t *critical, gp_path_taker_t *take, void *context)
{
    critical->take = take;
    critical->context = context;
    int result = gp_path_items_each(critical->items, critical_path_take_group, critical);
    return result == 0 ? critical_path_walk_rest(critical) : result;
}

void gp_critical_free(gp_critical_t *critical)
{
    if (critical == NULL)
        return;
    int saved = errno;
    gp_path_items_free(critical->items);
    free(critical->traces);
    free(critical->wanted);
    free(critical->walk.segments);
    free(critical->walk.pieces);
    free(critical->walk.ended);
    free(critical);
    errno = saved;
}

int gp_critical_paths(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                      gp_path_taker_t *take, void *context)
{
    gp_reading_t reading = {0};
    gp_critical_t *critical = gp_critical_begin(dataset, requests, chosen, &reading);
    if (critical == NULL)
        return errno != 0 ? -errno : -ENOMEM;
    int result = gp_dataset_read(dataset, &reading);
    if (result == 0)
        result = gp_critical_walk(critical, take, context);
    gp_critical_free(critical);
    return result;
}
