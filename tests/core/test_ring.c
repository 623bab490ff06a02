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

// Memory as in a file, with its owner in front.
static gp_ring_t *make_kept(void)
{
    gp_ring_t *ring = calloc(1, sizeof(*ring));
    unsigned char *memory = calloc(1, GP_RING_OWNER_BYTES + CAPACITY);
    *ring = (gp_ring_t){.data = memory + GP_RING_OWNER_BYTES, .capacity = CAPACITY, .is_file = true, .keeps = true};
    return ring;
}

static void free_kept(gp_ring_t *ring)
{
    free(gp_ring_owner(ring));
    free(ring);
}

static uint64_t put_and_get(gp_ring_t *ring, uint64_t value, unsigned count)
{
    for (uint64_t i = 0; i < count; i++)
        gp_ring_commit(put(ring, value + i, 14), GP_RING_SAMPLE);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(get(ring), value + i);
    assert_int_equal(get(ring), UINT64_MAX); // none of what is kept comes again
    assert_int_equal(gp_ring_unread(ring), 0);
    return value + count;
}

static uint32_t committed_at(const gp_ring_t *ring, uint64_t position)
{
    return ((gp_ring_header_t *)(void *)(ring->data + (position & (CAPACITY - 1))))->committed;
}

static void keeps_what_was_read_until_it_is_released(void **state)
{
    (void)state;
    gp_ring_t *ring = make_kept();
    for (uint64_t round = 0, value = 0; round < 1000; round++) {
        uint64_t tail = atomic_load(&ring->tail), upto = tail + CAPACITY / 2;
        value = put_and_get(ring, value, CAPACITY / 128);
        assert_int_equal(gp_ring_fill(ring), CAPACITY);
        assert_null(put(ring, 0, 14));
        assert_int_equal(committed_at(ring, tail), GP_RING_SAMPLE);
        gp_ring_release(ring, upto);
        assert_int_equal(gp_ring_owner(ring)->tail, upto);
        assert_int_equal(committed_at(ring, tail), 0);
        assert_int_equal(committed_at(ring, upto), GP_RING_SAMPLE);
        assert_false(gp_ring_is_pressed(ring));
        value = put_and_get(ring, value, 3);
        assert_true(gp_ring_is_pressed(ring));
        assert_int_equal(gp_ring_fill(ring), CAPACITY / 8 * 7);
        gp_ring_relieve(ring);
        assert_int_equal(gp_ring_fill(ring), 0);
    }
    free_kept(ring);
}

static void stops_at_what_is_no_record(void **state)
{
    (void)state;
    const uint32_t sizes[] = {0, 4, 12, 2 * CAPACITY, UINT32_MAX};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        gp_ring_t *ring = make_kept();
        record_t *record = put(ring, 1, 2);
        gp_ring_commit(record, GP_RING_SAMPLE);
        record->header.bytes = sizes[i];
        assert_null(gp_ring_peek(ring));
        free_kept(ring);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order_over_many_wraps),      cmocka_unit_test(refuses_when_full_and_recovers),
        cmocka_unit_test(holds_back_what_is_not_committed), cmocka_unit_test(keeps_what_was_read_until_it_is_released),
        cmocka_unit_test(stops_at_what_is_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
