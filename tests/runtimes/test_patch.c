// SPDX-License-Identifier: MIT
// Entry patches: the decoder against known beginnings of functions, and against anything; moved code executed and
// compared with the function as it was; what is refused is left as it is.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/maps.h"
#include "patch/hooks.h"
#include "patch/near.h"
#include "patch/patch.h"
#include "patch/targets.h"

typedef long function_t(long, long);

#define GOOD(EACH)                                                                                                     \
    EACH(fn_push)                                                                                                      \
    EACH(fn_call)                                                                                                      \
    EACH(fn_lea)                                                                                                       \
    EACH(fn_rip_lea)                                                                                                   \
    EACH(fn_rip_load)                                                                                                  \
    EACH(fn_rip_immediate)                                                                                             \
    EACH(fn_rip_byte)                                                                                                  \
    EACH(fn_branch)                                                                                                    \
    EACH(fn_near_branch)                                                                                               \
    EACH(fn_jump)                                                                                                      \
    EACH(fn_canary)                                                                                                    \
    EACH(fn_sse)                                                                                                       \
    EACH(fn_wide_immediate)                                                                                            \
    EACH(fn_restart)
#define BAD(EACH)                                                                                                      \
    EACH(no_short)                                                                                                     \
    EACH(no_prefixed_call)                                                                                             \
    EACH(no_loop)                                                                                                      \
    EACH(no_short_jump)                                                                                                \
    EACH(no_vex)                                                                                                       \
    EACH(no_indirect)                                                                                                  \
    EACH(no_loop_instruction)

#define DECLARE(name) extern function_t name;
GOOD(DECLARE)
BAD(DECLARE)
DECLARE(no_system_call)

typedef struct known {
    const char *what;
    unsigned char code[24];
    size_t size, taken, moved; // bytes; moved: with the jump back
} known_t;

// Beginnings in the programs of Debian 12, and in minicoro's source.
static const known_t beginnings[] = {
    {"tarantool coro_transfer", {0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57}, 10, 6, 11},
    {"tarantool coro_create", {0x48, 0x85, 0xf6, 0x74, 0x7b, 0x55, 0x49, 0x01, 0xc8}, 9, 5, 14},
    {"tarantool fiber_new_ex", {0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56}, 8, 6, 11},
    {"tarantool fiber_set_name", {0x55, 0x48, 0x89, 0xe5, 0x41, 0x56, 0x49, 0x89, 0xfe}, 9, 6, 11},
    {"boost jump_fcontext", {0x48, 0x8d, 0x64, 0x24, 0xc8, 0x0f, 0xae, 0x1c, 0x24}, 9, 5, 10},
    {"php jump_fcontext", {0x48, 0x8d, 0x64, 0x24, 0xc0, 0x0f, 0xae, 0x1c, 0x24}, 9, 5, 10},
    {"boost ontop_fcontext", {0x49, 0x89, 0xd0, 0x48, 0x8d, 0x64, 0x24, 0xc8}, 8, 8, 13},
    {"boost make_fcontext", {0x48, 0x89, 0xf8, 0x48, 0x83, 0xe0, 0xf0, 0x48, 0x8d, 0x40, 0xc0}, 11, 7, 12},
    {"lua lua_resume", {0x41, 0x54, 0x49, 0x89, 0xfc, 0x55, 0x48, 0x89, 0xcd, 0x53}, 10, 5, 10},
    {"minicoro _mco_switch", {0x48, 0x8d, 0x05, 0x3d, 0x00, 0x00, 0x00, 0x48, 0x89, 0x07}, 10, 7, 12},
    {"qemu qemu_coroutine_switch", {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xf8}, 7, 7, 12},
    {"qemu qemu_coroutine_create", {0x41, 0x54, 0x55, 0x48, 0x89, 0xfd, 0x53}, 7, 6, 11},
    {"ruby coroutine_transfer", {0x55, 0x53, 0x41, 0x54, 0x41, 0x55}, 6, 6, 11},
    {"with endbr64", {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5}, 8, 5, 10},
};

enum { FAR = 1 << 20, ROUNDS = 200000 };

static void test_known_beginnings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        const known_t *known = &beginnings[i];
        uintptr_t from = 0x10000000;
        gp_prologue_t moved;
        print_message("%s\n", known->what);
        assert_int_equal(gp_prologue_move(known->code, known->size, from, from + FAR, &moved), 0);
        assert_int_equal(moved.taken, known->taken);
        assert_int_equal(moved.bytes, known->moved);
        for (size_t size = 0; size < known->taken; size++)
            assert_int_equal(gp_prologue_move(known->code, size, from, from + FAR, &moved), -ENOTSUP);
    }
}

// Targets relative to an instruction must be within reach from its new place.
static void test_out_of_reach(void **state)
{
    (void)state;
    static const unsigned char lea[] = {0x48, 0x8d, 0x05, 0xff, 0xff, 0xff, 0x7f};
    gp_prologue_t moved;
    uintptr_t from = 0x200000000;
    assert_int_equal(gp_prologue_move(lea, sizeof(lea), from, from + FAR, &moved), 0);
    assert_int_equal(gp_prologue_move(lea, sizeof(lea), from, from - FAR, &moved), -ERANGE);
    assert_int_equal(gp_prologue_move(beginnings[0].code, 10, from, from + (1ull << 32), &moved), -ERANGE);
}

// Nothing is read beyond what was given, and whatever is accepted is whole.
static void test_anything(void **state)
{
    (void)state;
    enum { PAGE = 4096, SIZE_MAX_TRIED = 20 };
    unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    srandom(1);
    size_t accepted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = (size_t)random() % SIZE_MAX_TRIED;
        unsigned char *code = pages + PAGE - size;
        gp_prologue_t moved;
        for (size_t j = 0; j < size; j++)
            code[j] = (unsigned char)(random() >> 8);
        if (i % 2 && size >= 8) // or a known beginning, damaged
            memcpy(code, beginnings[(size_t)i / 2 % (sizeof(beginnings) / sizeof(beginnings[0]))].code,
                   (size_t)random() % 8);
        if (gp_prologue_move(code, size, 0x10000000, 0x10000000 + FAR, &moved) != 0)
            continue;
        accepted++;
        assert_in_range(moved.taken, GP_PROLOGUE_JUMP_BYTES, size);
        assert_in_range(moved.bytes, moved.taken + GP_PROLOGUE_JUMP_BYTES, GP_PROLOGUE_MOVED_MAX);
    }
    print_message("%zu of %d accepted\n", accepted, ROUNDS);
    assert_in_range(accepted, 100, ROUNDS);
    munmap(pages, 2 * PAGE);
}

static void *original;
static long calls;

static long stand_in(long a, long b)
{
    calls++;
    return ((function_t *)(uintptr_t)original)(a, b);
}

static const long values[][2] = {{0, 0}, {1, 0}, {0, 1}, {5, 7}, {-1, 3}, {1L << 40, 2}, {9, 9}};
enum { VALUES = sizeof(values) / sizeof(values[0]) };

static void check_patched(const char *name, function_t *function)
{
    long before[VALUES];
    gp_patch_t patch;
    for (int i = 0; i < VALUES; i++)
        before[i] = function(values[i][0], values[i][1]);
    print_message("%s\n", name);
    assert_int_equal(gp_patch_prepare(&patch, (uintptr_t)function, 64, (void *)(uintptr_t)stand_in), 0);
    original = patch.original;
    for (int i = 0; i < VALUES; i++) // as it is, from both ends
        assert_int_equal(((function_t *)(uintptr_t)original)(values[i][0], values[i][1]), before[i]);
    calls = 0;
    assert_int_equal(function(1, 1), ((function_t *)(uintptr_t)original)(1, 1));
    assert_int_equal(calls, 0);
    assert_int_equal(gp_patch_apply(&patch), 0);
    for (int i = 0; i < VALUES; i++) {
        calls = 0;
        assert_int_equal(function(values[i][0], values[i][1]), before[i]);
        assert_true(calls >= 1);
    }
    gp_mapping_t mapping;
    assert_int_equal(gp_maps_find((uintptr_t)function, &mapping), 0);
    assert_int_equal(mapping.protection, PROT_READ | PROT_EXEC);
    assert_int_equal(gp_maps_find((uintptr_t)original, &mapping), 0);
    assert_int_equal(mapping.protection, PROT_READ | PROT_EXEC);
}

static void test_patched_functions_do_what_they_did(void **state)
{
    (void)state;
#define CHECK(name) check_patched(#name, name);
    GOOD(CHECK)
}

static void check_refused(const char *name, function_t *function, size_t size)
{
    unsigned char before[32];
    gp_patch_t patch;
    memcpy(before, (const void *)(uintptr_t)function, size);
    print_message("%s\n", name);
    assert_int_equal(gp_patch_prepare(&patch, (uintptr_t)function, size, (void *)(uintptr_t)stand_in), -ENOTSUP);
    assert_memory_equal((const void *)(uintptr_t)function, before, size);
}

static void test_refused_functions_are_left_alone(void **state)
{
    (void)state;
#define REFUSE(name) check_refused(#name, name, 16);
    BAD(REFUSE)
    check_refused("no_system_call, too short", no_system_call, 4);
}

static void test_every_target_has_a_hook(void **state)
{
    (void)state;
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; runtime->name != NULL; runtime++) {
        assert_non_null(runtime->functions[0].symbol);
        for (int i = 0; i < GP_PATCH_FUNCTIONS_MAX && runtime->functions[i].symbol != NULL; i++) {
            const gp_patch_hook_t *hook = gp_patch_hook(runtime->functions[i].symbol);
            assert_non_null(hook);
            assert_non_null(hook->stub);
            assert_non_null(hook->original);
        }
    }
    assert_null(gp_patch_hook("main"));
}

static const gp_patch_runtime_t *runtime_of(const char *name)
{
    const gp_patch_runtime_t *runtime = gp_patch_runtimes;
    while (runtime->name != NULL && strcmp(runtime->name, name) != 0)
        runtime++;
    assert_non_null(runtime->name);
    return runtime;
}

static void test_requests(void **state)
{
    (void)state;
    const gp_patch_runtime_t *first = runtime_of("tarantool"), *second = runtime_of("lua");
    const char *word;
    bool by_name;
    assert_false(gp_patch_is_requested(NULL, first, &by_name));
    assert_false(gp_patch_is_requested("none", first, &by_name));
    assert_false(gp_patch_is_requested("", first, &by_name));
    assert_true(gp_patch_is_requested("auto", first, &by_name));
    assert_false(by_name);
    assert_true(gp_patch_is_requested("auto,tarantool", first, &by_name));
    assert_true(by_name);
    assert_true(gp_patch_is_requested("auto,tarantool", second, &by_name));
    assert_false(by_name);
    assert_false(gp_patch_is_requested("tarantoo", first, &by_name));
    assert_true(gp_patch_request_is_known("auto,lua,boost", &word));
    assert_false(gp_patch_request_is_known("auto,luna,boost", &word));
    assert_memory_equal(word, "luna,", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_beginnings),
        cmocka_unit_test(test_out_of_reach),
        cmocka_unit_test(test_anything),
        cmocka_unit_test(test_patched_functions_do_what_they_did),
        cmocka_unit_test(test_refused_functions_are_left_alone),
        cmocka_unit_test(test_every_target_has_a_hook),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
