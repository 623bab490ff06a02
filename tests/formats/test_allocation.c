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
#include "failing_memory.h"
#include "labelled_report.h"

// Returns how many allocations it takes.
static long fail_each(const gp_exporter_t *exporter, const gp_report_t *report, FILE *out)
{
    for (long n = 0;; n++) {
        memory_held = 0;
        memory_until_failure = n;
        int result = exporter->write(report, out);
        bool failed = memory_until_failure < 0;
        memory_until_failure = -1;
        if (memory_held != 0)
            fail_msg("%s: allocation %ld: %ld are not freed", exporter->name, n, memory_held);
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
    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
