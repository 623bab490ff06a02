// SPDX-License-Identifier: MIT
// CPython's walker over thread states that no interpreter made: what a signal may find in the middle of a change.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cpython/interpreter/frame_walk.h"

enum { FRAMES = 16, WORDS = 512, VERSION = 0x030b02f0 };

static uintptr_t state[WORDS], chunk[WORDS], next_chunk;
static uintptr_t other_chunk[WORDS] = {[GP_CPYTHON_CHUNK_SIZE / sizeof(uintptr_t)] = sizeof(other_chunk)};

static void *this_state(void)
{
    return state;
}

static void put(uintptr_t *object, size_t offset, uintptr_t value)
{
    object[offset / sizeof(uintptr_t)] = value;
}

// A thread in C code, with `leaf` as its innermost frame and `first_chunk` as its data stack.
static size_t walk(uintptr_t leaf, uintptr_t first_chunk)
{
    const gp_cpython_seen_t seen = {VERSION, NULL, false, 184, 24, 0, 80};
    const char *why = NULL;
    gp_cpython_layout_t *layout = gp_cpython_layout_find(&seen, &why);
    uintptr_t frames[FRAMES], root = (uintptr_t)state + layout->state_root_cframe;
    unsigned flags = 0;
    gp_language_place_t place = {.pc = 1, .sp = (uintptr_t)frames, .stack_hi = (uintptr_t)(frames + FRAMES)};
    gp_cpython_runtime.layout = layout;
    gp_cpython_runtime.is_trusted = true;
    gp_cpython_runtime.thread_state = this_state;
    memset(chunk, 0, sizeof(chunk));
    put(chunk, GP_CPYTHON_CHUNK_PREVIOUS, next_chunk);
    put(chunk, GP_CPYTHON_CHUNK_SIZE, sizeof(chunk));
    put(state, layout->state_chunk, first_chunk);
    put(state, layout->state_top, (uintptr_t)chunk + GP_CPYTHON_CHUNK_DATA);
    put(state, layout->state_cframe, root);
    put(state, layout->state_root_cframe + (size_t)layout->cframe_frame, leaf);
    return gp_cpython_walk(&place, frames, FRAMES, &flags);
}

static void test_frame_in_page_zero(void **unused)
{
    (void)unused;
    assert_int_equal(walk(8, (uintptr_t)chunk), 0);
    assert_int_equal(walk(2048, (uintptr_t)chunk), 0);
}

static void test_frame_nowhere(void **unused)
{
    (void)unused;
    assert_int_equal(walk((uintptr_t)1 << 46, (uintptr_t)chunk), 0);
    assert_int_equal(walk((uintptr_t)0xdddddddddddddddd, (uintptr_t)chunk), 0);
}

// Words that Python's debug allocator and glibc's leave in freed memory.
static void test_freed_state(void **unused)
{
    (void)unused;
    assert_int_equal(walk(0xdddddddddddddddd, 0xdddddddddddddddd), 0);
    assert_int_equal(walk(0, 0xdddddddddddddddd), 0);
    assert_int_equal(walk(8, 16), 0);
}

// A NULL chunk, one too low to be an address, and some that could be addresses and are not mapped.
static void test_chunk_nowhere(void **unused)
{
    static const uintptr_t chunks[] = {0, 8, 16, 2048, 4088, 4096, 32768, 1ull << 46, UINTPTR_MAX - 7};
    static const uintptr_t leaves[] = {0, 8, 4088, 4096, 1ull << 46, UINTPTR_MAX - 7, UINTPTR_MAX - 4095};
    (void)unused;
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
        for (size_t j = 0; j < sizeof(leaves) / sizeof(leaves[0]); j++)
            assert_int_equal(walk(leaves[j], chunks[i]), 0);
    for (size_t j = 0; j < sizeof(leaves) / sizeof(leaves[0]); j++)
        assert_int_equal(walk(leaves[j], (uintptr_t)chunk), 0);
}

// The chunk behind the first one is nowhere. A chunk once looked at is known until another is the first.
static void test_next_chunk_nowhere(void **unused)
{
    static const uintptr_t chunks[] = {8, 4096, 1ull << 46, UINTPTR_MAX - 7};
    (void)unused;
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        next_chunk = 0;
        assert_int_equal(walk(0, (uintptr_t)other_chunk), 0);
        next_chunk = chunks[i];
        assert_int_equal(walk(0, (uintptr_t)chunk), 0);
    }
    next_chunk = 0;
}

// `count` frames of plain calls, the outermost entered from C.
static void put_frames(size_t count)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t data = (uintptr_t)chunk + GP_CPYTHON_CHUNK_DATA, frame = 0;
    for (size_t i = 0; i < count; i++) {
        uintptr_t code = (i + 1) << 12, previous = frame;
        frame = data + sizeof(uintptr_t) + i * layout->frame_bytes;
        uintptr_t *words = chunk + (frame - (uintptr_t)chunk) / sizeof(uintptr_t);
        put(words, layout->frame_code, code);
        put(words, layout->frame_instruction, code + layout->code_instructions + 2 * i);
        put(words, layout->frame_previous, previous);
        ((unsigned char *)words)[layout->frame_is_entry] = i == 0;
    }
    put(state, layout->state_top, frame + layout->frame_bytes);
    put(state, layout->state_root_cframe + (size_t)layout->cframe_frame, frame);
}

// A hook that follows frames without doubts sees the same as a handler, also for a stack deeper than the room.
static void test_own_frames(void **unused)
{
    static const size_t counts[] = {0, 1, 5, FRAMES, FRAMES + 7};
    (void)unused;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uintptr_t seen[FRAMES] = {0}, own[FRAMES] = {0};
        unsigned seen_flags = 0, own_flags = 0;
        gp_language_place_t place = {
            .pc = UINTPTR_MAX / 2, .sp = (uintptr_t)seen, .stack_hi = (uintptr_t)(seen + FRAMES)};
        size_t depth = counts[i] < FRAMES ? counts[i] : FRAMES;
        assert_int_equal(walk(0, (uintptr_t)chunk), 0);
        put_frames(counts[i]);
        assert_int_equal(gp_cpython_walk(&place, seen, FRAMES, &seen_flags), depth);
        assert_int_equal(gp_cpython_walk_own(own, FRAMES, &own_flags), depth);
        assert_memory_equal(own, seen, sizeof(own));
        assert_int_equal(own_flags, seen_flags);
        assert_int_equal(own_flags != 0, counts[i] > FRAMES);
    }
}

static int yes(void)
{
    return 1;
}

static void test_main_thread_of_an_interpreter_that_ends(void **unused)
{
    (void)unused;
    gp_cpython_runtime.is_finalizing = yes;
    assert_int_equal(walk(0, (uintptr_t)chunk), 0);
    gp_cpython_runtime.is_finalizing = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_in_page_zero), cmocka_unit_test(test_frame_nowhere),
        cmocka_unit_test(test_freed_state),        cmocka_unit_test(test_chunk_nowhere),
        cmocka_unit_test(test_next_chunk_nowhere), cmocka_unit_test(test_main_thread_of_an_interpreter_that_ends),
        cmocka_unit_test(test_own_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
