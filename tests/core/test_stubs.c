// SPDX-License-Identifier: MIT
// Where the stubs of hooked functions go on: at the function itself while nothing is sampled, at their hooks meanwhile.
#define _GNU_SOURCE
#include "../context.h"
#include <dlfcn.h>

#include "cmocka_all.h"
#include "collect/sampler.h"
#include "coro/hook_returns.h"
#include "greenprof/coro.h"

enum { STACK_BYTES = 64 << 10, SWITCHES = 10 };

extern const gp_stub_t __start_gp_stubs[] __attribute__((weak, visibility("hidden")));
extern const gp_stub_t __stop_gp_stubs[] __attribute__((weak, visibility("hidden")));

static ucontext_t home, other;
static unsigned char stack[STACK_BYTES];

static void run(void)
{
    for (;;)
        swapcontext(&other, &home);
}

static void switch_there_and_back(void)
{
    for (int i = 0; i < SWITCHES; i++)
        swapcontext(&home, &other);
}

static int make_context(void **state)
{
    (void)state;
    context_on(&other, stack, STACK_BYTES, NULL);
    makecontext(&other, run, 0);
    return 0;
}

static size_t stub_count(void)
{
    return (size_t)(__stop_gp_stubs - __start_gp_stubs);
}

static const gp_stub_t *stub_of(void *original)
{
    for (const gp_stub_t *stub = __start_gp_stubs; stub < __stop_gp_stubs; stub++)
        if (*stub->original == original)
            return stub;
    return NULL;
}

static size_t count_hooked(void)
{
    size_t count = 0;
    for (const gp_stub_t *stub = __start_gp_stubs; stub < __stop_gp_stubs; stub++)
        count += *stub->next == stub->hooked;
    return count;
}

static void stubs_at_rest_lead_to_the_function(void **state)
{
    (void)state;
    void *original = dlsym(RTLD_NEXT, "swapcontext");
    switch_there_and_back();
    const gp_stub_t *stub = stub_of(original);
    if (stub_count() == 0)
        skip(); // this processor has none
    assert_non_null(stub);
    assert_ptr_equal(*stub->next, original);
    assert_int_equal(count_hooked(), 0);

    assert_int_equal(gp_sampler_acquire(100), 0);
    size_t hooked = count_hooked();
    uint64_t before = prof_coro_switches(NULL);
    switch_there_and_back();
    uint64_t after = prof_coro_switches(NULL);
    gp_sampler_release(100);
    assert_true(gp_sampler_end_unused());
    assert_int_equal(hooked, stub_count());
    assert_int_equal(after - before, SWITCHES); // to this thread's own stack
    assert_int_equal(count_hooked(), 0);
    assert_ptr_equal(*stub->next, original);
    switch_there_and_back();
}

// A thread looks a function up while another one begins to sample, or ends.
static void an_original_is_found_at_any_time(void **state)
{
    (void)state;
    if (stub_count() == 0)
        skip();
    gp_stub_t first = __start_gp_stubs[0];
    void *resolver = *first.original, *next = *first.next, *hooked, *original = NULL;
    assert_int_equal(gp_sampler_acquire(100), 0);
    gp_hook_returns_found(first.original, &original);
    hooked = *first.next;
    gp_sampler_release(100);
    assert_true(gp_sampler_end_unused());
    assert_ptr_equal(hooked, first.hooked);
    assert_ptr_equal(*first.next, &original);

    *first.original = *first.next = resolver; // as if it had been read right before
    gp_hook_returns_found(first.original, &original);
    assert_ptr_equal(*first.next, &original);
    *first.original = resolver;
    *first.next = next;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(stubs_at_rest_lead_to_the_function, make_context),
        cmocka_unit_test(an_original_is_found_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
