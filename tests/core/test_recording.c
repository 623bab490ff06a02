// SPDX-License-Identifier: MIT
// Definitions in the capture of this process while its writer is behind.
#include "cmocka_all.h"
#include "record/recording.h"

enum { DEPTH = 40, STACKS_MAX = 1000000 };

static gp_recording_t recording;

static uint32_t add_stack(uint64_t number)
{
    gp_loc_t locs[DEPTH] = {number};
    gp_stack_t stack = {.locs = locs, .depth = DEPTH};
    return gp_recording_stack(&recording, &stack);
}

static uint32_t add_trace(uint64_t number)
{
    return gp_recording_trace(&recording, (uint64_t[2]){number, 1});
}

// The writer has taken what there was.
static void hand_over(enum gp_chunk_type type)
{
    recording.writer.buffers[type].length = 0;
}

// Add definitions until one is refused, then let the writer catch up: that one and the next are written.
static void check(enum gp_chunk_type type, uint32_t (*add)(uint64_t number))
{
    uint64_t number = 1;
    gp_buffer_t *buffer = &recording.writer.buffers[type];
    while (number < STACKS_MAX && add(number) != 0)
        number++;
    assert_true(number < STACKS_MAX);
    assert_int_equal(add(number), 0);
    hand_over(type);
    assert_int_equal(add(number), number);
    size_t one = buffer->length;
    assert_true(one > 0);
    assert_int_equal(add(number), number);
    assert_int_equal(buffer->length, one);
    assert_int_equal(add(number + 1), number + 1);
    assert_int_equal(buffer->length, 2 * one);
}

static void stack_is_defined_once_there_is_room(void **state)
{
    (void)state;
    check(GP_CHUNK_STACKS, add_stack);
}

static void trace_is_defined_once_there_is_room(void **state)
{
    (void)state;
    check(GP_CHUNK_TRACES, add_trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stack_is_defined_once_there_is_room),
        cmocka_unit_test(trace_is_defined_once_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
