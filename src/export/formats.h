// SPDX-License-Identifier: MIT
// The export formats, by name: X(name, suffix of its files, is_binary, what it wants of a report, description). A
// format is its row and NAME.c, which defines gp_NAME_write(); see gp_exporter_t in report/report.h.
#pragma once

#include "report/report.h"

// CMakeLists.txt reads the names.
// clang-format off
#define GP_FORMATS(X)                                                                                                  \
    X(callgrind, ".callgrind", false, 0, "callgrind: callgrind_annotate, KCachegrind, QCachegrind")                    \
    X(chrome, ".trace.json", false, GP_WANT_TIMELINE, "Chrome trace: Perfetto, chrome://tracing; a track a coroutine") \
    X(firefox, ".firefox.json", false, GP_WANT_HEAVIEST, "Firefox Profiler's JSON; one thread a coroutine")            \
    X(flamegraph, ".svg", false, 0, "flame graph, one SVG file that needs nothing else")                               \
    X(folded, ".folded", false, 0, "folded stacks, one line a stack, whole microseconds")                              \
    X(html, ".html", false, GP_WANT_PAGE, "one page: flame graph, timeline, requests, critical path, blame")            \
    X(json, ".json", false, GP_WANT_LABELS | GP_WANT_ADDRESSES, "everything, for programs: greenprof's own JSON")      \
    X(otlp, ".otlp", true, GP_WANT_LABELS | GP_WANT_ADDRESSES,                                                         \
      "OpenTelemetry profiles (protobuf), with links to traces")                                                       \
    X(pprof, ".pb.gz", true, GP_WANT_LABELS | GP_WANT_ADDRESSES | GP_WANT_TOGETHER,                                    \
      "pprof: go tool pprof, Speedscope, Grafana; with labels")                                                        \
    X(pstats, ".prof", true, 0, "Python's pstats: python3 -m pstats, SnakeViz, gprof2dot")                             \
    X(speedscope, ".speedscope.json", false, GP_WANT_HEAVIEST, "Speedscope's JSON; one profile a coroutine")
// clang-format on

#define GP_FORMAT_WRITE(name, suffix, is_binary, wants, description)                                                   \
    int gp_##name##_write(const gp_report_t *report, FILE *out);
GP_FORMATS(GP_FORMAT_WRITE)
#undef GP_FORMAT_WRITE

// The format that a file's name asks for by its end (".pb.gz", in either case); NULL = it asks for none of these.
const gp_exporter_t *gp_exporter_of_file(const char *path);

// Does a file's name end in what looks like a suffix, ".png", not like a number or a hidden file's name?
bool gp_exporter_has_suffix(const char *path);
