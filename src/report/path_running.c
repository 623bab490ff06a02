// SPDX-License-Identifier: MIT
// Running parts of a critical path: their stacks are those of samples.
#include <errno.h>
#include <stdlib.h>

#include "report/path_walk.h"

enum {
    WAITS_PART = 100,   // of an activity: short waits that do not make it a divided one
    AWAKE_NS = 1000000, // on the CPU between two parts of one sleep, at most
};

void gp_path_emit(gp_path_walk_t *walk, gp_path_segment_t segment)
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

size_t gp_path_first_after(const gp_path_item_t *items, size_t count, uint32_t coro, uint64_t at_ns)
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

static bool path_running_is_wait(uint32_t kind)
{
    return kind == GP_KIND_PARKED || kind == GP_KIND_READY || kind == GP_KIND_WAITING || kind == GP_KIND_QUEUED;
}

const gp_path_item_t *gp_path_wait_sample(const gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns,
                                          uint64_t at_ns)
{
    const gp_path_item_t *samples = walk->group->samples;
    size_t count = walk->group->sample_count, after = gp_path_first_after(samples, count, coro, at_ns);
    for (size_t i = after; i < count && samples[i].coro == coro && samples[i].start_ns <= to_ns; i++)
        if (path_running_is_wait(samples[i].kind))
            return &samples[i];
    for (size_t i = after; i > 0 && samples[i - 1].coro == coro && samples[i - 1].start_ns > from_ns; i--)
        if (path_running_is_wait(samples[i - 1].kind))
            return &samples[i - 1];
    return NULL;
}

void gp_path_add_piece(gp_path_walk_t *walk, uint64_t from_ns, uint64_t to_ns, uint32_t state, uint32_t stack)
{
    if (to_ns <= from_ns)
        return;
    if (gp_grow(&walk->pieces, &walk->piece_capacity, walk->piece_count, sizeof(*walk->pieces)) < 0)
        walk->error = -ENOMEM;
    else
        walk->pieces[walk->piece_count++] = (gp_path_piece_t){from_ns, to_ns, stack, state, 0};
}

// Give pieces of running without a stack, from number `first` on, the stack of a sample: as much time as the sample
// stands for, of the latest pieces or the earliest.
static void path_running_name_pieces(gp_path_walk_t *walk, size_t first, uint64_t budget_ns, bool is_latest,
                                     uint32_t stack)
{
    size_t count = walk->piece_count;
    for (size_t n = first; n < count && budget_ns > 0 && walk->error == 0; n++) {
        size_t i = is_latest ? count - 1 - (n - first) : n;
        gp_path_piece_t piece = walk->pieces[i];
        uint64_t named = gp_path_earlier(piece.to_ns - piece.from_ns, budget_ns);
        if (piece.state != GP_KIND_CPU || piece.stack != GP_INDEX_NONE)
            continue;
        budget_ns -= named;
        walk->pieces[i] = is_latest ? (gp_path_piece_t){piece.to_ns - named, piece.to_ns, stack, GP_KIND_CPU, 0}
                                    : (gp_path_piece_t){piece.from_ns, piece.from_ns + named, stack, GP_KIND_CPU, 0};
        if (is_latest)
            gp_path_add_piece(walk, piece.from_ns, piece.to_ns - named, GP_KIND_CPU, GP_INDEX_NONE);
        else
            gp_path_add_piece(walk, piece.from_ns + named, piece.to_ns, GP_KIND_CPU, GP_INDEX_NONE);
    }
}

static int path_running_by_time(const void *left, const void *right)
{
    const gp_path_piece_t *a = left, *b = right;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

// Divide [from_ns, to_ns), in which a coroutine had its thread, by its samples.
static void path_running_make_pieces(gp_path_walk_t *walk, uint32_t coro, uint64_t from_ns, uint64_t to_ns)
{
    const gp_path_group_t *group = walk->group;
    const gp_path_item_t *sample = NULL, *last = NULL;
    uint64_t at = from_ns;
    size_t i = gp_path_first_after(group->samples, group->sample_count, coro, from_ns), first = 0;
    walk->piece_count = 0;
    for (; i < group->sample_count && group->samples[i].coro == coro && walk->error == 0; i++) {
        sample = &group->samples[i];
        uint64_t time = sample->start_ns, reach = gp_path_reach_ns(walk->dataset, sample->left_ns);
        bool is_cpu = sample->kind == GP_KIND_CPU;
        if (time > to_ns && !is_cpu)
            continue;
        if (time > to_ns) { // the one that is taken next
            gp_path_add_piece(walk, at, to_ns, GP_KIND_CPU, GP_INDEX_NONE);
            at = to_ns;
            path_running_name_pieces(walk, first, reach > time - to_ns ? reach - (time - to_ns) : 0, true,
                                     gp_path_stack_of(sample));
            break;
        }
        if (path_running_is_wait(sample->kind))
            continue;
        uint64_t since = is_cpu ? time : gp_path_later(at, time > sample->left_ns ? time - sample->left_ns : 0);
        gp_path_add_piece(walk, at, since, GP_KIND_CPU, GP_INDEX_NONE);
        if (is_cpu) {
            path_running_name_pieces(walk, first, 2 * reach, true, gp_path_stack_of(sample)); // a sample may be late
            first = walk->piece_count;
            last = sample;
        } else {
            gp_path_add_piece(walk, since, time, sample->kind, gp_path_stack_of(sample));
        }
        at = time;
    }
    gp_path_add_piece(walk, at, to_ns, GP_KIND_CPU, GP_INDEX_NONE);
    if (last != NULL)
        path_running_name_pieces(walk, first, gp_path_reach_ns(walk->dataset, 0), false, gp_path_stack_of(last));
}

static void path_running_sort_pieces(gp_path_walk_t *walk)
{
    if (walk->piece_count > 1)
        qsort(walk->pieces, walk->piece_count, sizeof(*walk->pieces), path_running_by_time);
}

// How much of an activity up to a moment were slices.
static uint64_t path_running_slices_to(const gp_path_item_t *activity, uint64_t at_ns)
{
    return (uint64_t)((unsigned __int128)(at_ns - activity->start_ns) * activity->slice_ns /
                      (activity->left_ns - activity->start_ns));
}

static void path_running_emit_piece(gp_path_walk_t *walk, const gp_path_item_t *activity, const gp_path_piece_t *piece)
{
    gp_path_segment_t segment = {
        .from_ns = piece->from_ns,
        .to_ns = piece->to_ns,
        .coro = activity->coro,
        .stack = piece->stack,
        .blame = GP_INDEX_NONE,
        .state = piece->state,
        .flags = piece->flags,
    };
    uint64_t active = activity->left_ns - activity->start_ns;
    if (activity->slice_ns + GP_PATH_WAITS_NS + active / WAITS_PART >= active) {
        gp_path_emit(walk, segment);
        return;
    }
    uint64_t ran = path_running_slices_to(activity, piece->to_ns) - path_running_slices_to(activity, piece->from_ns);
    const gp_path_item_t *wait =
        gp_path_wait_sample(walk, activity->coro, activity->start_ns, activity->left_ns, piece->from_ns);
    gp_path_segment_t waited = segment;
    segment.flags |= GP_PATH_DIVIDED;
    waited.flags = GP_PATH_DIVIDED;
    segment.to_ns = waited.from_ns = piece->from_ns + ran;
    waited.state = wait != NULL ? wait->kind : GP_KIND_WAITING;
    waited.stack = gp_path_stack_of(wait);
    gp_path_emit(walk, waited);
    gp_path_emit(walk, segment);
}

static void path_running_divide(gp_path_walk_t *walk, const gp_path_item_t *activity)
{
    if (walk->divided == activity)
        return;
    path_running_make_pieces(walk, activity->coro, activity->start_ns, activity->left_ns);
    path_running_sort_pieces(walk);
    gp_path_fit(walk, activity);
    path_running_sort_pieces(walk);
    walk->divided = activity;
    walk->slept = (gp_path_slept_t){.lo = 1};
}

// Are two stacks of one place, but for a function that one of them is in? Lines do not count.
static bool path_running_same_place(const gp_path_walk_t *walk, uint32_t left, uint32_t right)
{
    if (left == right || left == GP_INDEX_NONE || right == GP_INDEX_NONE)
        return true;
    const gp_facts_stack_t *a = &walk->dataset->facts.stacks.items[left],
                           *b = &walk->dataset->facts.stacks.items[right];
    uint16_t common = a->depth < b->depth ? a->depth : b->depth;
    if (a->depth > common + 1 || b->depth > common + 1)
        return false;
    for (uint16_t i = 1; i <= common; i++) {
        gp_loc_t x = a->frames[a->depth - i], y = b->frames[b->depth - i];
        bool is_language = GP_LOC_MODULE(x) == GP_MODULE_LANGUAGE && GP_LOC_MODULE(y) == GP_MODULE_LANGUAGE;
        if (is_language ? GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(x)) != GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(y)) : x != y)
            return false;
    }
    return true;
}

static bool path_running_sleeps_on(const gp_path_walk_t *walk, const gp_path_piece_t *piece,
                                   const gp_path_piece_t *sleep)
{
    if (piece->state == GP_KIND_CPU)
        return piece->to_ns - piece->from_ns < AWAKE_NS;
    return piece->state != GP_KIND_BLOCKED || path_running_same_place(walk, piece->stack, sleep->stack);
}

gp_path_pieces_t gp_path_put_by(gp_path_walk_t *walk)
{
    gp_path_pieces_t pieces = {walk->pieces, walk->divided, walk->piece_count, walk->piece_capacity, walk->slept};
    walk->pieces = NULL;
    walk->divided = NULL;
    walk->piece_count = walk->piece_capacity = 0;
    return pieces;
}

void gp_path_take_back(gp_path_walk_t *walk, gp_path_pieces_t pieces)
{
    free(walk->pieces);
    walk->pieces = pieces.pieces;
    walk->divided = pieces.divided;
    walk->piece_count = pieces.count;
    walk->piece_capacity = pieces.capacity;
    walk->slept = pieces.slept;
}

// How many pieces begin before a moment.
static size_t path_running_begun(const gp_path_walk_t *walk, uint64_t at_ns)
{
    size_t lo = 0, hi = walk->piece_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (walk->pieces[mid].from_ns < at_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// The sleep whose last part before a moment is the piece in front of number `last`.
static gp_path_slept_t path_running_slept(const gp_path_walk_t *walk, size_t last)
{
    const gp_path_piece_t *in = &walk->pieces[last - 1];
    gp_path_slept_t slept = {.sleep = {in->from_ns, in->to_ns}, .first = last - 1, .after = last, .stack = in->stack};
    for (; slept.first > 0 && path_running_sleeps_on(walk, &walk->pieces[slept.first - 1], in); slept.first--)
        if (walk->pieces[slept.first - 1].state != GP_KIND_CPU)
            slept.sleep.from_ns = walk->pieces[slept.first - 1].from_ns;
    for (; slept.after < walk->piece_count && path_running_sleeps_on(walk, &walk->pieces[slept.after], in);
         slept.after++)
        if (walk->pieces[slept.after].state == GP_KIND_BLOCKED)
            slept.sleep.to_ns = walk->pieces[slept.after].to_ns;
    return slept;
}

// Thousands of calls may have ended in one sleep, or after the same one.
gp_path_sleep_t gp_path_sleep_before(gp_path_walk_t *walk, const gp_path_item_t *activity, uint64_t at_ns)
{
    gp_path_slept_t *slept = &walk->slept;
    path_running_divide(walk, activity);
    size_t begun = path_running_begun(walk, at_ns), last = begun;
    if (begun >= slept->lo && begun <= slept->hi)
        return slept->sleep;
    while (last > 0 && walk->pieces[last - 1].state != GP_KIND_BLOCKED)
        last--;
    if (last == 0)
        *slept = (gp_path_slept_t){.lo = 0};
    else if (last - 1 < slept->first || last - 1 >= slept->after || walk->pieces[last - 1].stack != slept->stack)
        *slept = path_running_slept(walk, last);
    slept->lo = last;
    slept->hi = begun;
    return slept->sleep;
}

void gp_path_emit_running(gp_path_walk_t *walk, const gp_path_item_t *activity, uint64_t from_ns, uint64_t to_ns)
{
    path_running_divide(walk, activity);
    for (size_t i = path_running_begun(walk, to_ns); i > 0 && walk->pieces[i - 1].to_ns > from_ns; i--) {
        gp_path_piece_t piece = walk->pieces[i - 1];
        piece.from_ns = gp_path_later(piece.from_ns, from_ns);
        piece.to_ns = gp_path_earlier(piece.to_ns, to_ns);
        if (piece.to_ns > piece.from_ns)
            path_running_emit_piece(walk, activity, &piece);
    }
}
