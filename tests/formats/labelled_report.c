// SPDX-License-Identifier: MIT
#include "labelled_report.h"

#include "model/counters.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROW(owner, weight, count, ...)                                                                                 \
    {                                                                                                                  \
        .frames = (const uint32_t[]){__VA_ARGS__}, .depth = COUNT(((const uint32_t[]){__VA_ARGS__})),                  \
        .weight_ns = weight, .samples = count, .label = owner                                                          \
    }

#define SERVER "/opt/app/server"
#define EVIL   "]]></script><script>alert('1;2')</script>\n\"\\ \xff\xc3("

static const gp_report_mapping_t mappings[] = {
    {SERVER, 0x400000, 0x500000, "0123456789abcdef0123456789abcdef01234567"},
    {"/usr/lib/lib\xff;evil.so", 0x7fff00000000, 0x7fff00010000, ""},
};

static const gp_report_frame_t frames[] = {
    {"main", "/src/main.c", 31, 20, SERVER, false, false, 1, 0x400123},
    {"a", "/src/a.c", 5, 2, SERVER, false, false, 1, 0x400200},
    {"b", "/src/a.c", 12, 10, SERVER, false, false, 1, 0x400300},
    {"b", "/src/a.c", 13, 10, SERVER, false, false, 1, 0x400310},
    // A single address: two functions inlined into `outer`.
    {"outer", "/src/in.c", 50, 40, SERVER, false, false, 1, 0x400400},
    {"middle", "/src/in.h", 9, 8, SERVER, false, true, 1, 0x400400},
    {"inner", "/src/in.h", 3, 1, SERVER, false, true, 1, 0x400400},
    {EVIL, "/usr/lib/lib\xff;evil.so", 0, 0, "/usr/lib/lib\xff;evil.so", false, false, 2, 0x7fff00000042},
    {"[switching]", "~", 0, 0, "", true, false, 0, 0},
    {"0x7f0000001000", "", 0, 0, "", false, false, 0, 0x7f0000001000},
};

static const gp_label_t labels[] = {
    {"[thread main]", 1, "main", 100, NULL, 0},
    {"fetch \"\xe6\x97\xa5\" </script>", 42, "worker;\n\xff", 101, "4bf92f3577b34da6a3ce929d0e0e4736", 0},
    {"fetch \"\xe6\x97\xa5\" </script>", 42, "main", 100, "00000000000000000000000000000001", 0},
    {"", 9007199254740993, "", 0, NULL, 0},
};

static const gp_report_row_t rows[] = {
    ROW(2, 400000000, 400, 0, 1, 2, 1, 3), // main a b a b: mutual recursion
    ROW(3, 200000000, 200, 0, 4, 5, 6),    // inlined
    ROW(1, 100000000, 100, 0, 1, 2),
    ROW(2, 100000000, 100, 0, 1, 2), // the same stack for another coroutine
    ROW(4, 50000000, 50, 0, 7),
    ROW(1, 40000000, 40, 0, 8),
    ROW(0, 9000000, 9, 9),
    ROW(2, 1, 1, 0),
};

// Counters of the golden files.
static const uint64_t counters[GP_COUNTER_POLL_MISFIT + 1] = {
    [GP_COUNTER_SIGNALS] = 903,
    [GP_COUNTER_SAMPLES] = 900,
    [GP_COUNTER_DROP_RING_FULL] = 3,
};

// A loop that wakes a coroutine it has spawned; the coroutine waits, runs in short slices, and ends.
static const gp_track_t tracks[] = {
    {"[thread main]", 1, GP_NO_TRACK, true, 0},
    {"[coroutine 42 fetch \"\xe6\x97\xa5\" </script>]", 42, 0, false, 100000},
    {"[coroutine 43 \xff]", 43, 1, false, 2000000},
};

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
static const gp_activity_t activities[] = {
    {.track = 0,
     .waker = GP_NO_TRACK,
     .start_ns = 0,
     .left_ns = 1000000,
     .end_ns = 5000000,
     .slice_ns = 1000000,
     .thread_id = 100,
     .thread_name = "main"},
    {.track = 0,
     .waker = GP_NO_TRACK,
     .start_ns = 5000000,
     .left_ns = 9000000,
     .end_ns = 9000000,
     .slice_ns = 4000000,
     .goes_on = true,
     .thread_id = 100,
     .thread_name = "main"},
    {.track = 1,
     .waker = 0,
     .start_ns = 100000,
     .left_ns = 100000,
     .end_ns = 1000000,
     .ready_ns = 500001,
     .is_ready_known = true,
     .thread_name = "",
     .trace = TRACE},
    {.track = 1,
     .waker = 2,
     .start_ns = 1000000,
     .left_ns = 5000000,
     .end_ns = 8000000,
     .slice_ns = 4000000,
     .ready_ns = 7000000,
     .is_ready_known = true,
     .thread_id = 100,
     .thread_name = "main",
     .trace = TRACE},
    {.track = 1,
     .waker = GP_NO_TRACK,
     .start_ns = 8000000,
     .left_ns = 8900000,
     .end_ns = 9000000,
     .slice_ns = 300000,
     .goes_on = true,
     .thread_id = 101,
     .thread_name = "worker;\n\xff",
     .trace = TRACE},
    {.track = 2, .waker = GP_NO_TRACK, .start_ns = 2000000, .left_ns = 2000000, .end_ns = 6000000, .thread_name = ""},
    {.track = 2,
     .waker = GP_NO_TRACK,
     .start_ns = 6000000,
     .left_ns = 7500000,
     .end_ns = 7500000,
     .slice_ns = 1500000,
     .goes_on = true,
     .thread_id = 101,
     .thread_name = "worker;\n\xff"},
};

static const gp_timeline_t timeline = {
    .pid = 4321,
    .tracks = tracks,
    .track_count = COUNT(tracks),
    .activities = activities,
    .activity_count = COUNT(activities),
};

const gp_report_t labelled_report = {
    .frames = frames,
    .frame_count = COUNT(frames),
    .rows = rows,
    .row_count = COUNT(rows),
    .labels = labels,
    .label_count = COUNT(labels),
    .mappings = mappings,
    .mapping_count = COUNT(mappings),
    .timeline = &timeline,
    .total_ns = 899000001,
    .sampled_ns = 890000000,
    .samples = 900,
    .duration_ns = 2500000000,
    .start_realtime_ns = 1790000000123456789,
    .frequency_hz = 1000,
    .title = "server </script> \xff",
    .counters = counters,
    .counter_count = COUNT(counters),
};
