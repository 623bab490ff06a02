// SPDX-License-Identifier: MIT
// Data that does not fit into memory: parts come back whole and in order, runs are merged, and a full or missing disk
// is an error.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/sorter.h"
#include "report/spill.h"

enum { PARTS = 7 };

static uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252ull; // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

typedef struct record {
    uint64_t key, serial, filling[3];
} record_t;

typedef struct seen {
    uint64_t next, step, count; // serials of a part go up by the number of parts
} seen_t;

static int take_part(void *context, const void *bytes, size_t len)
{
    seen_t *seen = context;
    assert_int_equal(len % sizeof(record_t), 0);
    for (size_t i = 0; i < len / sizeof(record_t); i++) {
        record_t record;
        memcpy(&record, (const char *)bytes + i * sizeof(record), sizeof(record));
        assert_int_equal(record.serial, seen->next);
        seen->next += seen->step;
        seen->count++;
    }
    return 0;
}

static void fill(gp_spill_t *spill, uint64_t count)
{
    assert_int_equal(gp_spill_init(spill, PARTS), 0);
    for (uint64_t i = 0; i < count; i++) {
        const record_t record = {.serial = i};
        assert_int_equal(gp_spill_add(spill, i % PARTS, &record, sizeof(record)), 0);
    }
}

static void check_parts(uint64_t count)
{
    gp_spill_t spill;
    fill(&spill, count);
    for (size_t part = PARTS; part > 0; part--) { // in any order, and twice
        for (int turn = 0; turn < 2; turn++) {
            seen_t seen = {.next = part - 1, .step = PARTS};
            assert_int_equal(gp_spill_read(&spill, part - 1, sizeof(record_t), take_part, &seen), 0);
            assert_int_equal(seen.count * sizeof(record_t), gp_spill_bytes(&spill, part - 1));
            assert_int_equal(seen.count, (count + PARTS - part) / PARTS);
        }
    }
    assert_int_equal(spill.fd >= 0, count * sizeof(record_t) > GP_SPILL_BYTES);
    gp_spill_free(&spill);
}

static void parts_come_back(void **state)
{
    (void)state;
    check_parts(0);
    check_parts(5);
    check_parts(1000);
    check_parts(3 * (uint64_t)GP_SPILL_BYTES / sizeof(record_t) + 12345);
}

static int stop_it(void *context, const void *bytes, size_t len)
{
    (void)context, (void)bytes, (void)len;
    return -ECANCELED;
}

static void reading_can_be_ended(void **state)
{
    (void)state;
    gp_spill_t spill;
    fill(&spill, 2 * (uint64_t)GP_SPILL_BYTES / sizeof(record_t));
    assert_int_equal(gp_spill_read(&spill, 3, sizeof(record_t), stop_it, NULL), -ECANCELED);
    gp_spill_free(&spill);
}

static int compare(const void *left, const void *right)
{
    const record_t *a = left, *b = right;
    return a->key < b->key ? -1 : a->key > b->key;
}

typedef struct order {
    record_t last;
    uint64_t count, sum;
} order_t;

static int take_sorted(void *context, const void *record)
{
    order_t *order = context;
    record_t now;
    memcpy(&now, record, sizeof(now));
    if (order->count > 0) {
        assert_true(order->last.key <= now.key);
        if (order->last.key == now.key) // as they came
            assert_true(order->last.serial < now.serial);
    }
    order->last = now;
    order->sum += now.serial;
    order->count++;
    return 0;
}

static void check_order(uint64_t count, uint64_t keys)
{
    gp_sorter_t sorter;
    gp_sorter_init(&sorter, sizeof(record_t), compare);
    for (uint64_t i = 0; i < count; i++) {
        const record_t record = {.key = random_bits() % keys, .serial = i};
        assert_int_equal(gp_sorter_add(&sorter, &record), 0);
    }
    assert_int_equal(gp_sorter_end(&sorter), 0);
    for (int turn = 0; turn < 2; turn++) {
        order_t order = {0};
        assert_int_equal(gp_sorter_each(&sorter, take_sorted, &order), 0);
        assert_int_equal(order.count, count);
        assert_int_equal(order.sum, count * (count - 1) / 2);
    }
    gp_sorter_free(&sorter);
}

static void runs_are_merged(void **state)
{
    (void)state;
    const uint64_t run = GP_SORTER_BYTES / sizeof(record_t);
    check_order(1, 10);
    check_order(1000, 50);
    check_order(run, 1000);     // one run, not put by
    check_order(run + 1, 1000); // a run put by, and one record
    check_order(4 * run + 17, 100000);
}

static void nothing_to_sort(void **state)
{
    (void)state;
    gp_sorter_t sorter;
    order_t order = {0};
    gp_sorter_init(&sorter, sizeof(record_t), compare);
    assert_int_equal(gp_sorter_end(&sorter), 0);
    assert_int_equal(gp_sorter_each(&sorter, take_sorted, &order), 0);
    assert_int_equal(order.count, 0);
    gp_sorter_free(&sorter);
}

static void no_place_for_a_file(void **state)
{
    (void)state;
    gp_spill_t spill;
    gp_sorter_t sorter;
    int result = 0;
    setenv("TMPDIR", "/nowhere/at/all", 1);
    assert_int_equal(gp_spill_init(&spill, PARTS), 0);
    gp_sorter_init(&sorter, sizeof(record_t), compare);
    for (uint64_t i = 0; i <= GP_SPILL_BYTES / sizeof(record_t) && result == 0; i++) {
        const record_t record = {.serial = i};
        result = gp_spill_add(&spill, 0, &record, sizeof(record));
    }
    assert_int_equal(result, -ENOENT);
    result = 0;
    for (uint64_t i = 0; i <= GP_SORTER_BYTES / sizeof(record_t) && result == 0; i++) {
        const record_t record = {.serial = i};
        result = gp_sorter_add(&sorter, &record);
    }
    assert_int_equal(result, -ENOENT);
    unsetenv("TMPDIR");
    gp_spill_free(&spill);
    gp_sorter_free(&sorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_come_back), cmocka_unit_test(reading_can_be_ended), cmocka_unit_test(runs_are_merged),
        cmocka_unit_test(nothing_to_sort), cmocka_unit_test(no_place_for_a_file),
    };
    return cmocka_run_group_tests_name("spill", tests, NULL, NULL);
}
