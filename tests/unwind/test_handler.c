// SPDX-License-Identifier: MIT
// Forbidden to a handler: to allocate, and to use much stack. And what a reload at one address must not do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/row_cache.h"
#include "unwind/unwind.h"
#include "walk_helper.h"

// Bytes of stack that a walk may use. SIGNALS.md counts on it.
enum { STACK_MAX = 6144, PAINT = 16384 };

static volatile bool trap_malloc;
static volatile unsigned trapped;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    trapped += trap_malloc;
    return __real_malloc(size);
}

static uintptr_t lo, hi;
static walk_result_t result;
static volatile int sink;

static void leaf(void)
{
    walk_here(&result, lo, hi, WALK_MAX);
    sink++;
}

static NOINLINE void recurse(unsigned depth)
{
    if (depth == 0)
        leaf();
    else
        recurse(depth - 1);
    sink++;
}

static void test_no_malloc(void **state)
{
    (void)state;
    trap_malloc = true;
    void *volatile probe = malloc(1); // the trap itself works
    trap_malloc = false;
    free(probe);
    assert_int_equal(trapped, 1);
    trapped = 0;
    gp_cache_flush(); // cold rows too
    trap_malloc = true;
    recurse(20);
    trap_malloc = false;
    assert_int_equal(trapped, 0);
    assert_int_equal(result.flags, 0);
}

static NOINLINE void paint(uint8_t value)
{
    volatile uint8_t block[PAINT];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = value;
}

static NOINLINE size_t count_painted(uint8_t value)
{
    uint8_t block[PAINT];
    size_t i = 0;
    __asm__ volatile("" : "=m"(block)); // what was left here is just what is wanted
    while (i < sizeof block && block[i] == value)
        i++;
    return i;
}

// A frame with a CFA that needs a register followed from the leaf: the longest way through
// the walker.
static NOINLINE void walk_directly(size_t *used, const gp_unwind_regs_t *regs)
{
    gp_cache_flush();
    paint(0xa5);
    result.count = gp_unwind_walk(regs, lo, hi, result.frames, WALK_MAX, &result.flags);
    *used = PAINT - count_painted(0xa5);
}

static void test_stack_use(void **state)
{
    size_t used;
    ucontext_t context;
    uintptr_t gp[33];
    gp_unwind_regs_t regs;
    (void)state;
    getcontext(&context);
    gp_unwind_regs_from_ucontext(&regs, gp, &context);
    walk_directly(&used, &regs);
    fprintf(stderr, "a cold walk uses %zu bytes of stack\n", used);
    assert_true(result.count > 2);
    assert_true(used > 256 && used <= STACK_MAX);
}

// Two builds of one plugin: same size, same place in memory, other frames.
static bool walk_through(const char *path, void **base)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    void (*call)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(handle, "plugin_call");
    assert_non_null(call);
    Dl_info info;
    dladdr((void *)call, &info);
    *base = info.dli_fbase;
    call(leaf);
    bool clean = result.flags == 0;
    call(leaf); // cached now
    clean = clean && result.flags == 0;
    dlclose(handle);
    return clean;
}

static void test_reload(void **state)
{
    void *first, *second;
    unsigned same_place = 0;
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        assert_true(walk_through(PLUGIN_A, &first));
        assert_true(walk_through(PLUGIN_B, &second));
        same_place += first == second;
    }
    assert_true(same_place > 0);
}

// A plugin without .eh_frame, built to have no frame pointer either.
static void test_debug_frame(void **state)
{
    (void)state;
    void *handle = dlopen(PLUGIN_DEBUG, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    void (*call)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(handle, "plugin_call");
    call(leaf);
    assert_int_equal(result.flags, GP_UNWIND_INCOMPLETE);
    size_t without = result.count;
    gp_unwind_refresh();
    call(leaf);
    assert_int_equal(result.flags, 0);
    assert_true(result.count > without + 2);
    dlclose(handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_malloc),
        cmocka_unit_test(test_stack_use),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_debug_frame),
    };
    walk_find_stack(&lo, &hi);
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
