// SPDX-License-Identifier: MIT
// Every exporter with every allocation failing once: it says so, and frees what it had.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "example_report.h"
#include "labelled_report.h"

static long until_failure; // allocations that still work; negative = all do
static long held;          // allocations that were not freed

static bool fails(void)
{
    return until_failure >= 0 && until_failure-- == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_reallocarray(void *memory, size_t count, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_reallocarray(void *memory, size_t count, size_t bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes)
{
    void *memory = fails() ? NULL : __real_malloc(bytes);
    held += memory != NULL;
    return memory;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *memory = fails() ? NULL : __real_calloc(count, bytes);
    held += memory != NULL;
    return memory;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    void *moved = fails() ? NULL : __real_realloc(memory, bytes);
    held += moved != NULL && memory == NULL;
    return moved;
}

void *__wrap_reallocarray(void *memory, size_t count, size_t bytes)
{
    void *moved = fails() ? NULL : __real_reallocarray(memory, count, bytes);
    held += moved != NULL && memory == NULL;
    return moved;
}

void __wrap_free(void *memory)
{
    held -= memory != NULL;
    __real_free(memory);
}

// Returns how many allocations it takes.
static long fail_each(const gp_exporter_t *exporter, const gp_report_t *report, FILE *out)
{
    for (long n = 0;; n++) {
        held = 0;
        until_failure = n;
        int result = exporter->write(report, out);
        bool failed = until_failure < 0;
        until_failure = -1;
        if (held != 0)
            fail_msg("%s: allocation %ld: %ld are not freed", exporter->name, n, held);
        if (result != (failed ? -ENOMEM : 0))
            fail_msg("%s: allocation %ld: result %d", exporter->name, n, result);
        if (!failed)
            return n;
    }
}

static void test_each(void **state)
{
    (void)state;
    FILE *out = fopen("/dev/null", "w");
    for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++) {
        fail_each(exporter, &labelled_report, out);
        if (exporter->wants & GP_WANT_TIMELINE) { // the others have none
            assert_int_equal(exporter->write(&example_report, out), -ENOTSUP);
            continue;
        }
        fail_each(exporter, &example_report, out);
        fail_each(exporter, &empty_report, out);
    }
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    until_failure = -1;
    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
