// SPDX-License-Identifier: MIT
// Code that a just-in-time compiler made, several calls deep, with frame pointers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/generated.h"
#include "unwind/unwind.h"
#include "walk_helper.h"

enum { DEPTH = 5, BYTES = 16384, PLACE = 4096, PAUSE_US = 10000 };

typedef struct list {
    void (*calls[DEPTH + 1])(struct list *list, void *next); // each calls the next one
} list_t;

typedef void call_t(list_t *list, void *next);

// push rbp; mov rbp,rsp; mov rsi,[rdi]; add rdi,8; call rsi; pop rbp; ret
static const unsigned char caller[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x37, 0x48,
                                       0x83, 0xc7, 0x08, 0xff, 0xd6, 0x5d, 0xc3};
static unsigned char *code;
static walk_result_t result;

static void end_of_list(list_t *list, void *next)
{
    uintptr_t lo, hi;
    (void)list;
    (void)next;
    walk_find_stack(&lo, &hi);
    walk_here(&result, lo, hi, WALK_MAX);
}

NOINLINE static void run(void)
{
    list_t list;
    for (int i = 0; i < DEPTH; i++)
        list.calls[i] = (call_t *)(uintptr_t)(code + PLACE);
    list.calls[DEPTH] = end_of_list;
    list.calls[0]((list_t *)(void *)&list.calls[1], NULL);
    __asm__ volatile("");
}

static size_t count_generated(void)
{
    size_t count = 0;
    for (size_t i = 0; i < result.count; i++)
        count += result.frames[i] - (uintptr_t)code < BYTES;
    return count;
}

// As the collector does after a sample that gave up.
static void look(void)
{
    for (int i = 0; i < 500 && !gp_generated_has((uintptr_t)code + PLACE); i++) {
        gp_generated_met(result.frames[result.count - 1]);
        gp_generated_look();
        usleep(PAUSE_US);
    }
}

static void make_code(void)
{
    code = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(code, MAP_FAILED);
    assert_int_equal(mprotect(code + PLACE, PLACE, PROT_READ | PROT_WRITE), 0);
    memcpy(code + PLACE, caller, sizeof caller);
    assert_int_equal(mprotect(code + PLACE, PLACE, PROT_READ | PROT_EXEC), 0);
}

static void test_followed_once_known(void **state)
{
    (void)state;
    make_code();
    run();
    assert_true(result.flags & GP_UNWIND_INCOMPLETE);
    look();
    run();
    assert_int_equal(result.flags, 0);
    assert_int_equal(count_generated(), DEPTH);
    // Memory reserved for more code is known, too; code and rodata of modules, and the stack, are not.
    assert_true(gp_generated_has((uintptr_t)code + BYTES - 1));
    assert_false(gp_generated_has((uintptr_t)run));
    assert_false(gp_generated_has((uintptr_t)caller));
    assert_false(gp_generated_has((uintptr_t)&state));
    munmap(code, BYTES);
}

static void test_more_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        make_code();
        run();
        look();
        run();
        assert_int_equal(result.flags, 0);
        assert_int_equal(count_generated(), DEPTH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_followed_once_known),
        cmocka_unit_test(test_more_is_found),
    };
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
