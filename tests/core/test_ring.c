// SPDX-License-Identifier: MIT
// The ring: order, wrap-around, a full ring, records committed out of order; what is kept; turns from one memory to
// another, and back to its begin, while records come.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cmocka_all.h"
#include "signal/ring.h"

enum { CAPACITY = 1024, LARGE = 8 * GP_RING_REWIND_BYTES };

typedef struct record {
    gp_ring_header_t header;
    uint64_t value;
    uint64_t fill[];
} record_t;

static gp_ring_t *make_ring_of(uint64_t capacity)
{
    gp_ring_t *ring = calloc(1, sizeof(*ring));
    ring->data = calloc(1, capacity);
    ring->capacity = capacity;
    return ring;
}

static gp_ring_t *make_ring(void)
{
    return make_ring_of(CAPACITY);
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
    *ring = (gp_ring_t){.capacity = CAPACITY, .keeps = true};
    atomic_store(&ring->file, memory + GP_RING_OWNER_BYTES);
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
    return gp_ring_at(ring, position)->committed;
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

static uint64_t offset(gp_ring_t *ring)
{
    return atomic_load(&ring->head) % ring->capacity;
}

static void goes_back_to_its_begin_when_empty(void **state)
{
    (void)state;
    enum { COUNT = 10, RECORD = 128 };
    gp_ring_t *ring = make_ring_of(LARGE);
    for (uint64_t round = 0, value = 0; round < 1000; round++) {
        value = put_and_get(ring, value, COUNT);
        assert_in_range(offset(ring), 1, GP_RING_REWIND_BYTES + COUNT * RECORD);
        gp_ring_rewind(ring);
        assert_in_range(offset(ring), 0, GP_RING_REWIND_BYTES - 1);
        assert_int_equal(gp_ring_fill(ring), 0);
        assert_int_equal(gp_ring_unread(ring), 0);
    }
    put_and_get(ring, 0, LARGE / RECORD); // there is room for as much as ever
    free_ring(ring);
}

static void goes_on_where_it_is(gp_ring_t *ring)
{
    uint64_t head = atomic_load(&ring->head);
    gp_ring_rewind(ring);
    assert_int_equal(atomic_load(&ring->head), head);
}

static void goes_on_where_a_record_is_or_a_turn(void **state)
{
    (void)state;
    gp_ring_t *ring = make_ring_of(LARGE);
    unsigned char *memory = calloc(1, GP_RING_OWNER_BYTES + LARGE);
    put_and_get(ring, 0, GP_RING_REWIND_BYTES / 128);
    record_t *begun = put(ring, 1, 2);
    goes_on_where_it_is(ring);
    gp_ring_commit(begun, GP_RING_SAMPLE);
    goes_on_where_it_is(ring);
    assert_int_equal(get(ring), 1);
    gp_ring_turn(ring, memory + GP_RING_OWNER_BYTES);
    goes_on_where_it_is(ring);
    while (!gp_ring_has_turned(ring)) {
        gp_ring_hasten(ring);
        assert_int_equal(get(ring), UINT64_MAX);
    }
    put_and_get(ring, 0, GP_RING_REWIND_BYTES / 128);
    goes_on_where_it_is(ring); // kept
    free(memory);
    free_ring(ring);
}

typedef struct turned {
    gp_ring_t *ring;
    _Atomic bool is_over;
    unsigned batch;        // the producer waits for an empty ring after so many records; 0 = never
    uint64_t put, refused; // by the producer
    uint64_t got;          // by the collector
} turned_t;

static void await_empty(const turned_t *turned)
{
    while (turned->batch > 0 && turned->put % turned->batch == 0 && gp_ring_fill(turned->ring) > 0)
        sched_yield();
}

static void *produce(void *argument)
{
    turned_t *turned = argument;
    unsigned seed = 1;
    while (!atomic_load_explicit(&turned->is_over, memory_order_relaxed)) {
        record_t *record = put(turned->ring, turned->put, (uint32_t)rand_r(&seed) % 8);
        if (record != NULL) {
            gp_ring_commit(record, GP_RING_SAMPLE);
            turned->put++;
            await_empty(turned);
        } else {
            turned->refused++;
        }
    }
    return NULL;
}

static void take_all(turned_t *turned)
{
    for (uint64_t value; (value = get(turned->ring)) != UINT64_MAX;)
        if (value != turned->got++)
            abort(); // assertions are the main thread's
}

static void await_turn(turned_t *turned)
{
    while (!gp_ring_has_turned(turned->ring)) {
        gp_ring_hasten(turned->ring);
        take_all(turned);
    }
}

// The largest padding behind a position: a record of a producer at most needs some at the end.
static uint64_t most_padding(const gp_ring_t *ring, uint64_t from)
{
    uint64_t most = 0, read = atomic_load(&ring->read);
    for (const gp_ring_header_t *header; from < read; from += header->bytes) {
        header = gp_ring_at(ring, from);
        most = header->committed == GP_RING_PAD && header->bytes > most ? header->bytes : most;
    }
    return most;
}

static void assert_zero(const unsigned char *memory)
{
    for (int i = 0; i < CAPACITY; i++)
        assert_int_equal(memory[i], 0);
}

// A ring's memory is empty before and after its turn.
static void turns_while_records_come(void **state)
{
    (void)state;
    turned_t turned = {.ring = make_ring()};
    unsigned char *memory = calloc(1, GP_RING_OWNER_BYTES + CAPACITY), *file = memory + GP_RING_OWNER_BYTES;
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, produce, &turned), 0);
    for (int round = 0; round < 200; round++) {
        uint64_t from = gp_ring_turn(turned.ring, file);
        assert_int_equal(from % CAPACITY, 0);
        await_turn(&turned);
        assert_true(gp_ring_is_file(turned.ring, atomic_load(&turned.ring->read)));
        assert_true(atomic_load(&turned.ring->tail) == from || gp_ring_owner(turned.ring)->tail > from);
        assert_zero(turned.ring->data);
        assert_true(most_padding(turned.ring, atomic_load(&turned.ring->tail)) < CAPACITY / 8);
        for (uint64_t got = turned.got; turned.got < got + 3; gp_ring_relieve(turned.ring))
            take_all(&turned);
        turned.ring->keeps = false;
        gp_ring_relieve(turned.ring);
        gp_ring_turn(turned.ring, NULL);
        await_turn(&turned);
        assert_false(gp_ring_is_file(turned.ring, atomic_load(&turned.ring->read)));
        assert_zero(file);
    }
    atomic_store(&turned.is_over, true);
    pthread_join(producer, NULL);
    take_all(&turned);
    assert_int_equal(turned.got, turned.put);
    free(memory);
    free_ring(turned.ring);
}

static void goes_back_while_records_come(void **state)
{
    (void)state;
    turned_t turned = {.ring = make_ring_of(LARGE), .batch = 64};
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, produce, &turned), 0);
    for (uint64_t times = 0; times < 2000;) {
        take_all(&turned);
        uint64_t tail = atomic_load(&turned.ring->tail);
        gp_ring_rewind(turned.ring);
        times += atomic_load(&turned.ring->tail) > tail;
    }
    atomic_store(&turned.is_over, true);
    while (pthread_tryjoin_np(producer, NULL) != 0)
        take_all(&turned);
    take_all(&turned);
    assert_int_equal(turned.got, turned.put);
    for (uint64_t i = 0; i < LARGE; i++)
        assert_int_equal(turned.ring->data[i], 0);
    free_ring(turned.ring);
}

// A record that was begun before a turn and is not complete holds it up; there is room behind it all the while.
static void turns_after_what_is_not_committed(void **state)
{
    (void)state;
    gp_ring_t *ring = make_ring();
    unsigned char *memory = calloc(1, GP_RING_OWNER_BYTES + CAPACITY);
    record_t *begun = put(ring, 0, 2);
    uint64_t from = gp_ring_turn(ring, memory + GP_RING_OWNER_BYTES);
    assert_int_equal(from, CAPACITY);
    for (int i = 0; i < 100; i++) {
        gp_ring_hasten(ring);
        assert_int_equal(get(ring), UINT64_MAX);
    }
    assert_false(gp_ring_has_turned(ring));
    gp_ring_commit(put(ring, 1, 2), GP_RING_SAMPLE);
    gp_ring_commit(begun, GP_RING_SAMPLE);
    assert_int_equal(get(ring), 0);
    assert_int_equal(get(ring), 1);
    while (!gp_ring_has_turned(ring)) {
        gp_ring_hasten(ring);
        assert_int_equal(get(ring), UINT64_MAX);
    }
    gp_ring_commit(put(ring, 2, 2), GP_RING_SAMPLE);
    assert_int_equal(get(ring), 2);
    assert_int_equal(gp_ring_owner(ring)->tail, from);
    assert_int_equal(committed_at(ring, from), GP_RING_SAMPLE); // kept
    free(memory);
    free_ring(ring);
}

static struct {
    gp_ring_t *ring;
    unsigned char *memory;
} met;

// As a page that a file is slow to give: the thread records meanwhile.
static void record_before_page(int number)
{
    (void)number;
    gp_ring_commit(put(met.ring, 7, 2), GP_RING_SAMPLE);
    mprotect(met.memory, GP_RING_OWNER_BYTES + CAPACITY, PROT_READ | PROT_WRITE);
}

static void records_where_it_was_amid_the_first_turn(void **state)
{
    (void)state;
    void (*before)(int) = signal(SIGSEGV, record_before_page);
    met.ring = make_ring();
    met.memory = mmap(NULL, GP_RING_OWNER_BYTES + CAPACITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(met.memory, MAP_FAILED);
    gp_ring_turn(met.ring, met.memory + GP_RING_OWNER_BYTES);
    signal(SIGSEGV, before);
    assert_int_equal(gp_ring_unread(met.ring), sizeof(record_t) + 16);
    assert_int_equal(get(met.ring), 7);
    munmap(met.memory, GP_RING_OWNER_BYTES + CAPACITY);
    free_ring(met.ring);
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
        cmocka_unit_test(keeps_order_over_many_wraps),
        cmocka_unit_test(refuses_when_full_and_recovers),
        cmocka_unit_test(holds_back_what_is_not_committed),
        cmocka_unit_test(keeps_what_was_read_until_it_is_released),
        cmocka_unit_test(stops_at_what_is_no_record),
        cmocka_unit_test(turns_while_records_come),
        cmocka_unit_test(records_where_it_was_amid_the_first_turn),
        cmocka_unit_test(turns_after_what_is_not_committed),
        cmocka_unit_test(goes_back_to_its_begin_when_empty),
        cmocka_unit_test(goes_on_where_a_record_is_or_a_turn),
        cmocka_unit_test(goes_back_while_records_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
