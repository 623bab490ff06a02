// SPDX-License-Identifier: MIT
// Reports from scripts of captures and from snapshots: totals, filters, groups, scaling.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture_script.h"
#include "export/function_table.h"
#include "report/report_entry.h"
#include "report/report_options.h"

static const char script[] = "meta exe /opt/app/server\n"
                             "module 1 /opt/app/server 0102 0x1000 0x9000 0x0\n"
                             "thread 1 10 1 0 main\n"
                             "coro 1 0 - 0x1000 0x1000 1 1 -\n"
                             "coro 2 1 1:40 0x3000 0x1000 2 0 -\n"
                             "coro 3 1 - 0x5000 0x1000 2 0 worker\n"
                             "coro 4 1 - 0x7000 0x1000 3 0 -\n"
                             "trace 1 4bf92f3577b34da6a3ce929d0e0e4736\n"
                             "stack 1 0 1:10 1:20\n"
                             "stack 2 0 switching 1:20\n"
                             "stack 3 0 1:30 1:30 1:30 1:20\n"
                             "sample 100 1000 1 1 1 0\n"
                             "sample 200 1000 2 1 2 1\n"
                             "sample 300 1000 3 1 3 1\n"
                             "sample 400 1000 3 1 3 0\n"
                             "sample 500 1000 4 1 0 0\n"
                             "sample 600 1000 9 1 77 5\n"
                             "ledger 1 0 1111 1 600\nledger 2 1 900 2 600\n"
                             "ledger 3 1 500 3 600\nledger 3 0 1500 1 600\nledger 3 1 50 1 700\n"
                             "counters 700 6007 10 6 6\n"
                             "end 800 0\n";

typedef struct fixture {
    gp_dataset_t *dataset;
    gp_symbolizer_t *symbolizer;
    gp_report_t *report;
    bool coros[32], traces[32];
} fixture_t;

static gp_dataset_t *load(const char *text)
{
    char error[GP_READER_ERROR_SIZE];
    size_t len;
    uint8_t *bytes = capture_from_script(text, &len);
    int fd = memfd_create("capture", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    lseek(fd, 0, SEEK_SET);
    gp_dataset_t *dataset = gp_dataset_load_fd(fd, 0, error);
    assert_non_null(dataset);
    close(fd);
    free(bytes);
    return dataset;
}

// coro_id, trace_id: only this one; 0 and NULL = all.
static fixture_t build(const char *text, gp_report_options_t options, uint64_t coro_id, const uint8_t *trace_id)
{
    fixture_t fixture = {.dataset = load(text), .symbolizer = gp_symbolizer_create()};
    if (coro_id != 0) {
        fixture.coros[gp_dataset_coro_find(fixture.dataset, coro_id)] = true;
        options.selection.coros = fixture.coros;
    }
    if (trace_id != NULL) {
        fixture.traces[gp_dataset_trace_find(fixture.dataset, trace_id)] = true;
        options.selection.traces = fixture.traces;
    }
    fixture.report = gp_report_from_capture(fixture.dataset, &options, fixture.symbolizer);
    assert_non_null(fixture.report);
    return fixture;
}

static void drop(fixture_t *fixture)
{
    gp_report_free(fixture->report);
    gp_symbolizer_destroy(fixture->symbolizer);
    gp_dataset_free(fixture->dataset);
}

static uint64_t row_sum(const gp_report_t *report)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < report->row_count; i++)
        sum += report->rows[i].weight_ns;
    return sum;
}

// Weight of the rows with the root `name`.
static uint64_t under_root(const gp_report_t *report, const char *name)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < report->row_count; i++)
        if (strcmp(report->frames[report->rows[i].frames[0]].function, name) == 0)
            sum += report->rows[i].weight_ns;
    return sum;
}

static void test_whole_process(void **state)
{
    (void)state;
    fixture_t fixture = build(script, (gp_report_options_t){0}, 0, NULL);
    const gp_report_t *report = fixture.report;
    assert_int_equal(report->total_ns, 6007);
    assert_int_equal(report->sampled_ns, 6000);
    assert_int_equal(report->samples, 6);
    assert_int_equal(row_sum(report), 6007);
    assert_string_equal(report->title, "server");
    assert_int_equal(report->duration_ns, 800);
    assert_int_equal(under_root(report, "[no stack]"), 1001);
    // 1000 of 6000 parts of 6007, rounded down or up.
    assert_in_range(under_root(report, "[lost stack]"), 1001, 1002);
    assert_in_range(under_root(report, "server+0x20"), 4004, 4006);
    drop(&fixture);
}

static void test_coroutine_filter_uses_ledger(void **state)
{
    (void)state;
    fixture_t fixture = build(script, (gp_report_options_t){0}, 3, NULL);
    assert_int_equal(fixture.report->total_ns, 500 + 1500 + 50);
    assert_int_equal(fixture.report->sampled_ns, 2000);
    assert_int_equal(row_sum(fixture.report), 2050);
    drop(&fixture);

    fixture = build(script, (gp_report_options_t){0}, 4,
                    NULL); // the ledger does not know it: what the samples say
    assert_int_equal(fixture.report->total_ns, 1000);
    assert_int_equal(fixture.report->basis, GP_BASIS_SAMPLED);
    drop(&fixture);
}

static void test_trace_filter(void **state)
{
    (void)state;
    static const uint8_t id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                   0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
    fixture_t fixture = build(script, (gp_report_options_t){0}, 0, id);
    assert_int_equal(fixture.report->total_ns, 900 + 500 + 50);
    assert_int_equal(fixture.report->samples, 2);
    drop(&fixture);
    fixture = build(script, (gp_report_options_t){0}, 3, id);
    assert_int_equal(fixture.report->total_ns, 550);
    drop(&fixture);
}

static void test_groups(void **state)
{
    (void)state;
    fixture_t fixture = build(script, (gp_report_options_t){.by = GP_BY_COROUTINE}, 0, NULL);
    assert_int_equal(row_sum(fixture.report), 6007);
    assert_in_range(under_root(fixture.report, "[thread main]"), 1001, 1002);
    assert_in_range(under_root(fixture.report, "[coroutine 2 server+0x40]"), 1001, 1002);
    assert_in_range(under_root(fixture.report, "[coroutine 3 worker]"), 2002, 2003);
    assert_in_range(under_root(fixture.report, "[coroutine 4 stack@0x7000-0x8000]"), 1001, 1002);
    assert_in_range(under_root(fixture.report, "[coroutine 9 unknown]"), 1001, 1002);
    drop(&fixture);

    fixture = build(script, (gp_report_options_t){.by = GP_BY_TRACE}, 0, NULL);
    assert_int_equal(row_sum(fixture.report), 6007);
    assert_in_range(under_root(fixture.report, "[trace 4bf92f3577b34da6a3ce929d0e0e4736]"), 2002, 2003);
    assert_in_range(under_root(fixture.report, "[no trace]"), 3003, 3004);
    assert_in_range(under_root(fixture.report, "[trace #5]"), 1001, 1002);
    drop(&fixture);
}

static void test_no_samples(void **state)
{
    (void)state;
    fixture_t fixture = build("counters 700 1234567 10 0 0\n", (gp_report_options_t){0}, 0, NULL);
    assert_int_equal(fixture.report->total_ns, 1234567);
    assert_int_equal(fixture.report->samples, 0);
    assert_int_equal(fixture.report->row_count, 1);
    assert_int_equal(under_root(fixture.report, "[no samples]"), 1234567);
    drop(&fixture);

    fixture = build("meta exe x\n", (gp_report_options_t){0}, 0, NULL);
    assert_int_equal(fixture.report->total_ns, 0);
    assert_int_equal(fixture.report->row_count, 0);
    drop(&fixture);
}

// Definitions that come again replace; ledger increments add up; the last counters count.
static void test_dataset(void **state)
{
    (void)state;
    gp_dataset_t *dataset = load("coro 7 0 - 0x1000 0x1000 2 0 first\n"
                                 "coro 7 0 - 0x1000 0x1000 2 0 second\n"
                                 "ledger 7 0 10 1 5\nledger 7 0 30 2 9\n"
                                 "counters 5 100 1 1 1\ncounters 9 300 2 4 3 1\n");
    uint32_t coro = gp_dataset_coro_find(dataset, 7);
    assert_string_equal(dataset->facts.coros.items[coro].record.name, "second");
    assert_int_equal(dataset->coros.items[coro].ledger.cpu_ns, 40);
    assert_int_equal(dataset->coros.items[coro].ledger.switches, 3);
    assert_int_equal(dataset->facts.totals.process_cpu_ns, 300);
    assert_int_equal(dataset->facts.counters[GP_COUNTER_DROP_RING_FULL], 1);
    assert_int_equal(gp_dataset_coro_find(dataset, 8), GP_INDEX_NONE);
    gp_dataset_free(dataset);
}

// Recursion: inclusive time once a sample, calls as often as it is there.
static void test_function_table(void **state)
{
    (void)state;
    fixture_t fixture = build(script, (gp_report_options_t){0}, 3, NULL);
    gp_function_table_t *table = gp_function_table_create(fixture.report);
    uint64_t self_ns = 0;
    for (uint32_t i = 0; i < table->function_count; i++) {
        const gp_function_t *function = &table->functions[i];
        self_ns += function->self_ns;
        if (strcmp(function->frame->function, "server+0x30") != 0)
            continue;
        assert_int_equal(function->calls, 6);
        assert_int_equal(function->primitive_calls, 2);
        assert_int_equal(function->total_ns, 2050);
        assert_int_equal(function->self_ns, 2050);
        assert_int_equal(function->caller_count, 2);
        uint64_t calls = 0, primitive = 0;
        for (uint32_t c = 0; c < function->caller_count; c++) {
            const gp_function_pair_t *pair = &table->pairs[function->first_caller + c];
            assert_int_equal(pair->total_ns, 2050); // once, below either caller
            calls += pair->calls;
            primitive += pair->primitive_calls;
        }
        assert_int_equal(calls, function->calls); // it is never a root
        assert_int_equal(primitive, function->primitive_calls);
    }
    assert_int_equal(self_ns, 2050);
    gp_function_table_free(table);
    drop(&fixture);
}

static void test_snapshot(void **state)
{
    (void)state;
    static const gp_module_info_t module = {.id = 3, .path = "/opt/app/server"};
    static const gp_snapshot_node_t nodes[] = {
        {0},
        {.loc = GP_LOC(3, 0x10), .parent = 0},
        {.loc = GP_LOC(3, 0x20), .parent = 1, .weight_ns = 30, .samples = 3},
        {.loc = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_SWITCHING), .parent = 1, .weight_ns = 10, .samples = 1},
    };
    static const uint64_t counters[] = {4, 4};
    const gp_snapshot_t snapshot = {
        .nodes = nodes,
        .node_count = 4,
        .modules = &module,
        .module_count = 1,
        .total_ns = 80,
        .sampled_ns = 40,
        .samples = 4,
        .counters = counters,
        .counter_count = 2,
        .name = "request",
    };
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    gp_report_t *report = gp_report_from_snapshot(&snapshot, 0, symbolizer);
    assert_non_null(report);
    assert_string_equal(report->title, "request");
    assert_int_equal(report->row_count, 2);
    assert_int_equal(report->rows[0].weight_ns, 60);
    assert_int_equal(report->rows[1].weight_ns, 20);
    assert_int_equal(report->rows[0].depth, 2);
    assert_string_equal(report->frames[report->rows[0].frames[0]].function, "server+0x10");
    assert_string_equal(report->frames[report->rows[0].frames[1]].function, "server+0x20");
    assert_string_equal(report->frames[report->rows[1].frames[1]].function, "[switching]");
    assert_true(report->frames[report->rows[1].frames[1]].pseudo);
    gp_report_free(report);
    gp_symbolizer_destroy(symbolizer);
}

static void test_functions_of_runtimes(void **state)
{
    static const char *const theirs[] = {
        "void boost::context::detail::fiber_entry<boost::context::detail::fiber_record<A, main::{lambda()#1}> >(B)",
        "decltype ((f)((declval<int>)())) boost::context::detail::apply<int (*)(int)>(int (*)(int))",
        "std::_Bind<boost::context::fiber (app::worker::*(app::worker*))()>::operator()()",
        "boost::coroutines::detail::push_coroutine_object<A, void (*)(int)>::run()",
        "boost::fibers::context const* boost::fibers::f<(a)1, b->c>(int)",
        "folly::fibers::FiberImpl<folly::fibers::Fiber>::fiberFunc(boost::context::detail::transfer_t)",
        "libboost_fiber.so.1.74.0+0xb4d0",
    };
    static const char *const own[] = {
        "heavy_producer(boost::coroutines2::detail::push_coroutine<int>&)",
        "main::{lambda(std::string)#1}::operator()(std::string) const",
        "std::vector<boost::fibers::fiber> app::start<int>(int)",
        "(anonymous namespace)::f(boost::context::fiber)",
        "app::boost::context::f()",
        "decltype (",
        "operator>",
        "work",
        "",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++)
        assert_true(gp_report_is_runtimes(theirs[i]));
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        assert_false(gp_report_is_runtimes(own[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_process),
        cmocka_unit_test(test_coroutine_filter_uses_ledger),
        cmocka_unit_test(test_trace_filter),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_no_samples),
        cmocka_unit_test(test_dataset),
        cmocka_unit_test(test_function_table),
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_functions_of_runtimes),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
