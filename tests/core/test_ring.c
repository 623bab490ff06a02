// SPDX-License-Identifier: MIT
// The ring: order, wrap-around, a full ring, records committed out of order.
#include <stdlib.h>

#include "cmocka_all.h"
#include "signal/ring.h"

enum { CAPACITY = 1024 };

typedef struct record {
    gp_ring_header_t header;
    uint64_t value;
    uint64_t fill[];
} record_t;

static gp_ring_t *make_ring(void)
{
    gp_ring_t *ring = calloc(1, sizeof(*ring));
    ring->data = calloc(1, CAPACITY);
    ring->capacity = CAPACITY;
    return ring;
}

static void free_ring(gp_ring_t *ring)
{
    free(ring->data);
    free(ring);
}

static record_t *put(gp_ring_t *ring, uint64_t value, uint32_t words)
{
    record_t *record = gp_ring_reserve(ring, (uint32_t)(sizeof(record_t) + words * 8));
    if (record != NULL) {
        record->value = value;
        for (uint32_t i = 0; i < words; i++)
            record->fill[i] = ~value;
    }
    return record;
}

// The next record's value; skips padding. UINT64_MAX when there is none.
static uint64_t get(gp_ring_t *ring)
{
    for (gp_ring_header_t *header; (header = gp_ring_peek(ring)) != NULL;) {
        uint32_t type = header->committed;
        uint64_t value = type == GP_RING_PAD ? 0 : ((record_t *)(void *)header)->value;
        gp_ring_consume(ring, header);
        if (type != GP_RING_PAD)
            return value;
    }
    return UINT64_MAX;
}

static void keeps_order_over_many_wraps(void **state)
{
    (void)state;
    gp_ring_t *ring = make_ring();
    uint64_t put_value = 0, got_value = 0;
    srand(1);
    for (int round = 0; round < 100000; round++) {
        record_t *record = put(ring, put_value, (uint32_t)(rand() % 40));
        if (record != NULL) {
            gp_ring_commit(record, GP_RING_SAMPLE);
            put_value++;
        }
        if (record == NULL || rand() % 3 == 0) {
            uint64_t value = get(ring);
            if (value != UINT64_MAX)
                assert_int_equal(value, got_value++);
        }
    }
    for (uint64_t value; (value = get(ring)) != UINT64_MAX;)
        assert_int_equal(value, got_value++);
    assert_int_equal(put_value, got_value);
    assert_true(put_value > 50000);
    free_ring(ring);
}

static void refuses_when_full_and_recovers(void **state)
{
    (void)state;
    gp_ring_t *ring = make_ring();
    unsigned count = 0;
    for (record_t *record; (record = put(ring, count, 14)) != NULL; count++)
        gp_ring_commit(record, GP_RING_SAMPLE);
    assert_int_equal(count, CAPACITY / 128);
    assert_int_equal(get(ring), 0);
    record_t *record = put(ring, 99, 14);
    assert_non_null(record);
    gp_ring_commit(record, GP_RING_SAMPLE);
    free_ring(ring);
}

static void holds_back_what_is_not_committed(void **state)
{
    (void)state;
    gp_ring_t *ring = make_ring();
    record_t *first = put(ring, 1, 2); // the thread reserves, its handler interrupts and completes
    record_t *second = put(ring, 2, 2);
    gp_ring_commit(second, GP_RING_SAMPLE);
    assert_int_equal(get(ring), UINT64_MAX);
    gp_ring_commit(first, GP_RING_SAMPLE);
    assert_int_equal(get(ring), 1);
    assert_int_equal(get(ring), 2);
    free_ring(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order_over_many_wraps),
        cmocka_unit_test(refuses_when_full_and_recovers),
        cmocka_unit_test(holds_back_what_is_not_committed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
