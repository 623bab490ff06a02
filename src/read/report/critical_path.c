// SPDX-License-Identifier: MIT
#include "report/critical_path.h"

#include <errno.h>
#include <stdlib.h>

#include "report/path_items.h"

enum {
    WAITERS_MAX = 100, // coroutines that wait for one another in a row
    WAITS_NS = 1000,   // short waits, and as a part of an activity, that do not make it a divided one
    WAITS_PART = 100,
    CLEARED_NS = 1000000, // a coroutine that is over is known to be at most this much later
};

typedef struct piece { // of a running coroutine
    uint64_t from_ns, to_ns;
    uint32_t stack, state;
} piece_t;

typedef struct ended { // a coroutine that was over
    uint64_t spawner_id, end_ns;
    uint32_t coro;
} ended_t;

typedef struct walk {
    const gp_dataset_t *dataset;
    const gp_requests_t *requests;
    const gp_path_group_t *group;
    uint32_t request;
    gp_path_segment_t *segments; // the last one first
    size_t count, capacity;
    piece_t *pieces; // the first one first
    size_t piece_count, piece_capacity;
    uint32_t waiters[WAITERS_MAX]; // coroutines that the way has come from
    uint32_t waiter_count;
    uint32_t inferred; // how many of the ways that it is on now are; all segments are marked meanwhile
    ended_t *ended;    // of the trace, by spawner and end
    size_t ended_count, ended_capacity;
    int error;
} walk_t;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void emit(walk_t *walk, gp_path_segment_t segment)
{
    gp_path_segment_t *last = walk->count > 0 ? &walk->segments[walk->count - 1] : NULL;
    if (segment.to_ns <= segment.from_ns)
        return;
    segment.flags |= walk->inferred > 0 ? GP_PATH_INFERRED : 0u;
    if (last != NULL && last->from_ns == segment.to_ns && last->coro == segment.coro && last->stack == segment.stack &&
        last->blame == segment.blame && last->thread == segment.thread && last->state == segment.state &&
        last->flags == segment.flags) {
        last->from_ns = segment.from_ns;
        return;
    }
    if (gp_grow(&walk->segments, &walk->capacity, walk->count, sizeof(segment)) < 0)
        walk->error = -ENOMEM;
    else
        walk->segments[walk->count++] = segment;
}

// --- stacks

// The first of a coroutine's items that begin after a moment; others, or the end, where it has none.
static size_t first_after(const gp_path_item_t *items, size_t count, uint32_t coro, uint64_t at_ns)
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (items[mid].coro < coro || (items[mid].coro == coro && items[mid].start_ns <= at_ns))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool is_wait(uint32_t kind)
{
    return kind == GP_KIND_PARKED || kind == GP_KIND_READY || kind == GP_KIND_WAITING;
}

// A sample of a wait that ended in (from_ns, to_ns]: the first after `at_ns`, or else the last before; NULL = there is
// none.
static const gp_path_item_t *wait_sample(const walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns,
                                         uint64_t at_ns)
{
    const gp_path_item_t *samples = walk->group->samples;
    size_t count = walk->group->sample_count, after = first_after(samples, count, coro, at_ns);
    for (size_t i = after; i < count && samples[i].coro == coro && samples[i].start_ns <= to_ns; i++)
        if (is_wait(samples[i].kind))
            return &samples[i];
    for (size_t i = after; i > 0 && samples[i - 1].coro == coro && samples[i - 1].start_ns > from_ns; i--)
        if (is_wait(samples[i - 1].kind))
            return &samples[i - 1];
    return NULL;
}

static uint32_t stack_of(const gp_path_item_t *sample)
{
    return sample != NULL && sample->stack != 0 ? sample->stack : GP_INDEX_NONE;
}

// --- running

static void add_piece(walk_t *walk, uint64_t from_ns, uint64_t to_ns, uint32_t state, uint32_t stack)
{
    if (to_ns <= from_ns)
        return;
    if (gp_grow(&walk->pieces, &walk->piece_capacity, walk->piece_count, sizeof(*walk->pieces)) < 0)
        walk->error = -ENOMEM;
    else
        walk->pieces[walk->piece_count++] = (piece_t){from_ns, to_ns, stack, state};
}

// Give pieces of running that have no stack yet, from number `first` on, the one of a sample: so much of them as it
// stands for, the latest ones or the earliest ones.
static void name_pieces(walk_t *walk, size_t first, uint64_t budget_ns, bool is_latest, uint32_t stack)
{
    size_t count = walk->piece_count;
    for (size_t n = first; n < count && budget_ns > 0 && walk->error == 0; n++) {
        size_t i = is_latest ? count - 1 - (n - first) : n;
        piece_t piece = walk->pieces[i];
        uint64_t named = earlier(piece.to_ns - piece.from_ns, budget_ns);
        if (piece.state != GP_KIND_CPU || piece.stack != GP_INDEX_NONE)
            continue;
        budget_ns -= named;
        walk->pieces[i] = is_latest ? (piece_t){piece.to_ns - named, piece.to_ns, stack, GP_KIND_CPU}
                                    : (piece_t){piece.from_ns, piece.from_ns + named, stack, GP_KIND_CPU};
        if (is_latest)
            add_piece(walk, piece.from_ns, piece.to_ns - named, GP_KIND_CPU, GP_INDEX_NONE);
        else
            add_piece(walk, piece.from_ns + named, piece.to_ns, GP_KIND_CPU, GP_INDEX_NONE);
    }
}

static int by_time(const void *left, const void *right)
{
    const piece_t *a = left, *b = right;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

// Divide [from_ns, to_ns), in which a coroutine had its thread, by its samples.
static void make_pieces(walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns)
{
    const gp_path_group_t *group = walk->group;
    const gp_path_item_t *sample = NULL, *last = NULL;
    uint64_t at = from_ns;
    size_t i = first_after(group->samples, group->sample_count, coro, from_ns), first = 0;
    walk->piece_count = 0;
    for (; i < group->sample_count && group->samples[i].coro == coro && walk->error == 0; i++) {
        sample = &group->samples[i];
        uint64_t time = sample->start_ns, reach = gp_path_reach_ns(walk->dataset, sample->left_ns);
        bool is_cpu = sample->kind == GP_KIND_CPU;
        if (time > to_ns && !is_cpu)
            continue;
        if (time > to_ns) { // the one that is taken next
            add_piece(walk, at, to_ns, GP_KIND_CPU, GP_INDEX_NONE);
            at = to_ns;
            name_pieces(walk, first, reach > time - to_ns ? reach - (time - to_ns) : 0, true, stack_of(sample));
            break;
        }
        if (is_wait(sample->kind))
            continue;
        uint64_t since = is_cpu ? time : later(at, time > sample->left_ns ? time - sample->left_ns : 0);
        add_piece(walk, at, since, GP_KIND_CPU, GP_INDEX_NONE);
        if (is_cpu) {
            name_pieces(walk, first, 2 * reach, true, stack_of(sample)); // it may have come late
            first = walk->piece_count;
            last = sample;
        } else {
            add_piece(walk, since, time, sample->kind, stack_of(sample));
        }
        at = time;
    }
    add_piece(walk, at, to_ns, GP_KIND_CPU, GP_INDEX_NONE);
    if (last != NULL)
        name_pieces(walk, first, gp_path_reach_ns(walk->dataset, 0), false, stack_of(last));
    if (walk->piece_count > 1)
        qsort(walk->pieces, walk->piece_count, sizeof(*walk->pieces), by_time);
}

// How much of an activity up to a moment were slices.
static uint64_t slices_to(const gp_path_item_t *activity, uint64_t at_ns)
{
    return (uint64_t)((unsigned __int128)(at_ns - activity->start_ns) * activity->slice_ns /
                      (activity->left_ns - activity->start_ns));
}

static void emit_piece(walk_t *walk, const gp_path_item_t *activity, const piece_t *piece)
{
    gp_path_segment_t segment = {
        .from_ns = piece->from_ns,
        .to_ns = piece->to_ns,
        .coro = activity->coro,
        .stack = piece->stack,
        .blame = GP_INDEX_NONE,
        .state = piece->state,
    };
    uint64_t active = activity->left_ns - activity->start_ns;
    if (activity->slice_ns + WAITS_NS + active / WAITS_PART >= active) {
        emit(walk, segment);
        return;
    }
    uint64_t ran = slices_to(activity, piece->to_ns) - slices_to(activity, piece->from_ns);
    const gp_path_item_t *wait =
        wait_sample(walk, activity->coro, activity->start_ns, activity->left_ns, piece->from_ns);
    gp_path_segment_t waited = segment;
    segment.flags = waited.flags = GP_PATH_DIVIDED;
    segment.to_ns = waited.from_ns = piece->from_ns + ran;
    waited.state = wait != NULL ? wait->kind : GP_KIND_WAITING;
    waited.stack = stack_of(wait);
    emit(walk, waited);
    emit(walk, segment);
}

static void emit_running(walk_t *walk, const gp_path_item_t *activity, uint64_t from_ns, uint64_t to_ns)
{
    make_pieces(walk, activity->coro, from_ns, to_ns);
    for (size_t i = walk->piece_count; i > 0; i--)
        emit_piece(walk, activity, &walk->pieces[i - 1]);
}

// --- the way back

// Is an activity for the request? Not one of a coroutine that has a request of its own with the same trace.
static bool works(const walk_t *walk, const gp_path_item_t *activity)
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

static const gp_path_item_t *activity_before(const walk_t *walk, uint32_t coro, uint64_t at_ns)
{
    const gp_path_group_t *group = walk->group;
    size_t i = at_ns > 0 ? first_after(group->activities, group->activity_count, coro, at_ns - 1) : 0;
    return i > 0 && group->activities[i - 1].coro == coro ? &group->activities[i - 1] : NULL;
}

// The coroutine's one before, if nothing is between the two.
static const gp_path_item_t *adjoining(const walk_t *walk, const gp_path_item_t *activity)
{
    const gp_path_item_t *before = activity - 1;
    return activity > walk->group->activities && before->coro == activity->coro && before->end_ns == activity->start_ns
               ? before
               : NULL;
}

// A coroutine's activity in which it was at work for the request at a moment; or was right before, and went on without
// a wait: a result may be handed over when the request's part is over already. NULL = it was not.
static const gp_path_item_t *work_at(const walk_t *walk, uint32_t coro, uint64_t at_ns)
{
    const gp_path_item_t *activity = activity_before(walk, coro, at_ns);
    const gp_path_item_t *at = activity;
    if (activity == NULL || activity->left_ns < at_ns)
        return NULL;
    while (!works(walk, at)) {
        at = adjoining(walk, at);
        if (at == NULL || at->left_ns != at->end_ns || at_ns - at->end_ns > GP_PATH_SLACK_NS)
            return NULL;
    }
    return activity;
}

static bool is_waiter(const walk_t *walk, uint32_t coro)
{
    for (uint32_t i = 0; i < walk->waiter_count; i++)
        if (walk->waiters[i] == coro)
            return true;
    return false;
}

static uint64_t walk_back(walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns, bool is_base);

static int by_spawner(const void *left, const void *right)
{
    const ended_t *a = left, *b = right;
    if (a->spawner_id != b->spawner_id)
        return a->spawner_id < b->spawner_id ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return a->coro < b->coro ? -1 : a->coro > b->coro;
}

static int find_ended(walk_t *walk)
{
    walk->ended_count = 0;
    for (size_t i = 0; i < walk->group->activity_count; i++) {
        const gp_path_item_t *activity = &walk->group->activities[i];
        uint64_t spawner = walk->dataset->coros[activity->coro].record.parent_id;
        if (!activity->is_last || activity->end_ns - activity->left_ns > CLEARED_NS || spawner == 0)
            continue; // what has been waiting when the capture ends is not over
        if (gp_grow(&walk->ended, &walk->ended_capacity, walk->ended_count, sizeof(*walk->ended)) < 0)
            return -ENOMEM;
        walk->ended[walk->ended_count++] = (ended_t){spawner, activity->left_ns, activity->coro};
    }
    if (walk->ended_count > 0)
        qsort(walk->ended, walk->ended_count, sizeof(*walk->ended), by_spawner);
    return 0;
}

// The last child of a coroutine that ended in (from_ns, to_ns]; NULL = none did.
static const ended_t *child_ended(const walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns)
{
    const ended_t key = {.spawner_id = walk->dataset->coros[coro].record.id, .end_ns = to_ns, .coro = UINT32_MAX};
    size_t lo = 0, hi = walk->ended_count;
    while (lo < hi) { // the first that is beyond
        size_t mid = lo + (hi - lo) / 2;
        if (by_spawner(&walk->ended[mid], &key) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    const ended_t *found = lo > 0 ? &walk->ended[lo - 1] : NULL;
    return found != NULL && found->spawner_id == key.spawner_id && found->end_ns > from_ns ? found : NULL;
}

// It waited, and nothing says for what; perhaps for its child that ended last, after a moment.
static void emit_unexplained(walk_t *walk, gp_path_segment_t segment, uint64_t since_ns)
{
    const ended_t *child = child_ended(walk, segment.coro, since_ns, segment.to_ns);
    if (child == NULL || walk->waiter_count >= WAITERS_MAX || is_waiter(walk, child->coro) ||
        work_at(walk, child->coro, child->end_ns) == NULL) {
        emit(walk, segment);
        return;
    }
    gp_path_segment_t rest = segment;
    rest.from_ns = child->end_ns;
    emit(walk, rest);
    walk->inferred++;
    segment.to_ns = walk_back(walk, child->coro, segment.from_ns, child->end_ns, false);
    walk->inferred--;
    emit(walk, segment);
}

// It was parked in [from_ns, to_ns). Where the loop ended the wait for a call that it handed to another thread, the
// call is a child that ended right before.
static void emit_parked(walk_t *walk, const gp_path_item_t *activity, gp_path_segment_t segment)
{
    uint32_t waker = activity->waker;
    segment.blame = waker;
    segment.state = GP_KIND_PARKED;
    if (waker != GP_INDEX_NONE && waker != activity->coro && walk->waiter_count < WAITERS_MAX &&
        !is_waiter(walk, waker) && work_at(walk, waker, activity->ready_ns) != NULL) {
        segment.to_ns = walk_back(walk, waker, segment.from_ns, segment.to_ns, false);
        emit(walk, segment);
        return;
    }
    uint64_t near_ns = segment.to_ns > CLEARED_NS ? segment.to_ns - CLEARED_NS : 0;
    emit_unexplained(walk, segment, later(segment.from_ns, near_ns));
}

// It waited in [from_ns, to_ns), a part of [left_ns, end_ns).
static void emit_wait(walk_t *walk, const gp_path_item_t *activity, uint64_t from_ns, uint64_t to_ns)
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
        .stack = stack_of(wait_sample(walk, activity->coro, activity->left_ns, activity->end_ns, activity->end_ns - 1)),
        .blame = GP_INDEX_NONE,
        .state = GP_KIND_WAITING,
    };
    if (!is_known) {
        emit_unexplained(walk, segment, segment.from_ns);
        return;
    }
    uint64_t ready = later(from_ns, earlier(activity->ready_ns, to_ns));
    gp_path_segment_t runnable = segment;
    runnable.from_ns = ready;
    runnable.state = GP_KIND_READY;
    emit(walk, runnable);
    segment.thread = 0;
    segment.to_ns = ready;
    if (segment.to_ns > segment.from_ns)
        emit_parked(walk, activity, segment);
}

// What no activity of the coroutine on which the request began tells.
static void emit_gap(walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns, uint32_t flags)
{
    emit(walk, (gp_path_segment_t){.from_ns = from_ns,
                                   .to_ns = to_ns,
                                   .coro = coro,
                                   .stack = GP_INDEX_NONE,
                                   .blame = GP_INDEX_NONE,
                                   .state = flags & GP_PATH_UNRECORDED ? GP_KIND_WAITING : GP_KIND_READY,
                                   .flags = flags});
}

// Explain [from_ns, to_ns) by what a coroutine did. The one on which the request began explains all of it; others, what
// they were at work for it. Returns the beginning of what is explained.
static uint64_t walk_back(walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns, bool is_base)
{
    const gp_request_t *request = &walk->requests->items[walk->request];
    const gp_path_item_t *activity = activity_before(walk, coro, to_ns);
    bool is_handing_over = !is_base;
    uint64_t at = to_ns;
    walk->waiters[walk->waiter_count++] = coro;
    while (at > from_ns && walk->error == 0 && activity != NULL) {
        bool is_own = works(walk, activity);
        is_handing_over = is_handing_over && !is_own && activity->left_ns >= at;
        if (!is_base && !is_own && !is_handing_over)
            break;
        if (activity->end_ns < at) {
            if (!is_base)
                break;
            uint64_t since = later(from_ns, activity->end_ns);
            emit_gap(walk, coro, since, at, GP_PATH_UNRECORDED);
            at = since;
        }
        uint64_t left = later(from_ns, activity->left_ns), start = later(from_ns, activity->start_ns);
        bool is_elsewhere =
            is_base && !request->is_about && !is_own && walk->dataset->traces[activity->own_trace].index != 0;
        if (is_elsewhere && at > start)
            emit_gap(walk, coro, start, at, GP_PATH_ELSEWHERE);
        if (!is_elsewhere && at > left)
            emit_wait(walk, activity, left, at);
        if (!is_elsewhere && earlier(at, left) > start)
            emit_running(walk, activity, start, earlier(at, left));
        at = earlier(at, start);
        activity = activity > walk->group->activities && activity[-1].coro == coro ? activity - 1 : NULL;
    }
    if (is_base && at > from_ns) {
        bool is_born = at <= walk->dataset->coros[coro].record.birth_ns + WAITS_NS;
        emit_gap(walk, coro, from_ns, at, is_born ? GP_PATH_NOT_STARTED : GP_PATH_UNRECORDED);
        at = from_ns;
    }
    walk->waiter_count--;
    return at;
}

typedef struct paths {
    walk_t walk;
    bool *wanted; // bool[requests->count]: not walked yet
    gp_path_taker_t *take;
    void *context;
} paths_t;

static int walk_request(paths_t *paths, uint32_t number)
{
    walk_t *walk = &paths->walk;
    const gp_request_t *request = &walk->requests->items[number];
    uint64_t at = request->end_ns;
    walk->request = number;
    walk->count = 0;
    walk->waiter_count = 0;
    walk->error = 0;
    paths->wanted[number] = false;
    if (request->end_coro != request->coro)
        at = walk_back(walk, request->end_coro, request->start_ns, at, false);
    if (at > request->start_ns)
        walk_back(walk, request->coro, request->start_ns, at, true);
    for (size_t i = 0; i < walk->count / 2; i++) {
        gp_path_segment_t segment = walk->segments[i];
        walk->segments[i] = walk->segments[walk->count - 1 - i];
        walk->segments[walk->count - 1 - i] = segment;
    }
    return walk->error < 0 ? walk->error : paths->take(paths->context, number, walk->segments, walk->count);
}

static int take_group(void *context, const gp_path_group_t *group)
{
    paths_t *paths = context;
    const gp_requests_t *requests = paths->walk.requests;
    paths->walk.group = group;
    int result = find_ended(&paths->walk);
    for (uint32_t i = requests->first[group->trace]; i < requests->first[group->trace + 1] && result == 0; i++)
        if (paths->wanted[i])
            result = walk_request(paths, i);
    return result;
}

// Of those that are left nothing at all was recorded.
static int walk_rest(paths_t *paths)
{
    gp_path_group_t empty = {0};
    int result = 0;
    paths->walk.ended_count = 0;
    for (uint32_t i = 0; i < paths->walk.requests->count && result == 0; i++) {
        empty.trace = paths->walk.requests->items[i].trace;
        paths->walk.group = &empty;
        if (paths->wanted[i])
            result = walk_request(paths, i);
    }
    return result;
}

int gp_critical_paths(const gp_dataset_t *dataset, const gp_requests_t *requests, const bool *chosen,
                      gp_path_taker_t *take, void *context)
{
    paths_t paths = {.walk = {.dataset = dataset, .requests = requests}, .take = take, .context = context};
    bool *traces = calloc(dataset->trace_count + 1, sizeof(*traces));
    int result = -ENOMEM;
    paths.wanted = calloc(requests->count + 1, sizeof(*paths.wanted));
    if (traces != NULL && paths.wanted != NULL) {
        for (size_t i = 0; i < requests->count; i++) {
            paths.wanted[i] = chosen == NULL || chosen[i];
            traces[requests->items[i].trace] |= paths.wanted[i];
        }
        result = gp_path_each_group(dataset, requests, traces, take_group, &paths);
    }
    if (result == 0)
        result = walk_rest(&paths);
    free(traces);
    free(paths.wanted);
    free(paths.walk.segments);
    free(paths.walk.pieces);
    free(paths.walk.ended);
    return result;
}

// --- what kept the thread

typedef struct keeping {
    const gp_dataset_t *dataset;
    gp_path_ready_t *ready; // by thread, then by beginning
    uint64_t *latest_ns;    // the latest to_ns of a thread's up to each
    size_t count;
} keeping_t;

static int by_thread(const void *left, const void *right)
{
    const gp_path_ready_t *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return a->to_ns < b->to_ns ? -1 : a->to_ns > b->to_ns;
}

static void add_keeper(gp_path_ready_t *ready, uint32_t coro, uint64_t ns)
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

static int take_keeper(void *context, const gp_activity_record_t *activity)
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
            add_keeper(ready, coro, ns);
    }
    return 0;
}

static int by_time_kept(const void *left, const void *right)
{
    uint64_t a = ((const uint64_t *)left)[1], b = ((const uint64_t *)right)[1];
    return a > b ? -1 : a < b;
}

// The one that kept it longest first; not more than there is to be kept.
static void settle(gp_path_ready_t *ready)
{
    uint64_t left = ready->to_ns - ready->from_ns;
    _Static_assert(sizeof(ready->keepers[0]) == 2 * sizeof(uint64_t), "as by_time_kept() reads it");
    if (ready->keeper_count > 1)
        qsort(ready->keepers, ready->keeper_count, sizeof(ready->keepers[0]), by_time_kept);
    for (uint32_t i = 0; i < ready->keeper_count; i++) {
        ready->keepers[i].ns = earlier(ready->keepers[i].ns, left);
        left -= ready->keepers[i].ns;
    }
}

int gp_critical_keepers(const gp_dataset_t *dataset, gp_path_ready_t *ready, size_t count)
{
    const gp_reader_handlers_t handlers = {.activity = take_keeper};
    char error[GP_READER_ERROR_SIZE];
    keeping_t keeping = {dataset, ready, calloc(count + 1, sizeof(uint64_t)), count};
    if (keeping.latest_ns == NULL)
        return -ENOMEM;
    if (count > 0)
        qsort(ready, count, sizeof(*ready), by_thread);
    for (size_t i = 0; i < count; i++) {
        bool follows = i > 0 && ready[i - 1].thread == ready[i].thread;
        keeping.latest_ns[i] = follows ? later(keeping.latest_ns[i - 1], ready[i].to_ns) : ready[i].to_ns;
        ready[i].keeper_count = 0;
    }
    int result = count > 0 ? gp_dataset_read_again(dataset, &handlers, &keeping, error) : 0;
    for (size_t i = 0; i < count && result == 0; i++)
        settle(&ready[i]);
    free(keeping.latest_ns);
    return result;
}
