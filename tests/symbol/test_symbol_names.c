// SPDX-License-Identifier: MIT
// Names of symbols made ahead: those expected, whichever thread makes them; and jobs that wait for one another.
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbol/symbol_names.h"

enum { FUNCTIONS = 2000, STEP = 16, EVERY = 3 };

static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    return pthread_create(thread, NULL, run, argument);
}

// f0(), f1() and so on, with gaps between them.
static gp_symbol_table_t make_table(void)
{
    gp_symbol_table_t table = {0};
    char name[32], number[16];
    for (int i = 0; i < FUNCTIONS; i++) {
        int len = snprintf(number, sizeof(number), "f%d", i);
        snprintf(name, sizeof(name), "_Z%d%sv", len, number);
        uint64_t lo = 0x1000 + (uint64_t)i * STEP;
        assert_int_equal(gp_symbol_table_add(&table, lo, lo + STEP - 2, lo, name, strlen(name)), 0);
    }
    gp_symbol_table_sort(&table);
    return table;
}

static void assert_made(const gp_range_t *range, int number)
{
    char name[32];
    snprintf(name, sizeof(name), "f%d()", number);
    assert_non_null(range->made);
    assert_string_equal(range->made, name);
}

// Two addresses in every third function, one in the gap behind it.
static void expect_and_check(gp_helpers_t *helpers)
{
    gp_symbol_table_t table = make_table();
    static uint64_t addresses[FUNCTIONS * 3];
    size_t count = 0;
    for (uint64_t i = 0; i < FUNCTIONS; i += EVERY)
        for (uint64_t within = 0; within < STEP; within += STEP / 2 - 1)
            addresses[count++] = 0x1000 + i * STEP + within;
    gp_symbol_names_t *names = gp_symbol_names_expect(&table, helpers, addresses, count);
    assert_int_equal(names != NULL, helpers != NULL);
    memset(addresses, 0, sizeof(addresses)); // not needed any more
    for (int i = FUNCTIONS - 1; i >= 0; i--) {
        gp_range_t *range = &table.ranges[i];
        gp_symbol_names_settle(names, range);
        if (names != NULL && i % EVERY == 0)
            assert_made(range, i);
        else
            assert_null(range->made);
        assert_null(range->shown); // the owner's
    }
    gp_symbol_names_free(names);
    gp_symbol_table_free(&table);
}

static void test_expected_ones(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= GP_HELPERS_MAX; threads++) {
        gp_helpers_use(threads, start_thread);
        gp_helpers_t *helpers = gp_helpers_open();
        assert_int_equal(helpers != NULL, threads > 0);
        expect_and_check(helpers);
        gp_helpers_close(helpers);
    }
    gp_helpers_use(0, NULL);
}

static void test_nothing_to_make(void **state)
{
    (void)state;
    gp_symbol_table_t table = make_table(), none = {0};
    const uint64_t address = 0x1000, beyond = UINT64_MAX;
    gp_helpers_use(1, start_thread);
    gp_helpers_t *helpers = gp_helpers_open();
    assert_null(gp_symbol_names_expect(&none, helpers, &address, 1));
    assert_null(gp_symbol_names_expect(&table, helpers, NULL, 0));
    gp_symbol_names_t *names = gp_symbol_names_expect(&table, helpers, &beyond, 1);
    gp_symbol_names_settle(names, &table.ranges[FUNCTIONS - 1]);
    assert_null(table.ranges[FUNCTIONS - 1].made);
    gp_symbol_names_free(names);
    gp_symbol_names_free(NULL);
    gp_symbol_table_free(&table);
    gp_helpers_close(helpers);
    gp_helpers_use(0, NULL);
}

// --- a job that gives another one, and is done only after the latter

typedef struct giving {
    gp_job_t job;
    gp_helpers_t *helpers;
    gp_job_t given;
    int result; // of waiting
} giving_t;

static sem_t giving_began, given_done;

static int wait_for_given(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30; // a test that hangs says nothing
    return sem_timedwait(&given_done, &until);
}

static void work_given(gp_job_t *job)
{
    (void)job;
    sem_post(&given_done);
}

static void work_giving(gp_job_t *job)
{
    giving_t *giving = (giving_t *)job;
    sem_post(&giving_began);
    usleep(20000); // the taker waits by then, most likely; it is to do what is given before and after that
    gp_helpers_give(giving->helpers, &giving->given);
    giving->result = wait_for_given();
    gp_helpers_take(giving->helpers, &giving->given);
}

// The only helper is busy: the taker does what is given while it waits.
static void test_taker_helps(void **state)
{
    (void)state;
    sem_init(&giving_began, 0, 0);
    sem_init(&given_done, 0, 0);
    gp_helpers_use(1, start_thread);
    giving_t giving = {.job = {.work = work_giving}, .helpers = gp_helpers_open(), .given = {.work = work_given}};
    gp_helpers_give(giving.helpers, &giving.job);
    sem_wait(&giving_began);
    gp_helpers_take_helping(giving.helpers, &giving.job);
    assert_int_equal(giving.result, 0);
    gp_helpers_close(giving.helpers);
    gp_helpers_use(0, NULL);
}

// --- jobs that take others

typedef struct noted {
    gp_job_t job;
    pthread_t by;
} noted_t;

static sem_t is_long;

static void work_long(gp_job_t *job)
{
    (void)job;
    sem_post(&is_long);
    wait_for_given();
}

static void work_noted(gp_job_t *job)
{
    ((noted_t *)job)->by = pthread_self();
    if (!job->takes_others)
        sem_post(&given_done);
}

// A wait within one that takes others does what is simple; only a wait at the outside does any.
static void test_one_stack(void **state)
{
    (void)state;
    sem_init(&is_long, 0, 0);
    sem_init(&given_done, 0, 0);
    for (int outside = 0; outside < 2; outside++) {
        gp_helpers_use(1, start_thread);
        gp_helpers_t *helpers = gp_helpers_open();
        noted_t large = {.job = {.work = work_noted, .takes_others = true}}, simple = {.job = {.work = work_noted}};
        gp_job_t wanted = {.work = work_long};
        gp_helpers_give(helpers, &wanted);
        sem_wait(&is_long);
        gp_helpers_give(helpers, &large.job);
        gp_helpers_give(helpers, &simple.job);
        if (outside)
            gp_helpers_take_helping(helpers, &wanted);
        else
            gp_helpers_take_within(helpers, &wanted);
        assert_true(pthread_equal(simple.by, pthread_self()));
        gp_helpers_withdraw(helpers, &large.job);
        assert_int_equal(pthread_equal(large.by, pthread_self()) != 0, outside);
        gp_helpers_take(helpers, &simple.job);
        gp_helpers_close(helpers);
        gp_helpers_use(0, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expected_ones),
        cmocka_unit_test(test_nothing_to_make),
        cmocka_unit_test(test_taker_helps),
        cmocka_unit_test(test_one_stack),
    };
    return cmocka_run_group_tests_name("symbol_names", tests, NULL, NULL);
}
