// SPDX-License-Identifier: MIT
// The tree of scopes: what the end of a request costs while others are in flight, and that samples are handed to
// profiles without the registry lock.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "cmocka_all.h"
#include "coro/registry.h"
#include "coro/scope.h"
#include "profile/profile_pool.h"
#include "signal/handler.h"

enum { IN_FLIGHT = 100 };

static struct prof outer, inner[IN_FLIGHT];
static prof_coro_t *coros[IN_FLIGHT], *acceptor;
static sigjmp_buf visited;

static int every(const struct prof *profile, const prof_coro_t *coro)
{
    (void)coro;
    return profile != &outer;
}

// An outer scope with a child for each coroutine.
static void make_requests(void)
{
    acceptor = prof_coro_create(NULL, 0, "acceptor");
    pthread_mutex_lock(&gp_registry_lock);
    assert_non_null(gp_scope_push(acceptor, &outer, NULL));
    for (int i = 0; i < IN_FLIGHT; i++) {
        gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
        pthread_mutex_unlock(&gp_registry_lock);
        coros[i] = gp_coro_new(&birth);
        pthread_mutex_lock(&gp_registry_lock);
        assert_non_null(coros[i]);
        gp_scope_inherit(coros[i], atomic_load(&gp_coro_context(acceptor)->scope));
        assert_non_null(gp_scope_push(coros[i], &inner[i], NULL));
    }
    pthread_mutex_unlock(&gp_registry_lock);
}

static void on_visit(int number)
{
    (void)number;
    siglongjmp(visited, 1);
}

// All requests but the two latest lie behind a page that cannot be read: the end of one must not go through them.
static void test_end_visits_no_others(void **state)
{
    (void)state;
    make_requests();
    gp_scope_t *top = atomic_load(&gp_coro_context(acceptor)->scope);
    assert_int_equal(top->children, IN_FLIGHT);
    gp_scope_t *last = atomic_load(&gp_coro_context(coros[IN_FLIGHT - 1])->scope), *next = last->next_sibling,
               *rest = next->next_sibling;
    next->next_sibling = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = on_visit}, old;
    sigaction(SIGSEGV, &action, &old);
    bool is_visited = sigsetjmp(visited, 1) != 0;
    if (!is_visited) {
        gp_scope_pop(coros[IN_FLIGHT - 1], every);
        gp_scope_forget_profile(last);
    }
    sigaction(SIGSEGV, &old, NULL);
    next->next_sibling = rest;
    assert_false(is_visited);
    assert_int_equal(top->children, IN_FLIGHT - 1);
    assert_ptr_equal(top->first_child, next);
}

// Would wait for ever if a sample took the lock.
static void test_sample_takes_no_lock(void **state)
{
    (void)state;
    gp_sample_t sample = {.ticks = 1, .scope = atomic_load(&gp_coro_context(coros[0])->scope)->index};
    gp_share_t share = {GP_KIND_CPU, 1000};
    gp_loc_t loc = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    gp_stack_t stack = {.locs = &loc, .depth = 1};
    atomic_store(&outer.state, GP_PROFILE_RUNNING);
    atomic_store(&inner[0].state, GP_PROFILE_RUNNING);
    alarm(10);
    pthread_mutex_lock(&gp_registry_lock);
    gp_profiles_take(&sample, NULL, &stack, &share, 1);
    pthread_mutex_unlock(&gp_registry_lock);
    alarm(0);
    assert_int_equal(inner[0].sampled_ns, 1000);
    assert_int_equal(outer.sampled_ns, 1000);
    assert_int_equal(inner[1].sampled_ns, 0);
}

// No signal, glibc's own two included, interrupts the handler.
static void test_handler_blocks_all(void **state)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action;
    (void)state;
    prof_t *profile = prof_start(NULL);
    assert_non_null(profile);
    assert_int_equal(gp_raw_call(SYS_rt_sigaction, SIGPROF, 0, (long)&action, sizeof(action.mask), 0), 0);
    prof_free(profile);
    uint64_t never = UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1);
    assert_true((action.mask | never) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_visits_no_others),
        cmocka_unit_test(test_sample_takes_no_lock),
        cmocka_unit_test(test_handler_blocks_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
