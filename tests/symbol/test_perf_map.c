// SPDX-License-Identifier: MIT
// perf-PID.map: what counts as a line, what counts where pieces overlap, files that grow and
// change.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbol/perf_map.h"
#include "symbol/symbolizer.h"

typedef struct fixture {
    char path[64];
    gp_perf_map_t map;
} fixture_t;

static int set_up(void **state)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    strcpy(fixture->path, "/tmp/test_perf_map.XXXXXX");
    close(mkstemp(fixture->path));
    fixture->map = (gp_perf_map_t){.path = fixture->path, .to_ns = UINT64_MAX};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_t *fixture = *state;
    gp_perf_map_clear(&fixture->map);
    unlink(fixture->path);
    free(fixture);
    return 0;
}

static void append(const fixture_t *fixture, const char *text)
{
    FILE *file = fopen(fixture->path, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *name_at(const fixture_t *fixture, uint64_t address)
{
    const gp_perf_piece_t *piece = gp_perf_map_find(&fixture->map, address);
    return piece ? piece->name : "none";
}

static void test_lines(void **state)
{
    fixture_t *fixture = *state;
    append(fixture, "1000 20 plain\n"
                    "0x2000 0x10 with a prefix and blanks\n"
                    "\n"
                    "3000 0 empty\n"
                    "xyz 10 no number\n"
                    "4000 10\n"
                    "4000 10 \n"
                    "ffffffffffffffff0 10 too long\n"
                    "fffffffffffffff8 10 past the end\n"
                    "5000 8 no newline yet");
    assert_int_equal(gp_perf_map_update(&fixture->map), 0);
    assert_int_equal(fixture->map.count, 2);
    assert_string_equal(name_at(fixture, 0xfff), "none");
    assert_string_equal(name_at(fixture, 0x1000), "plain");
    assert_string_equal(name_at(fixture, 0x101f), "plain");
    assert_string_equal(name_at(fixture, 0x1020), "none");
    assert_string_equal(name_at(fixture, 0x2008), "with a prefix and blanks");
    assert_string_equal(name_at(fixture, 0x5000), "none");
    append(fixture, ", now\n");
    assert_int_equal(gp_perf_map_update(&fixture->map), 0);
    assert_string_equal(name_at(fixture, 0x5000), "no newline yet, now");
}

// The memory was used again: the later line counts, what is left of the earlier one stays.
static void test_later_counts(void **state)
{
    fixture_t *fixture = *state;
    append(fixture, "1000 100 first\n1040 10 second\n10f0 20 third\n1044 4 fourth\n900 800 fifth\n");
    append(fixture, "1200 10 sixth\n");
    assert_int_equal(gp_perf_map_update(&fixture->map), 0);
    assert_string_equal(name_at(fixture, 0x1000), "fifth");
    assert_string_equal(name_at(fixture, 0x1045), "fifth");
    assert_string_equal(name_at(fixture, 0x10ff), "fifth");
    assert_string_equal(name_at(fixture, 0x1100), "third");
    gp_perf_map_clear(&fixture->map);
    assert_int_equal(truncate(fixture->path, 0), 0);
    append(fixture, "1000 100 first\n1040 10 second\n10f0 20 third\n1044 4 fourth\n");
    assert_int_equal(gp_perf_map_update(&fixture->map), 0);
    static const struct {
        uint64_t address;
        const char *name;
    } expected[] = {{0x1000, "first"},  {0x103f, "first"},  {0x1040, "second"}, {0x1043, "second"}, {0x1044, "fourth"},
                    {0x1047, "fourth"}, {0x1048, "second"}, {0x104f, "second"}, {0x1050, "first"},  {0x10ef, "first"},
                    {0x10f0, "third"},  {0x110f, "third"},  {0x1110, "none"}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(name_at(fixture, expected[i].address), expected[i].name);
}

// Against the plain rule, on pieces drawn at random.
static void test_random_overlaps(void **state)
{
    fixture_t *fixture = *state;
    uint64_t starts[64], ends[64];
    srand(5);
    for (int round = 0; round < 100; round++) {
        gp_perf_map_clear(&fixture->map);
        assert_int_equal(truncate(fixture->path, 0), 0);
        for (unsigned i = 0; i < 64; i++) {
            char line[64];
            starts[i] = (uint64_t)(rand() % 200);
            ends[i] = starts[i] + 1 + (uint64_t)(rand() % 40);
            snprintf(line, sizeof(line), "%lx %lx n%u\n", (unsigned long)starts[i],
                     (unsigned long)(ends[i] - starts[i]), i);
            append(fixture, line);
        }
        assert_int_equal(gp_perf_map_update(&fixture->map), 0);
        for (uint64_t address = 0; address < 250; address++) {
            char name[16] = "none";
            for (unsigned i = 0; i < 64; i++)
                if (starts[i] <= address && address < ends[i])
                    snprintf(name, sizeof(name), "n%u", i);
            assert_string_equal(name_at(fixture, address), name);
        }
    }
}

static void test_another_file(void **state)
{
    fixture_t *fixture = *state;
    append(fixture, "1000 20 old\n2000 20 old too\n");
    assert_int_equal(gp_perf_map_update(&fixture->map), 0);
    assert_string_equal(name_at(fixture, 0x2000), "old too");
    assert_int_equal(truncate(fixture->path, 0), 0);
    append(fixture, "1000 20 new\n");
    assert_int_equal(gp_perf_map_update(&fixture->map), 0);
    assert_string_equal(name_at(fixture, 0x1000), "new");
    assert_string_equal(name_at(fixture, 0x2000), "none");
    unlink(fixture->path);
    assert_int_equal(gp_perf_map_update(&fixture->map), -ENOENT);
    assert_string_equal(name_at(fixture, 0x1000), "none");
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_int_equal(gp_perf_map_update(&fixture->map), -EPERM); // and does not wait
}

// Process ids come again: a map from before the process, or from after it, is another one's.
static void test_another_process(void **state)
{
    fixture_t *fixture = *state;
    struct timespec now;
    append(fixture, "1000 20 name\n");
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    fixture->map.from_ns = now_ns + 5000000000u;
    assert_int_equal(gp_perf_map_update(&fixture->map), -EPERM);
    assert_string_equal(name_at(fixture, 0x1000), "none");
    fixture->map.from_ns = now_ns - 5000000000u;
    assert_int_equal(gp_perf_map_update(&fixture->map), 0);
    assert_string_equal(name_at(fixture, 0x1000), "name");
    struct statx status;
    assert_int_equal(statx(AT_FDCWD, fixture->path, 0, STATX_BTIME, &status), 0);
    fixture->map.to_ns = now_ns - 5000000000u;
    if (status.stx_mask & STATX_BTIME)
        assert_int_equal(gp_perf_map_update(&fixture->map), -EPERM);
}

// Code without a module gets its name, also when the file grows after the first look.
static void test_symbolizer(void **state)
{
    fixture_t *fixture = *state;
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    const uint32_t none = GP_SYMBOLIZER_NO_MODULE;
    gp_symbolizer_perf_map(symbolizer, fixture->path, 0, UINT64_MAX);
    append(fixture, "1000 20 one\n");
    const gp_symbol_t *one = gp_symbolizer_resolve(symbolizer, none, 0x1010);
    assert_string_equal(one->function, "one");
    assert_string_equal(one->file, "[jit]");
    assert_ptr_equal(gp_symbolizer_resolve(symbolizer, none, 0x1011), one);
    assert_string_equal(gp_symbolizer_resolve(symbolizer, none, 0x2000)->function, "0x2000");
    append(fixture, "2000 20 two\n");
    assert_string_equal(gp_symbolizer_resolve(symbolizer, none, 0x2000)->function, "0x2000");
    gp_symbolizer_refresh(symbolizer);
    assert_string_equal(gp_symbolizer_resolve(symbolizer, none, 0x2000)->function, "two");
    assert_string_equal(one->function, "one"); // answers stay
    gp_symbolizer_destroy(symbolizer);
}

int main(void)
{
#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FILE(test_lines),        WITH_FILE(test_later_counts),    WITH_FILE(test_random_overlaps),
        WITH_FILE(test_another_file), WITH_FILE(test_another_process), WITH_FILE(test_symbolizer),
    };
    return cmocka_run_group_tests_name("perf_map", tests, NULL, NULL);
}
