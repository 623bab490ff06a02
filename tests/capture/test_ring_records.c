// SPDX-License-Identifier: MIT
// Ring records as records of a capture: each form of a stack, each kind of time, spans and activities. The collector
// and greenprof recover share what is tested here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture/span_record.h"
#include "capture/write/ring_to_records.h"

enum { OWN_PC = 0x10, ENTRY_PC = 0x20, NOWHERE_PC = 0x30, DEPTH_MAX = 64 };

#define PSEUDO(which) GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_##which)
#define LANGUAGE(loc) (GP_LANGUAGE_FRAME | (loc))

// The program's frames are where they are; greenprof's own, and what is nowhere, have the addresses above.
static gp_loc_t locate(void *context, uintptr_t word)
{
    ++*(unsigned *)context;
    if (gp_language_is_frame(word))
        return (gp_loc_t)(word & ~GP_LANGUAGE_FRAME);
    if (word == OWN_PC || word == ENTRY_PC)
        return GP_LOC_OWN;
    return word == NOWHERE_PC ? PSEUDO(UNKNOWN) : GP_LOC(1, word);
}

typedef struct made {
    gp_sample_t *sample;
    gp_loc_t locs[DEPTH_MAX + GP_RING_STACK_MORE];
    gp_stack_t stack;
    unsigned located;
} made_t;

static void make(made_t *made, unsigned flags, const uintptr_t *frames, size_t depth)
{
    const gp_locator_t locator = {locate, &made->located, {ENTRY_PC, ENTRY_PC + 1}};
    memset(made, 0, sizeof(*made));
    made->sample = calloc(1, sizeof(*made->sample) + DEPTH_MAX * sizeof(frames[0]));
    assert_non_null(made->sample);
    made->sample->flags = flags;
    made->sample->depth = depth;
    if (depth > 0)
        memcpy(made->sample->frames, frames, depth * sizeof(frames[0]));
    gp_ring_stack(made->sample, &locator, made->locs, &made->stack);
    free(made->sample);
}

typedef struct form {
    unsigned flags;
    uintptr_t frames[8];
    gp_loc_t locs[8];
    unsigned stack_flags;
} form_t;

static void each_form(void **state)
{
    static const form_t forms[] = {
        {0, {0x100, 0x200}, {GP_LOC(1, 0x100), GP_LOC(1, 0x200)}, 0},
        {0, {0x100, OWN_PC, 0x200}, {GP_LOC(1, 0x200)}, 0}, // what greenprof calls is the caller's time
        {0, {0x100, ENTRY_PC}, {GP_LOC(1, 0x100)}, 0},      // what a thread's stack begins with is not
        {0, {OWN_PC}, {PSEUDO(UNKNOWN)}, 0},
        {0, {0}, {PSEUDO(UNKNOWN)}, 0},
        {0, {LANGUAGE(0x100), LANGUAGE(GP_LOC_OWN), 0x200}, {0x100, GP_LOC(1, 0x200)}, 0},
        {0, {LANGUAGE(0x100), LANGUAGE(GP_LOC_CUT), 0x200}, {0x100}, 0},
        {0, {0x100, NOWHERE_PC, NOWHERE_PC, 0x200}, {GP_LOC(1, 0x100), PSEUDO(UNKNOWN), GP_LOC(1, 0x200)}, 0},
        {GP_SAMPLE_SWITCHING, {0x100, 0x200}, {PSEUDO(SWITCHING)}, GP_STACK_SWITCHING},
        {GP_SAMPLE_HELD_BACK, {0}, {PSEUDO(SIGNAL_BLOCKED)}, 0},
        {GP_SAMPLE_NOT_STARTED, {0x100}, {PSEUDO(NOT_STARTED), GP_LOC(1, 0x100)}, 0},
        {GP_SAMPLE_TRUNCATED,
         {0x100, 0x200},
         {GP_LOC(1, 0x100), PSEUDO(TRUNCATED), GP_LOC(1, 0x200)},
         GP_STACK_TRUNCATED},
        {GP_SAMPLE_INCOMPLETE, {0x100}, {GP_LOC(1, 0x100), PSEUDO(UNKNOWN)}, GP_STACK_INCOMPLETE},
        {GP_SAMPLE_SWITCHING | GP_SAMPLE_INCOMPLETE, {0x100}, {PSEUDO(SWITCHING)}, GP_STACK_SWITCHING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t depth = 0, expected = 0;
        made_t made;
        while (forms[i].frames[depth] != 0)
            depth++;
        while (forms[i].locs[expected] != 0)
            expected++;
        make(&made, forms[i].flags, forms[i].frames, depth);
        assert_int_equal(made.stack.depth, expected);
        assert_memory_equal(made.stack.locs, forms[i].locs, expected * sizeof(gp_loc_t));
        assert_int_equal(made.stack.flags, forms[i].stack_flags);
    }
}

// A ring file may say anything of a sample: the room is enough for all of it at once.
static void all_flags_fit(void **state)
{
    uintptr_t frames[DEPTH_MAX];
    size_t most = 0;
    (void)state;
    for (size_t i = 0; i < DEPTH_MAX; i++)
        frames[i] = 0x100 + i;
    for (unsigned each = 0; each < 1u << 10; each++) { // of the walk's two, and the handler's eight
        made_t made;
        make(&made, (each & 3) | each >> 2 << 8, frames, DEPTH_MAX);
        most = made.stack.depth > most ? made.stack.depth : most;
    }
    assert_int_equal(most, DEPTH_MAX + GP_RING_STACK_MORE);
}

static void each_kind(void **state)
{
    static const struct {
        enum gp_ring_type type;
        unsigned flags;
        uint64_t weight_ns, off_ns;
        size_t count;
        gp_share_t shares[2];
    } kinds[] = {
        {GP_RING_SAMPLE, 0, 5, 2, 2, {{GP_KIND_CPU, 5}, {GP_KIND_PREEMPTED, 2}}},
        {GP_RING_SAMPLE, 0, 0, 0, 1, {{GP_KIND_CPU, 0}}},
        {GP_RING_WAIT, 0, 5, 2, 2, {{GP_KIND_READY, 2}, {GP_KIND_PARKED, 3}}},
        {GP_RING_WAIT, 0, 5, 9, 1, {{GP_KIND_READY, 5}}},
        {GP_RING_WAIT, 0, 5, 0, 1, {{GP_KIND_PARKED, 5}}},
        {GP_RING_WAIT, 0, 0, 0, 0, {{0}}},
        {GP_RING_WAIT, GP_SAMPLE_BLIND, 5, 2, 1, {{GP_KIND_WAITING, 5}}},
        {GP_RING_GIL, 0, 5, 0, 1, {{GP_KIND_GIL, 5}}},
        {GP_RING_LOCK, GP_SAMPLE_LOCK, 5, 0, 1, {{GP_KIND_LOCK, 5}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        gp_sample_t sample = {.flags = kinds[i].flags, .weight_ns = kinds[i].weight_ns, .off_ns = kinds[i].off_ns};
        gp_share_t shares[2];
        size_t count = gp_ring_shares(&sample, kinds[i].type, shares);
        assert_int_equal(count, kinds[i].count);
        for (size_t j = 0; j < count; j++)
            assert_true(shares[j].kind == kinds[i].shares[j].kind &&
                        shares[j].weight_ns == kinds[i].shares[j].weight_ns);
    }
}

static const gp_ring_clock_t half_ns = {.start_ticks = 100, .tick_mult = 1ull << 31}; // a tick

static void an_activity(void **state)
{
    gp_activity_mark_t mark = {.coro_id = 7, .start = 102, .left = 110, .end = 120, .slice_ticks = 6, .off_ns = 1};
    gp_activity_record_t record;
    (void)state;
    mark.ready = 90; // before it left: then it was ready at once
    mark.waker = 9;
    mark.settled = 110;
    gp_ring_to_activity(&record, &mark, &half_ns, 3);
    assert_true(record.coro_id == 7 && record.start_ns == 1 && record.left_ns == 5 && record.end_ns == 10);
    assert_true(record.ready_ns == 5 && record.waker_id == 9 && record.trace == 3);
    assert_true(record.has_times == 1 && record.slice_ns == 3 && record.cpu_ns == 2);
    mark.settled = 109; // its slice goes on
    mark.ready = 0;
    gp_ring_to_activity(&record, &mark, &half_ns, 0);
    assert_true(record.has_times == 0 && record.ready_ns == 0 && record.waker_id == 0);
}

static void a_span(void **state)
{
    static const char text[] = "name"
                               "key\0value";
    union {
        gp_span_mark_t mark;
        char bytes[sizeof(gp_span_mark_t) + sizeof(text)];
    } made = {.mark = {.span = {.coro_id = 1, .end_coro_id = 2, .id = 3, .parent_id = 4, .start = 104, .end = 90}}};
    char record_bytes[sizeof(gp_span_record_t) + sizeof(text)];
    gp_span_record_t *record = (void *)record_bytes;
    (void)state;
    made.mark.span.times = (gp_ledger_t){1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0};
    made.mark.span.name_len = 4;
    made.mark.fields_len = sizeof(text) - 4;
    made.mark.field_count = 1;
    memcpy(made.mark.text, text, sizeof(text));
    gp_ring_to_span(record, &made.mark, &half_ns, (gp_ring_refs_t){.trace = 8, .stack = 9});
    assert_true(record->start_ns == 2 && record->end_ns == 0 && record->trace == 8 && record->stack_id == 9);
    assert_int_equal(record->fields_len, made.mark.fields_len);
    assert_memory_equal(record + 1, text, sizeof(text));
    gp_span_t back = gp_span_of_record(record);
    assert_memory_equal(&back.times, &made.mark.span.times, sizeof(back.times));
    assert_true(back.id == 3 && back.parent_id == 4 && back.coro_id == 1 && back.end_coro_id == 2 &&
                back.name_len == 4);
    assert_true(back.start == 2 && back.end == 2); // it ends where it begins
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form),   cmocka_unit_test(all_flags_fit), cmocka_unit_test(each_kind),
        cmocka_unit_test(an_activity), cmocka_unit_test(a_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
