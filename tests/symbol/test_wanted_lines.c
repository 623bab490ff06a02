// SPDX-License-Identifier: MIT
// Line tables read for some addresses only: these rows say the same as where all are read, also where sequences are in
// no order, run into one another, go backwards or were thrown away.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/dwarf_unit.h"

enum { TABLE_BYTES = 1024, LAST = 0x400 };

typedef struct table {
    uint8_t bytes[TABLE_BYTES];
    size_t len;
} table_t;

static void put(table_t *table, const void *bytes, size_t len)
{
    assert_true(table->len + len <= sizeof(table->bytes));
    memcpy(table->bytes + table->len, bytes, len);
    table->len += len;
}

static void put_u32(table_t *table, uint32_t number)
{
    put(table, &number, sizeof(number));
}

static void begin(table_t *table)
{
    static const uint8_t version[] = {4, 0};
    static const uint8_t rest[] = {1, 1, 1, (uint8_t)-5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0};
    table->len = 0;
    put_u32(table, 0); // its length, see end()
    put(table, version, sizeof(version));
    put_u32(table, sizeof(rest));
    put(table, rest, sizeof(rest));
}

static void end(table_t *table)
{
    uint32_t length = (uint32_t)(table->len - sizeof(length));
    memcpy(table->bytes, &length, sizeof(length));
}

static void put_address(table_t *table, uint64_t address)
{
    put(table, (const uint8_t[]){0, 9, DW_LNE_set_address}, 3);
    put(table, &address, sizeof(address));
}

// A row more, so many bytes and lines further.
static void put_row(table_t *table, uint8_t bytes, uint8_t lines)
{
    put(table, (const uint8_t[]){DW_LNS_advance_pc, bytes, DW_LNS_advance_line, lines, DW_LNS_copy}, 5);
}

// Rows at `at`, 8, 8 (twice, the last one counts), 16 and 40 bytes further; the sequence has 48 bytes.
static void put_sequence(table_t *table, uint64_t at, uint8_t line)
{
    put_address(table, at);
    put_row(table, 0, line);
    put_row(table, 8, 1);
    put_row(table, 0, 1);
    put_row(table, 8, 0);
    put_row(table, 24, 3);
    put(table, (const uint8_t[]){DW_LNS_advance_pc, 8, 0, 1, DW_LNE_end_sequence}, 5);
}

typedef struct read { // what is read of a table
    gp_dwarf_t dwarf;
    gp_dwarf_unit_t unit;
} read_t;

static void read_table(read_t *read, const table_t *table, const gp_dwarf_wanted_t *wanted)
{
    memset(read, 0, sizeof(*read));
    read->dwarf.sections[GP_DEBUG_LINE] = (gp_bytes_t){table->bytes, table->len};
    read->dwarf.room.dwarf = &read->dwarf;
    read->unit = (gp_dwarf_unit_t){.version = 4, .line_table = {.form = DW_FORM_sec_offset}};
    assert_int_equal(gp_dwarf_lines_load(&read->dwarf.room, &read->unit, wanted), 0);
}

static void free_read(read_t *read)
{
    gp_dwarf_unit_free(&read->unit);
    gp_dwarf_free_read(&read->dwarf);
}

// The line of an address; 0 = none.
static uint32_t line_of(const read_t *read, uint64_t address, bool *is_read)
{
    const gp_dwarf_unit_t *unit = &read->unit;
    size_t upto = gp_buckets_upto(&unit->line_buckets, unit->lines, unit->line_count, sizeof(*unit->lines), address);
    *is_read = upto == 0 || unit->lines[upto - 1].file != GP_DWARF_UNREAD;
    return upto > 0 ? unit->lines[upto - 1].line : 0;
}

// Whichever addresses are wanted: those are read where they have a line, and what is said of any is right.
static void assert_right(const table_t *table, uint64_t first, uint64_t stride)
{
    uint64_t addresses[LAST];
    gp_dwarf_wanted_t wanted = {.addresses = addresses};
    bool is_read;
    read_t all, some;
    for (uint64_t address = first; address < LAST; address += stride)
        addresses[wanted.count++] = address;
    read_table(&all, table, &(gp_dwarf_wanted_t){0});
    read_table(&some, table, &wanted);
    for (uint64_t address = 0; address < LAST; address++) {
        uint32_t right = line_of(&all, address, &is_read), line = line_of(&some, address, &is_read);
        bool is_wanted = address >= first && (address - first) % stride == 0;
        assert_true(is_read || !is_wanted || right == 0);
        assert_int_equal(is_read ? line : right, right);
    }
    free_read(&some);
    free_read(&all);
}

static void assert_all_right(table_t *table)
{
    end(table);
    for (uint64_t first = 0; first < LAST; first += 3)
        assert_right(table, first, LAST); // a single one
    for (uint64_t stride = 1; stride < 80; stride += 6)
        assert_right(table, stride / 2, stride);
}

static void test_in_order(void **state)
{
    (void)state;
    table_t table;
    begin(&table);
    put_sequence(&table, 0x40, 10);
    put_sequence(&table, 0x70, 20); // where the other one ends
    put_sequence(&table, 0x200, 30);
    assert_all_right(&table);
    read_t some;
    read_table(&some, &table, &(gp_dwarf_wanted_t){.addresses = (uint64_t[]){0x79}, .count = 1});
    assert_int_equal(some.unit.line_count, 7); // three beginnings, the row, what is behind it, two ends
    free_read(&some);
}

static void test_in_no_order(void **state)
{
    (void)state;
    table_t table;
    begin(&table);
    put_sequence(&table, 0x200, 10);
    put_sequence(&table, 0, 20); // thrown away by the linker
    put_sequence(&table, 0x70, 30);
    put_sequence(&table, 0x40, 40);
    assert_all_right(&table);
}

static void test_one_in_another(void **state)
{
    (void)state;
    table_t table;
    begin(&table);
    put_sequence(&table, 0x200, 10);
    put_sequence(&table, 0x40, 20);
    put_sequence(&table, 0x4c, 30);
    assert_all_right(&table);
    begin(&table);
    put_sequence(&table, 0x40, 10);
    put_sequence(&table, 0x40, 20);
    assert_all_right(&table);
}

static void test_backwards(void **state)
{
    (void)state;
    table_t table;
    begin(&table);
    put_address(&table, 0x80);
    put_row(&table, 0, 10);
    put_row(&table, 16, 1);
    put_address(&table, 0x60);
    put_row(&table, 0, 20);
    put_sequence(&table, 0xa0, 30);
    assert_all_right(&table);
}

static void test_without_an_end(void **state)
{
    (void)state;
    table_t table;
    begin(&table);
    put_sequence(&table, 0x40, 10);
    put_address(&table, 0x100);
    put_row(&table, 0, 20);
    put_row(&table, 16, 1);
    assert_all_right(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),  cmocka_unit_test(test_in_no_order),    cmocka_unit_test(test_one_in_another),
        cmocka_unit_test(test_backwards), cmocka_unit_test(test_without_an_end),
    };
    return cmocka_run_group_tests_name("wanted_lines", tests, NULL, NULL);
}
