// SPDX-License-Identifier: MIT
// A capture in memory: tables, the bounded mode, names of locations, and several takers of one reading.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture_script.h"
#include "facts/names.h"

static const char script[] = "header frequency=100\n"
                             "meta exe /bin/one\n"
                             "meta service first\n"
                             "meta service last\n"
                             "module 1 /nonexistent/program abcd 0x1000 0x9000 0x0\n"
                             "function 7 12 handle views.py\n"
                             "thread 1 100 1 5000 main\n"
                             "coro 1 0 - 0x0 0 2 1 main\n"
                             "coro 900000 1 1:40 0x10000 65536 1 0 worker\n"
                             "trace 3 000102030405060708090a0b0c0d0e0f\n"
                             "stack 5 0 switching 1:10 function:7:15 1:20 1:30\n"
                             "stack 6 0 function:8:1\n"
                             "sample 1000 1000 1 1 5 3\n"
                             "coro 900000 1 1:40 0x10000 65536 1 0 renamed\n"
                             "counters 3000 2500 10 3 3\n"
                             "end 4000 0\n";

static int script_fd(void)
{
    size_t len;
    uint8_t *bytes = capture_from_script(script, &len);
    int fd = memfd_create("capture", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    free(bytes);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void read_facts(gp_facts_t *facts, int fd, const gp_taker_t *next)
{
    const gp_taker_t takers = {&gp_facts_handlers, facts, next};
    gp_reader_part_t part = {0};
    gp_reader_summary_t summary;
    char error[GP_READER_ERROR_SIZE];
    assert_int_equal(gp_reader_take_part(fd, &part, &takers, &summary, error), 0);
}

static const gp_facts_coro_t *coro_of(const gp_facts_t *facts, uint64_t id)
{
    uint32_t number = gp_table_find(&facts->coros.table, id);
    return number != GP_INDEX_NONE ? &facts->coros.items[number] : NULL;
}

static void what_is_defined_is_kept(void **state)
{
    (void)state;
    gp_facts_t facts;
    int fd = script_fd();
    assert_int_equal(gp_facts_init(&facts, false), 0);
    read_facts(&facts, fd, NULL);
    assert_string_equal(facts.exe, "/bin/one");
    assert_string_equal(gp_facts_meta(&facts, "service")->value, "last");
    assert_null(gp_facts_meta(&facts, "none"));
    assert_string_equal(coro_of(&facts, 900000)->record.name, "renamed");
    assert_string_equal(coro_of(&facts, 900000)->former->name, "worker");
    assert_int_equal(facts.traces.items[gp_table_find(&facts.traces.table, 3)].id[15], 15);
    assert_int_equal(facts.stacks.items[gp_table_find(&facts.stacks.table, 5)].depth, 5);
    assert_int_equal(facts.stacks.items[0].id, 0); // "no stack"
    assert_true(facts.ended && facts.end_ns == 4000 && facts.totals.process_cpu_ns == 2500);
    gp_facts_free(&facts);
    close(fd);
}

// Dropped records come back as they were, if wanted; kept ones do not come twice.
static void what_was_dropped_is_read_again(void **state)
{
    (void)state;
    typedef struct wanted_id {
        uint64_t id;
    } wanted_id_t;
    GP_TABLE(wanted_id_t) wanted = GP_TABLE_SPARSE(wanted_id_t, id);
    gp_facts_t facts;
    int fd = script_fd();
    assert_int_equal(gp_facts_init(&facts, true), 0);
    read_facts(&facts, fd, NULL);
    size_t metas = facts.metas.count, kept = facts.kept.bytes;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(gp_facts_drop(&facts), 0);
        assert_null(coro_of(&facts, 900000));
        assert_int_not_equal(gp_table_need(&wanted.table, GP_FACTS_CORO | 900000), GP_INDEX_NONE);
        assert_int_not_equal(gp_table_need(&wanted.table, GP_FACTS_STACK | 5), GP_INDEX_NONE);
        facts.wanted = &wanted.table;
        read_facts(&facts, fd, NULL);
        facts.wanted = NULL;
        assert_string_equal(coro_of(&facts, 900000)->record.name, "renamed");
        assert_null(coro_of(&facts, 1));
        assert_int_equal(gp_table_find(&facts.traces.table, 3), GP_INDEX_NONE);
        assert_int_equal(gp_table_find(&facts.stacks.table, 6), GP_INDEX_NONE);
        assert_int_not_equal(gp_table_find(&facts.stacks.table, 5), GP_INDEX_NONE);
        assert_true(facts.metas.count == metas && facts.modules.count == 1 && facts.kept.bytes == kept);
    }
    gp_table_free(&wanted.table);
    gp_facts_free(&facts);
    close(fd);
}

static void stacks_may_be_cut(void **state)
{
    (void)state;
    gp_facts_t facts;
    int fd = script_fd();
    assert_int_equal(gp_facts_init(&facts, true), 0);
    facts.frames_most = 2;
    read_facts(&facts, fd, NULL);
    const gp_facts_stack_t *stack = &facts.stacks.items[gp_table_find(&facts.stacks.table, 5)];
    assert_int_equal(stack->depth, 2);
    assert_int_equal(stack->frames[1], GP_LOC(1, 0x10));
    gp_facts_free(&facts);
    close(fd);
}

static void locations_have_names(void **state)
{
    (void)state;
    gp_facts_t facts;
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    gp_namer_t namer = {.facts = &facts, .symbolizer = symbolizer};
    gp_name_t name;
    int fd = script_fd();
    assert_int_equal(gp_facts_init(&facts, false), 0);
    read_facts(&facts, fd, NULL);
    const gp_facts_stack_t *stack = &facts.stacks.items[gp_table_find(&facts.stacks.table, 5)];
    static const char *const names[] = {"[switching]", "program+0x10", "handle", "program+0x20", "program+0x30"};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(gp_facts_name(&namer, stack->frames[i], &name), 0);
        assert_string_equal(name.symbol->function, names[i]);
        assert_int_equal(name.is_pseudo, i == 0);
    }
    assert_int_equal(gp_facts_name(&namer, stack->frames[2], &name), 0);
    assert_string_equal(name.symbol->file, "views.py");
    assert_true(name.symbol->line == 15 && name.symbol->first_line == 12);
    assert_int_equal(gp_facts_name(&namer, GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(8, 1)), &name), 0);
    assert_true(name.is_pseudo && strcmp(name.symbol->function, "[lost function]") == 0);
    gp_facts_free(&facts);
    gp_symbolizer_destroy(symbolizer);
    close(fd);
}

typedef struct counted {
    unsigned headers, samples, coros;
    const gp_facts_t *facts; // of the taker before
} counted_t;

static int count_header(void *context, const gp_file_header_t *header)
{
    (void)header;
    ((counted_t *)context)->headers++;
    return 0;
}

static int count_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    counted_t *counted = context;
    if (counted->facts != NULL) // definitions come before records that refer to them
        assert_int_not_equal(gp_table_find(&counted->facts->stacks.table, samples->stack_id), GP_INDEX_NONE);
    counted->samples += (unsigned)count;
    return 0;
}

static int count_coro(void *context, const gp_coro_record_t *coro)
{
    (void)coro;
    ((counted_t *)context)->coros++;
    return 0;
}

// A reading serves all takers, each as if it were alone.
static void one_reading_has_many_takers(void **state)
{
    (void)state;
    static const gp_reader_handlers_t all = {.header = count_header, .samples = count_samples, .coro = count_coro};
    static const gp_reader_handlers_t only_samples = {.samples = count_samples};
    gp_facts_t facts;
    counted_t first = {.facts = &facts}, second = {0};
    const gp_taker_t last = {&only_samples, &second, NULL}, next = {&all, &first, &last};
    int fd = script_fd();
    assert_int_equal(gp_facts_init(&facts, false), 0);
    read_facts(&facts, fd, &next);
    assert_true(first.headers == 1 && first.samples == 1 && first.coros == 3);
    assert_true(second.headers == 0 && second.samples == 1 && second.coros == 0);
    gp_facts_free(&facts);
    close(fd);
}

// Items are found by small and by large ids, after others were taken out, too.
static void tables_find_what_they_have(void **state)
{
    (void)state;
    typedef struct item {
        uint32_t kind;
        uint64_t id;
    } item_t;
    GP_TABLE(item_t) items = GP_TABLE_BY(item_t, id);
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t id = i % 2 != 0 ? i : i << 40;
        assert_int_equal(gp_table_need(&items.table, id), i);
        assert_int_equal(gp_table_need(&items.table, id), i);
        assert_int_equal(items.items[i].id, id);
    }
    size_t kept = 0;
    for (size_t i = 0; i < items.count; i += 3)
        items.items[kept++] = items.items[i];
    items.count = kept;
    assert_int_equal(gp_table_index(&items.table), 0);
    for (uint64_t i = 0; i < 5000; i++) {
        uint32_t number = gp_table_find(&items.table, i % 2 != 0 ? i : i << 40);
        assert_int_equal(number, i % 3 == 0 ? i / 3 : GP_INDEX_NONE);
    }
    gp_table_free(&items.table);
    assert_int_equal(gp_table_find(&items.table, 3), GP_INDEX_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_defined_is_kept),     cmocka_unit_test(what_was_dropped_is_read_again),
        cmocka_unit_test(stacks_may_be_cut),           cmocka_unit_test(locations_have_names),
        cmocka_unit_test(one_reading_has_many_takers), cmocka_unit_test(tables_find_what_they_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
