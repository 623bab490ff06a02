// SPDX-License-Identifier: MIT
// The pieces of an activity, made to add up to the clocks' time of each state.
//
// Model: samples say what a moment was; the ledger, how much there was of it. Where a state has more in pieces than in
// the ledger, time without samples goes first, and then the same share of each piece; time that becomes another state
// has the stack of the nearest sample in this state.
#include <string.h>

#include "report/path_walk.h"

enum {
    APART_NS = 1000, // the clocks of switches and of threads are read a moment apart:
    APART_PART = 100 // this much, or this part of an activity, is no difference
};

typedef struct fit {
    uint64_t there[GP_KIND_COUNT], due[GP_KIND_COUNT], lacking[GP_KIND_COUNT];
    uint64_t unnamed;              // of `there` on the CPU, without a stack
    uint64_t excess;               // of all states
    uint64_t changed;              // of that, so far
    uint32_t stack[GP_KIND_COUNT]; // latest one of each state; at first, the first one
} fit_t;

typedef struct part { // of pieces of one kind: how much of them is too much
    uint64_t all, excess, seen;
} part_t;

static uint64_t path_fit_scale(uint64_t whole, uint64_t part, uint64_t of)
{
    return of > 0 ? (uint64_t)((unsigned __int128)whole * part / of) : 0;
}

// Between two points of a division, so that rounding adds nothing up.
static uint64_t path_fit_step(uint64_t whole, uint64_t from, uint64_t to, uint64_t of)
{
    return path_fit_scale(whole, to, of) - path_fit_scale(whole, from, of);
}

static void path_fit_find_due(fit_t *fit, const gp_path_item_t *activity)
{
    uint64_t active = activity->left_ns - activity->start_ns, slice = activity->slice_ns;
    fit->due[GP_KIND_CPU] = path_fit_scale(active, gp_path_earlier(activity->cpu_ns, slice), slice);
    uint64_t off = active - fit->due[GP_KIND_CPU],
             blocked = gp_path_earlier(path_fit_scale(active, activity->blocked_ns, slice), off),
             gil = gp_path_earlier(path_fit_scale(active, activity->gil_ns, slice), off),
             lock = gp_path_earlier(path_fit_scale(active, activity->lock_ns, slice), off - gil);
    fit->due[GP_KIND_GIL] = gil;
    fit->due[GP_KIND_LOCK] = lock;
    fit->due[GP_KIND_BLOCKED] = blocked > gil + lock ? blocked - gil - lock : 0;
    fit->due[GP_KIND_PREEMPTED] = off - gil - lock - fit->due[GP_KIND_BLOCKED];
}

static void path_fit_find_there(fit_t *fit, const gp_path_walk_t *walk)
{
    memset(fit->stack, 0xff, sizeof(fit->stack)); // GP_INDEX_NONE
    for (size_t i = 0; i < walk->piece_count; i++) {
        const gp_path_piece_t *piece = &walk->pieces[i];
        uint64_t ns = piece->to_ns - piece->from_ns;
        fit->there[piece->state] += ns;
        if (piece->stack == GP_INDEX_NONE)
            fit->unnamed += piece->state == GP_KIND_CPU ? ns : 0;
        else if (fit->stack[piece->state] == GP_INDEX_NONE)
            fit->stack[piece->state] = piece->stack;
    }
}

static uint32_t path_fit_stack_for(const fit_t *fit, uint32_t state)
{
    uint32_t stack = fit->stack[state];
    return stack == GP_INDEX_NONE && state == GP_KIND_PREEMPTED ? fit->stack[GP_KIND_CPU] : stack;
}

// [from_ns, to_ns) becomes what is lacking.
static void path_fit_change(gp_path_walk_t *walk, fit_t *fit, uint64_t from_ns, uint64_t to_ns)
{
    static const uint32_t states[] = {GP_KIND_CPU, GP_KIND_GIL, GP_KIND_LOCK, GP_KIND_BLOCKED, GP_KIND_PREEMPTED};
    uint64_t upto = fit->changed + to_ns - from_ns, at = from_ns;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        uint32_t state = states[i];
        uint64_t ns = path_fit_step(fit->lacking[state], fit->changed, upto, fit->excess);
        uint64_t end_ns = gp_path_earlier(at + ns, to_ns);
        gp_path_add_piece(walk, at, end_ns, state, path_fit_stack_for(fit, state));
        at = end_ns;
    }
    if (at < to_ns) // the rest by rounding
        gp_path_add_piece(walk, at, to_ns, fit->lacking[GP_KIND_BLOCKED] > 0 ? GP_KIND_BLOCKED : GP_KIND_PREEMPTED,
                          GP_INDEX_NONE);
    fit->changed = upto;
}

static void path_fit_shrink(gp_path_walk_t *walk, fit_t *fit, size_t number, part_t *part)
{
    gp_path_piece_t piece = walk->pieces[number];
    uint64_t ns = piece.to_ns - piece.from_ns,
             less = path_fit_step(part->excess, part->seen, part->seen + ns, part->all);
    part->seen += ns;
    if (piece.stack != GP_INDEX_NONE)
        fit->stack[piece.state] = piece.stack;
    walk->pieces[number].to_ns = piece.to_ns - less;
    if (less > 0)
        path_fit_change(walk, fit, piece.to_ns - less, piece.to_ns);
}

static void path_fit_change_pieces(gp_path_walk_t *walk, fit_t *fit)
{
    part_t unnamed = {.all = fit->unnamed}, parts[GP_KIND_COUNT];
    for (uint32_t state = 0; state < GP_KIND_COUNT; state++) {
        uint64_t there = fit->there[state], due = fit->due[state], more = there > due ? there - due : 0;
        parts[state] = (part_t){.all = there, .excess = more};
        fit->lacking[state] = due > there ? due - there : 0;
        fit->excess += more;
    }
    unnamed.excess = gp_path_earlier(parts[GP_KIND_CPU].excess, fit->unnamed);
    parts[GP_KIND_CPU].excess -= unnamed.excess;
    parts[GP_KIND_CPU].all -= fit->unnamed;
    for (size_t i = 0, count = walk->piece_count; i < count && walk->error == 0; i++) {
        const gp_path_piece_t *piece = &walk->pieces[i];
        bool is_unnamed = piece->state == GP_KIND_CPU && piece->stack == GP_INDEX_NONE;
        path_fit_shrink(walk, fit, i, is_unnamed ? &unnamed : &parts[piece->state]);
    }
}

// Nothing says whether it ran, or was off the CPU.
static void path_fit_mark_unknown(gp_path_walk_t *walk)
{
    for (size_t i = 0; i < walk->piece_count; i++) {
        gp_path_piece_t *piece = &walk->pieces[i];
        if (piece->state != GP_KIND_CPU || piece->stack != GP_INDEX_NONE)
            continue;
        piece->state = GP_KIND_WAITING;
        piece->flags = GP_PATH_UNKNOWN;
    }
}

void gp_path_fit(gp_path_walk_t *walk, const gp_path_item_t *activity)
{
    uint64_t active = activity->left_ns - activity->start_ns;
    fit_t fit = {.excess = 0};
    if (!activity->has_times) {
        path_fit_mark_unknown(walk);
        return;
    }
    if (active == 0 || activity->slice_ns == 0)
        return;
    path_fit_find_due(&fit, activity);
    path_fit_find_there(&fit, walk);
    uint64_t cpu_apart = fit.there[GP_KIND_CPU] > fit.due[GP_KIND_CPU] ? fit.there[GP_KIND_CPU] - fit.due[GP_KIND_CPU]
                                                                       : fit.due[GP_KIND_CPU] - fit.there[GP_KIND_CPU];
    if (cpu_apart > APART_NS + active / APART_PART)
        path_fit_change_pieces(walk, &fit);
}
