// SPDX-License-Identifier: MIT
#include "example_report.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROW(weight, count, ...)                                                                                        \
    {                                                                                                                  \
        .frames = (const uint32_t[]){__VA_ARGS__}, .depth = COUNT(((const uint32_t[]){__VA_ARGS__})),                  \
        .weight_ns = weight, .samples = count                                                                          \
    }

#define FRAME(name, source, at, first, path, is_pseudo)                                                                \
    {                                                                                                                  \
        .function = name, .file = source, .line = at, .first_line = first, .module = path, .pseudo = is_pseudo         \
    }

static const gp_report_frame_t frames[] = {
    FRAME("main", "/src/app/main.c", 31, 20, "/opt/app/server", false),
    FRAME("main", "/src/app/main.c", 33, 20, "/opt/app/server", false),
    FRAME("parse<std::map<int, char const*> >(a; b)", "/src/app/parse.cc", 7, 5, "/opt/app/server", false),
    FRAME("na\xc3\xafve \"quoted\" <&>", "/src/na\xc3\xafve.c", 2, 1, "/usr/lib/libnaive.so.1", false),
    FRAME("broken \xff\xc3( \x1b[31m\nnewline", "/src/br\xffken.c", 0, 0, "/usr/lib/libbroken.so", false),
    FRAME("server+0x1234", "/opt/app/server", 0, 0, "/opt/app/server", false),
    FRAME("[switching]", "~", 0, 0, "", true),
    FRAME("[coroutine 2 \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e]", "~", 0, 0, "", true),
    FRAME("]]></script><script>alert(1)</script>", "/src/evil.c", 3, 3, "/opt/app/server", false),
    FRAME("clock_gettime", "[vdso]", 0, 0, "[vdso]", false),
    FRAME("fib", "/src/fib.c", 4, 2, "/opt/app/server", false),
};

static const gp_report_row_t rows[] = {
    ROW(500000000, 500, 7, 0, 10, 10, 10),
    ROW(300000400, 300, 7, 0, 10),
    ROW(100000400, 100, 7, 1, 2),
    ROW(60000400, 60, 7, 1, 3),
    ROW(20000400, 20, 7, 1, 4, 5),
    ROW(15000400, 15, 7, 1, 8, 9),
    ROW(4998000, 5, 7, 6),
    ROW(300, 0, 7, 1, 3, 9),
};

const gp_report_t example_report = {
    .frames = frames,
    .frame_count = COUNT(frames),
    .rows = rows,
    .row_count = COUNT(rows),
    .total_ns = 1000000300,
    .sampled_ns = 999000000,
    .samples = 1000,
    .duration_ns = 2500000000,
    .start_realtime_ns = 1790000000000000000,
    .frequency_hz = 1000,
    .title = "server <test> & \"quotes\"",
};

const gp_report_t empty_report = {.title = "empty"};

static const gp_report_row_t huge_rows[] = {ROW(9100000000000000000, 5000000000, 0, 10), ROW(7, 1, 0)};

const gp_report_t huge_report = {
    .frames = frames,
    .frame_count = COUNT(frames),
    .rows = huge_rows,
    .row_count = COUNT(huge_rows),
    .total_ns = 9100000000000000007,
    .samples = 5000000001,
    .title = "huge",
};

static const gp_report_frame_t odd_frames[] = {
    FRAME("main", "/src/main.c", 1, 1, "/opt/app/server", false),
    FRAME("ends in 12", "/src/main.c", 2, 2, "/opt/app/server", false),
    FRAME("ends in  1.5", "/src/main.c", 3, 3, "/opt/app/server", false),
    FRAME("12", "/src/main.c", 4, 4, "/opt/app/server", false),
    FRAME("a;b\t7", "/src/main.c", 5, 5, "/opt/app/server", false),
    FRAME("two\xe2\x80\xa8lines\xc2\x85 3.", "/src/main.c", 6, 6, "/opt/app/server", false),
};

static const gp_report_row_t odd_rows[] = {
    ROW(1000000, 1, 0, 1), ROW(1000000, 1, 0, 2), ROW(1000000, 1, 0, 3), ROW(1000000, 1, 0, 4),
    ROW(1000000, 1, 0, 5), ROW(1000000, 1, 3),    ROW(1000000, 1, 1, 1),
};

const gp_report_t odd_report = {
    .frames = odd_frames,
    .frame_count = COUNT(odd_frames),
    .rows = odd_rows,
    .row_count = COUNT(odd_rows),
    .total_ns = 7000000,
    .samples = 7,
    .title = "odd",
};
