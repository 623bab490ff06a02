// SPDX-License-Identifier: MIT
// A thread that ends amid its work (cancelled, or by a jump out of a signal's handler) leaves nothing behind for later
// ones to wait for.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "coro/threads.h"
#include "greenprof/prof.h"
#include "unwind/memo.h"

enum { RECORD_BYTES = 64 };

static const gp_stack_memory_t stack = {.lo = 0x10000, .hi = 0x20000};

static bool memo_is_free(void)
{
    gp_memo_use_t use;
    gp_memo_take(&use, &stack);
    bool is_free = use.memo != NULL;
    gp_memo_release(&use);
    return is_free;
}

static void *end_in_the_middle(void *unused)
{
    (void)unused;
    gp_memo_use_t use;
    gp_thread_t *thread = gp_thread_attach();
    gp_memo_take(&use, &stack);
    return use.memo != NULL && gp_ring_reserve(&thread->ring, RECORD_BYTES) != NULL ? thread : NULL;
}

static void block_is_like_new(void **state)
{
    (void)state;
    pthread_t id;
    void *result;
    prof_options_t options = PROF_OPTIONS_INIT;
    prof_t *profile = prof_start(&options); // the collector drains
    assert_non_null(profile);
    pthread_create(&id, NULL, end_in_the_middle, NULL);
    pthread_join(id, &result);
    assert_non_null(result);
    gp_thread_t *thread = result;
    while (atomic_load(&thread->state) != GP_THREAD_FREE)
        usleep(1000);
    assert_int_equal(gp_ring_fill(&thread->ring), 0);
    void *record = gp_ring_reserve(&thread->ring, RECORD_BYTES);
    assert_ptr_equal(record, thread->ring.data);
    assert_null(gp_ring_peek(&thread->ring));
    gp_ring_commit(record, GP_RING_SAMPLE);
    assert_ptr_equal(gp_ring_peek(&thread->ring), record);
    gp_ring_consume(&thread->ring, record);
    prof_stop(profile);
    prof_free(profile);
}

static void memo_is_given_back(void **state)
{
    (void)state;
    pthread_t id;
    void *result;
    assert_true(memo_is_free());
    pthread_create(&id, NULL, end_in_the_middle, NULL);
    pthread_join(id, &result);
    assert_non_null(result);
    assert_true(memo_is_free());
}

static _Atomic bool has_taken, may_leave;

static void *walk_meanwhile(void *unused)
{
    gp_memo_use_t use;
    gp_memo_take(&use, &stack);
    has_taken = true;
    while (!may_leave)
        usleep(1000);
    gp_memo_release(&use);
    return unused;
}

static void walks_of_others_are_no_childs(void **state)
{
    (void)state;
    pthread_t id;
    int status;
    pthread_create(&id, NULL, walk_meanwhile, NULL);
    while (!has_taken)
        usleep(1000);
    assert_false(memo_is_free());
    pid_t pid = fork();
    if (pid == 0)
        _exit(memo_is_free() ? 0 : 1);
    waitpid(pid, &status, 0);
    may_leave = true;
    pthread_join(id, NULL);
    assert_int_equal(status, 0);
    assert_true(memo_is_free());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_is_like_new),
        cmocka_unit_test(memo_is_given_back),
        cmocka_unit_test(walks_of_others_are_no_childs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
