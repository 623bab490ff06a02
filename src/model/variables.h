// SPDX-License-Identifier: MIT
// Environment variables of libgreenprof-core, GREENPROF_ID: X(ID, value, low, high, standard, sentence).
//   value      what stands for it in help texts, and what it must be: SIZE (low: the least), PERCENT, SIGNAL,
//   SIZE|TIME;
//              other words with bars: the values that there are; with high > 0, a number in [low, high]
//   standard   what holds where it is unset or not valid; NULL = nothing
#pragma once

#include "greenprof/prof.h"
#include "model/engines.h"
#include "model/size_limit.h"

// clang-format off
#define GP_SETTINGS(X)                                                                                                 \
    X(OUTPUT, "FILE", 0, 0, NULL,                                                                                      \
      "Capture to write. %p stands for the process id; children write FILE.PID unless it is there. Unset: nothing is " \
      "recorded.")                                                                                                     \
    X(FREQUENCY, "HZ", 1, PROF_FREQUENCY_MAX_HZ, "1000",                                                            \
      "Samples a second of CPU time and thread. Unset: fewer where greenprof would take more than 2 % of the "         \
      "program's CPU time.")                                                                                           \
    X(BUDGET, "PERCENT", 0, 0, NULL,                                                                                   \
      "What greenprof may take of the program's CPU time, from 0.1% to 50%: samples become fewer, down to 10 a "        \
      "second, until it is kept. Unset: as of GREENPROF_FREQUENCY.")                                                           \
    X(CLOCK, "cpu|wall", 0, 0, "cpu", "What reports of the capture show by default.")                       \
    X(ENGINE, GP_ENGINE_CHOICES, 0, 0, NULL, "What drives the samples. Unset: the first of them that works.")          \
    X(SIGNAL, "SIGNAL", 0, 0, NULL,                                                                                    \
      "Signal that takes the samples: PROF, ALRM, IO, PWR, STKFLT, URG, USR1, USR2, VTALRM, WINCH, or RTMIN to "       \
      "RTMAX. Unset: SIGPROF, or another one where the program handles that.")                                         \
    X(DEPTH, "FRAMES", 2, 512, "512", "Frames kept of a stack: of a deeper one, its leaf and root end.")               \
    X(NATIVE, "0|1", 0, 0, "0", "Python programs: 1 shows native frames among the Python ones.")                       \
    X(MODE, "sample|exact", 0, 0, "sample", "exact counts every call of instrumented functions, besides sampling.")    \
    X(HOG_MS, "MS", 0.001, 1000000, "10",                                                                              \
      "Milliseconds without a switch from which on a slice is recorded with its stacks.")                              \
    X(MAX_SIZE, "SIZE", 0, 0, NULL,                                                                                    \
      "Recording stops before the capture is larger: a number of bytes, or one with K, M or G behind it. Unset: no "   \
      "limit.")                                                                                                        \
    X(MEMORY_LIMIT, "SIZE", GP_MEMORY_LIMIT_LEAST, 0, "64M",                                                           \
      "What tables and buffers of the recording may have at most, from 16M on: what they forget, and what finds no "   \
      "room while the disk is slow, is counted.")                                                                      \
    X(FLUSH_MS, "MS", 5, 60000, "250",                                                                                 \
      "Milliseconds after which what happened is in the file: so much is lost at most when the process is killed.")    \
    X(ROTATE, "SIZE|TIME", 0, 0, NULL,                                                                                 \
      "When a capture is put aside and another one begun: 500M, 6h, or 500M,6h for what comes first. Of FILE.greenprof " \
      "there are FILE-0001.greenprof, FILE-0002.greenprof, ... then. Unset: never.")                                   \
    X(ROTATE_SIGNAL, "SIGNAL", 0, 0, NULL,                                                                             \
      "Signal at which a capture is put aside and another one begun: names as for GREENPROF_SIGNAL, not the same one.") \
    X(KEEP, "N", 0, 1000000, "0", "How many captures that were put aside are kept, the latest; 0: all.")               \
    X(KEEP_SIZE, "SIZE", 0, 0, NULL,                                                                                   \
      "What captures that were put aside may have together, those of all programs in the directory: the oldest go. "   \
      "Unset: no limit.")                                                                                              \
    X(FOLLOW, "programs|all|exec|none", 0, 0, "programs",                                                              \
      "Which processes: programs that it starts, but no shells and launchers; all of them; its own process only, "     \
      "also as another program (exec); none but the program itself.")                                                  \
    X(FOLLOW_NAME, "PATTERN", 0, 0, NULL, "Only processes with an executable name that matches this shell pattern.")   \
    X(PATCH, "RUNTIME[,...]", 0, 0, NULL,                                                                              \
      "Runtimes in the program itself to patch in memory, by name; auto: those recognized beyond doubt. Unset: none.") \
    X(POLL, "auto|none", 0, 0, "auto", "none: no runtime is asked at samples which coroutine runs.")                   \
    X(GREENLETS, "see|trace|read", 0, 0, "see",                                                                        \
      "How switches of greenlets are known: seen in greenlet itself, by a trace function, or read at samples.")        \
    X(SPANS, "CLIENT[,...]", 0, 0, NULL,                                                                               \
      "Libraries with calls that become spans of the request that makes them: sqlite, redis, ...; all; none; -NAME: "  \
      "all but this one; @FILE: as this file says, which is read again when it changes. Unset: all. Only where they "  \
      "are named: libcurl-headers and headers (of Python's clients): the trace goes with what is sent; osprofiler.")   \
    X(REQUESTS, "0|1", 0, 0, "1",                                                                                         \
      "Python programs: 1 makes each request of a web server a span, where the package greenprof can be imported.")     \
    X(CONTROL, "0|1|stopped", 0, 0, "0",                                                                               \
      "1: greenprof start, stop, dump, status and top can be used on the process, by its user and root. stopped: the " \
      "same, and nothing is recorded before it is started.")                                                           \
    X(TOGGLE_SIGNAL, "SIGNAL", 0, 0, NULL,                                                                             \
      "Signal that starts recording, or stops it: names as for GREENPROF_SIGNAL, not the same one.")                   \
    X(CENSUS, "FILE", 0, 0, NULL,                                                                                      \
      "Write all coroutines to this file when the program dies of a fatal signal; %p stands for the process id.")      \
    X(SERVICE, "NAME", 0, 0, NULL, "What the program is called where its spans go. Unset: the name of the executable.")  \
    X(LABELS, "K=V[,...]", 0, 0, NULL,                                                                                 \
      "Labels of the process, beside those of OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME: greenprof ship sends "   \
      "them. Unset: none.")                                                                                            \
    X(CONSUMER, "URL...", 0, 0, NULL,                                                                                  \
      "Where spans go while the program runs, with spaces between; programs with libgreenprof only.")                  \
    X(SPOOL, "DIRECTORY", 0, 0, NULL,                                                                                  \
      "Where spans that a consumer could not send are kept. Unset: /var/tmp/greenprof-UID.")                           \
    X(OTEL_CONTEXT, "0|1", 0, 0, "0",                                                                                  \
      "1 shows the trace and the span of what each thread runs to OpenTelemetry's readers outside of the process.")     \
    X(HMAC_KEYS, "KEY[,...]", 0, 0, NULL,                                                                              \
      "Keys of headers that may have a request profiled (programs with libgreenprof only), and of requests by "         \
      "greenprof start, stop, dump, status and top; the first one signs. The file is the better place.")             \
    X(HMAC_KEYS_FILE, "FILE", 0, 0, NULL, "A file with these keys, where GREENPROF_HMAC_KEYS is unset.")               \
    X(POLICY, "always|never|signed|1/N|slower=20ms", 0, 0, NULL,                                                       \
      "Which requests consumers get. Unset: signed where there are keys, else always.")                                \
    X(SESSION, "ID", 0, 0, NULL, "32 hex digits that all captures of one run share. Set by greenprof run.")            \
    X(PID, "PID", 1, 4194304, NULL,                                                                                    \
      "Process that writes the file itself; others append their process ids. Set by greenprof run.")                   \
    X(STARTED, "1", 0, 0, NULL, "The program of this run has started. Set by the library.")                            \
    X(SAY, "TEXT", 0, 0, NULL,                                                                                         \
      "What to say on standard error at the end, where that is still the same file. Set by greenprof run.")
// clang-format on
