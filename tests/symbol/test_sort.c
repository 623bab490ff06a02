// SPDX-License-Identifier: MIT
// Elements sorted by their addresses: against the order that is asked for, whatever they are like, and without memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buckets.h"
#include "failing_memory.h"

enum { MOST = 3000 };

typedef struct element {
    uint64_t address;
    uint32_t rank, number;
} element_t;

static int compare(const void *left, const void *right)
{
    const element_t *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->rank < b->rank ? 1 : a->rank > b->rank ? -1 : 0; // the higher rank first
}

static uint64_t random_number(void) // of a linear generator: the same at each run
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 16 ^ state << 40;
}

// Elements whose addresses differ by less than `span`, from `lowest` on.
static void make(element_t *elements, uint32_t count, uint64_t lowest, uint64_t span)
{
    for (uint32_t i = 0; i < count; i++)
        elements[i] = (element_t){lowest + (span > 0 ? random_number() % span : 0), (uint32_t)random_number() % 7, i};
}

// In order, and each of them there once.
static void assert_sorted(const element_t *elements, const element_t *before, uint32_t count)
{
    char seen[MOST] = {0};
    for (uint32_t i = 0; i < count; i++) {
        assert_true(i == 0 || compare(&elements[i - 1], &elements[i]) <= 0);
        assert_true(elements[i].number < count && !seen[elements[i].number]);
        assert_memory_equal(&elements[i], &before[elements[i].number], sizeof(*elements));
        seen[elements[i].number] = 1;
    }
}

static void sort_and_check(uint32_t count, uint64_t lowest, uint64_t span)
{
    static element_t elements[MOST], before[MOST];
    make(elements, count, lowest, span);
    memcpy(before, elements, sizeof(before));
    gp_sort(elements, count, sizeof(*elements), compare);
    assert_sorted(elements, before, count);
}

static const uint64_t spans[] = {0, 1, 2, 3000, 1 << 11, 1 << 22, 1ull << 32, (1ull << 32) + 1, 1ull << 48, UINT64_MAX};
static const uint32_t counts[] = {0, 1, 2, 511, 512, 513, MOST};

static void test_any_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (size_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++) {
            sort_and_check(counts[i], 0, spans[k]);
            sort_and_check(counts[i], UINT64_MAX - spans[k], spans[k]);
        }
}

// The two ends of what is sorted by digits, and just beyond.
static void test_ends(void **state)
{
    (void)state;
    static element_t elements[MOST], before[MOST];
    for (uint64_t more = 0; more < 2; more++) {
        make(elements, MOST, 1000, 100);
        elements[0].address = UINT64_C(5) + UINT32_MAX + more;
        elements[MOST - 1].address = 5;
        memcpy(before, elements, sizeof(before));
        gp_sort(elements, MOST, sizeof(*elements), compare);
        assert_sorted(elements, before, MOST);
        assert_int_equal(elements[MOST - 1].address, UINT64_C(5) + UINT32_MAX + more);
    }
}

// Each allocation fails in turn: it is sorted all the same, and nothing is left.
static void test_without_memory(void **state)
{
    (void)state;
    long held = memory_held;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        assert_true(nth < 10);
        memory_until_failure = nth;
        sort_and_check(MOST, 0x400000, 1 << 20);
        failed = memory_until_failure < 0;
        memory_until_failure = -1;
        assert_int_equal(memory_held, held);
        assert_true(failed || nth >= 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_addresses),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
