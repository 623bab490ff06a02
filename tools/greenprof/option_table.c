// SPDX-License-Identifier: MIT
// The tables: commands, and their options in the order of help texts.
#include <greenprof/prof.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/engines.h"
#include "options.h"
#include "ship_destinations.h"

const gp_command_t gp_commands[GP_COMMAND_COUNT + 1] = {
    [GP_COMMAND_RUN] = {.name = "run",
                        .also = "record",
                        .synopsis = "[--] PROGRAM [ARGUMENT...]",
                        .what = "run a program and record where its CPU time goes",
                        .missing = "missing PROGRAM",
                        .operands_min = 1,
                        .operands_max = INT32_MAX,
                        .hint = GP_HINT_PROGRAM,
                        .rest_is_program = true},
    [GP_COMMAND_REPORT] = {.name = "report",
                           .synopsis = "FILE...",
                           .what = "show a capture as a table",
                           .missing = "missing FILE",
                           .operands_max = INT32_MAX,
                           .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_EXPORT] = {.name = "export",
                           .synopsis = "FILE... --format FORMAT",
                           .what = "write a capture in another format",
                           .missing = "missing FILE",
                           .operands_min = 1,
                           .operands_max = INT32_MAX,
                           .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_FLAMEGRAPH] = {.name = "flamegraph",
                               .synopsis = "FILE...",
                               .what = "write a capture as a page (OUT.html), or as one flame graph (SVG)",
                               .missing = "missing FILE",
                               .operands_min = 1,
                               .operands_max = INT32_MAX,
                               .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_MERGE] = {.name = "merge",
                          .synopsis = "FILE FILE... --output OUT",
                          .what = "make one capture of several",
                          .missing = "missing FILE: two or more",
                          .operands_min = 2,
                          .operands_max = INT32_MAX,
                          .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_RECOVER] = {.name = "recover",
                            .synopsis = "FILE...",
                            .what = "give the capture of a program that was killed its end, and what it was doing",
                            .missing = "missing FILE",
                            .operands_min = 1,
                            .operands_max = INT32_MAX,
                            .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_DIFF] = {.name = "diff",
                         .synopsis = "BASE FILE",
                         .what = "compare two captures, or two parts of one",
                         .missing = "missing BASE and FILE",
                         .operands_min = 1,
                         .operands_max = 2,
                         .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_TRACE] = {.name = "trace",
                          .synopsis = "list|show|headers [ID] SOURCE...",
                          .what = "list traces, show one as a tree of calls, or sign the headers that begin one",
                          .missing = "missing list, show or headers",
                          .operands_min = 1,
                          .operands_max = INT32_MAX,
                          .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_INFO] = {.name = "info",
                         .synopsis = "FILE...",
                         .what = "show what is in a capture, and what is missing",
                         .missing = "missing FILE",
                         .operands_min = 1,
                         .operands_max = INT32_MAX,
                         .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_RUNTIMES] = {.name = "runtimes",
                             .synopsis = "[PROGRAM|PID]",
                             .what = "show which coroutine runtimes are hooked, and which a program has",
                             .operands_max = 1,
                             .hint = GP_HINT_PROGRAM},
    [GP_COMMAND_COROUTINES] = {.name = "coroutines",
                               .synopsis = "FILE|PID",
                               .what = "show the live coroutines of a capture's end, or of a process now",
                               .missing = "missing FILE or PID",
                               .operands_min = 1,
                               .operands_max = 1,
                               .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_ATTACH] = {.name = "attach",
                           .synopsis = "PID",
                           .what = "record in a process that was started without greenprof",
                           .missing = "missing PID",
                           .operands_min = 1,
                           .operands_max = 1},
    [GP_COMMAND_DETACH] = {.name = "detach",
                           .synopsis = "PID",
                           .what = "end what attach began, and leave the process as it was",
                           .missing = "missing PID",
                           .operands_min = 1,
                           .operands_max = 1},
    [GP_COMMAND_START] = {.name = "start",
                          .synopsis = "PID",
                          .what = "start recording in a running process",
                          .missing = "missing PID",
                          .operands_min = 1,
                          .operands_max = 1},
    [GP_COMMAND_STOP] = {.name = "stop",
                         .synopsis = "PID",
                         .what = "stop recording in a running process",
                         .missing = "missing PID",
                         .operands_min = 1,
                         .operands_max = 1},
    [GP_COMMAND_DUMP] = {.name = "dump",
                         .synopsis = "PID",
                         .what = "have everything recorded so far in the capture, and go on",
                         .missing = "missing PID",
                         .operands_min = 1,
                         .operands_max = 1},
    [GP_COMMAND_STATUS] = {.name = "status",
                           .synopsis = "PID",
                           .what = "show whether a running process is recorded, and where",
                           .missing = "missing PID",
                           .operands_min = 1,
                           .operands_max = 1},
    [GP_COMMAND_TOP] = {.name = "top",
                        .synopsis = "PID",
                        .what = "show what the coroutines of a running process do, now",
                        .missing = "missing PID",
                        .operands_min = 1,
                        .operands_max = 1},
    [GP_COMMAND_SYMBOLIZE] = {.name = "symbolize",
                              .synopsis = "FILE...|URL",
                              .what = "find names, later, for code that had none",
                              .missing = "missing FILE",
                              .operands_min = 1,
                              .operands_max = INT32_MAX,
                              .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_SHIP] = {.name = "ship",
                         .synopsis = "[DIR|FILE]... --to URL",
                         .what = "send captures, also while they are written, to a store of many hosts",
                         .missing = "missing DIR or FILE",
                         .operands_min = 1,
                         .operands_max = INT32_MAX,
                         .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_VIEW] = {.name = "view",
                         .synopsis = "FILE...",
                         .what = "write a capture as a page, and open it in a browser",
                         .missing = "missing FILE",
                         .operands_min = 1,
                         .operands_max = INT32_MAX,
                         .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_EXPLAIN] = {.name = "explain",
                            .synopsis = "FILE|PID [REQUEST]",
                            .what = "say in sentences what made a program slow, and where",
                            .missing = "missing FILE or PID",
                            .operands_min = 1,
                            .operands_max = 2,
                            .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_MCP] = {.name = "mcp",
                        .synopsis = "FILE|PID...",
                        .what = "answer an agent by the Model Context Protocol, on standard input and output",
                        .missing = "missing FILE or PID",
                        .operands_min = 1,
                        .operands_max = 64,
                        .hint = GP_HINT_CAPTURE},
    [GP_COMMAND_HELP] = {.name = "help",
                         .synopsis = "[COMMAND]",
                         .what = "show the options of a command",
                         .operands_max = 1,
                         .hint = GP_HINT_COMMAND},
};

// clang-format off: a row an option
#define FLAG(field)   .kind = GP_OPTION_FLAG, .offset = offsetof(gp_arguments_t, field)
#define TEXT(field)   .kind = GP_OPTION_TEXT, .offset = offsetof(gp_arguments_t, field)
#define TEXTS(field)  .kind = GP_OPTION_TEXTS, .offset = offsetof(gp_arguments_t, field)
#define REGEX(field)  .kind = GP_OPTION_REGEX, .offset = offsetof(gp_arguments_t, field)
#define NUMBER(field) .kind = GP_OPTION_NUMBER, .offset = offsetof(gp_arguments_t, field)

enum {
    RUN = GP_OPTION_OF(GP_COMMAND_RUN),
    REPORT = GP_OPTION_OF(GP_COMMAND_REPORT),
    EXPORT = GP_OPTION_OF(GP_COMMAND_EXPORT),
    FLAMEGRAPH = GP_OPTION_OF(GP_COMMAND_FLAMEGRAPH),
    VIEW = GP_OPTION_OF(GP_COMMAND_VIEW),
    WRITING = EXPORT | FLAMEGRAPH | VIEW,
    DIFF = GP_OPTION_OF(GP_COMMAND_DIFF),
    TABLES = REPORT | DIFF,
    READING = REPORT | WRITING | DIFF,
    MERGE = GP_OPTION_OF(GP_COMMAND_MERGE),
    RECOVER = GP_OPTION_OF(GP_COMMAND_RECOVER),
    INFO = GP_OPTION_OF(GP_COMMAND_INFO),
    TRACE = GP_OPTION_OF(GP_COMMAND_TRACE),
    COROUTINES = GP_OPTION_OF(GP_COMMAND_COROUTINES),
    ATTACH = GP_OPTION_OF(GP_COMMAND_ATTACH),
    DETACH = GP_OPTION_OF(GP_COMMAND_DETACH),
    START = GP_OPTION_OF(GP_COMMAND_START),
    STOP = GP_OPTION_OF(GP_COMMAND_STOP),
    DUMP = GP_OPTION_OF(GP_COMMAND_DUMP),
    STATUS = GP_OPTION_OF(GP_COMMAND_STATUS),
    TOP = GP_OPTION_OF(GP_COMMAND_TOP),
    SYMBOLIZE = GP_OPTION_OF(GP_COMMAND_SYMBOLIZE),
    SHIP = GP_OPTION_OF(GP_COMMAND_SHIP),
    EXPLAIN = GP_OPTION_OF(GP_COMMAND_EXPLAIN),
    MCP = GP_OPTION_OF(GP_COMMAND_MCP),
    LIVE = EXPLAIN | ATTACH | DETACH | START | STOP | DUMP | STATUS | TOP | COROUTINES, // takes a PID
    EVERY = EXPLAIN | MCP | RUN | READING | MERGE | RECOVER | INFO | TRACE | COROUTINES | ATTACH | DETACH | START |
            STOP | DUMP | STATUS | TOP | SHIP | SYMBOLIZE | GP_OPTION_OF(GP_COMMAND_RUNTIMES) |
            GP_OPTION_OF(GP_COMMAND_HELP),
};

const gp_option_t gp_options[] = {
    {RUN, 'o', "output", "FILE", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Capture to write (default: PROGRAM.greenprof in this directory). %p stands for the "
             "process id; children write FILE.PID unless it is there."},
    {RUN, 'F', "frequency", "HZ", NUMBER(frequency_hz), .setting = "FREQUENCY", .lo = 1, .hi = PROF_FREQUENCY_MAX_HZ,
     .what =
         "Samples a second of CPU time and thread (default: at most 1000, and as many as keep what greenprof takes, "
         "signals included, within 2 % of the program's CPU time)."},
    {RUN, 0, "clock", NULL, TEXT(clock), .setting = "CLOCK", .choices = "cpu|wall",
     .what = "What reports of the capture show by default: CPU time (cpu), or the wall clock: on the "
             "CPU, ready and parked. The capture has both."},
    {RUN | START | ATTACH, 0, "budget", "PERCENT", TEXT(budget), .setting = "BUDGET",
     .what = "What greenprof may take of the program's CPU time, from 0.1% to 50%: samples become fewer, down to 10 a "
             "second, until it is kept, and no weight changes (default: as of --frequency)."},
    {RUN, 0, "engine", NULL, TEXT(engine), .setting = "ENGINE", .choices = GP_ENGINE_CHOICES,
     .what = "What drives the samples (default: the first of them that works)."},
    {RUN, 0, "depth", "FRAMES", NUMBER(depth), .setting = "DEPTH", .lo = 2, .hi = 512,
     .what = "Frames kept of a stack: of a deeper one, its leaf and root end (default 512)."},
    {RUN, 0, "native", NULL, FLAG(native), .setting = "NATIVE", .set_to = "1",
     .what = "Python programs: show native frames among the Python ones."},
    {RUN, 0, "exact", NULL, FLAG(exact), .setting = "MODE", .set_to = "exact",
     .what = "Count every call of functions compiled with -finstrument-functions, besides sampling."},

    {RUN, 'q', "quiet", NULL, FLAG(quiet),
     .what = "Say nothing at the end, unless not all could be recorded. Else the last line on standard error has "
             "the capture's name, its samples, what was lost, and the command that shows it."},
    {RUN, 0, "max-size", "SIZE", TEXT(max_size), .setting = "MAX_SIZE",
     .what = "Stop recording before the capture is larger; the program runs on, and 'greenprof report' says so. A "
             "number of bytes, or one with K, M or G behind it; each process has a capture of its own (default: no "
             "limit)."},
    {RUN, 0, "memory-limit", "SIZE", TEXT(memory_limit), .setting = "MEMORY_LIMIT",
     .what = "What tables and buffers of the recording may have at most, from 16M on (default 64M): what they forget, "
             "and what finds no room while the disk is slow, is counted."},
    {RUN | START | ATTACH, 0, "flush", "MS", NUMBER(flush_ms), .setting = "FLUSH_MS", .lo = 5, .hi = 60000,
     .what = "Milliseconds after which what happened is in the file: so much is lost at most when the program is "
             "killed (default: 250); then 'greenprof recover'."},
    {RUN | START | ATTACH, 0, "spans", "CLIENT[,...]", TEXT(spans), .setting = "SPANS",
     .what = "Libraries with calls that become spans of the request that makes them: sqlite, pymongo, ...; all (the "
             "default), none, or @FILE; with -NAME in the list it is a change of what holds. start switches them also "
             "where it records already."},
    {RUN, 0, "rotate", "SIZE|TIME", TEXT(rotate), .setting = "ROTATE",
     .what = "Put the capture aside when it is about as large (500M) or as old (30s, 10m, 6h), or 500M,6h for what "
             "comes first, and begin another one: of FILE.greenprof there are FILE-0001.greenprof, "
             "FILE-0002.greenprof, ... then, and FILE.greenprof is the latest."},
    {RUN, 0, "rotate-signal", "SIGNAL", TEXT(rotate_signal), .setting = "ROTATE_SIGNAL",
     .what = "Do the same whenever the program gets this signal, as USR1: 'kill -USR1 PID' from logrotate. The program "
             "must not handle it itself."},
    {RUN, 0, "keep", "N", NUMBER(keep), .setting = "KEEP", .lo = 1, .hi = 1000000,
     .what = "Of captures that were put aside keep the latest N, also of earlier runs (default: all)."},
    {RUN, 0, "keep-size", "SIZE", TEXT(keep_size), .setting = "KEEP_SIZE",
     .what =
         "Of captures that were put aside, of all programs in the directory, remove the oldest where they have more "
         "than this together: 2G (default: no limit)."},
    {RUN, 0, "slow", "OPTIONS,DIR", TEXT(slow),
     .what = "Of each slow request, and of each that hangs, a folder in DIR, after the fact: profiles, critical path, "
             "page, times. OPTIONS: over=250ms, or over=p99 for what is slower than 99 % of its endpoint's; stuck=5s "
             "for what has been open for so long; keep=100 of them. Without --rotate the captures beside it are the "
             "last 6 minutes (--rotate 1m --keep 5)."},
    {RUN, 0, "control", NULL, FLAG(control), .setting = "CONTROL", .set_to = "1",
     .what = "Let recording be switched while the program runs: greenprof start, stop, dump, status and top."},
    {MCP, 0, "control", NULL, FLAG(control),
     .what = "Let the agent start, stop and dump the recording of the processes named; without, all that it can do is "
             "read."},
    {RUN, 0, "stopped", NULL, FLAG(stopped), .setting = "CONTROL", .set_to = "stopped",
     .what = "The same, and record nothing before 'greenprof start PID' says so."},
    {RUN, 0, "follow", NULL, TEXT(follow), .setting = "FOLLOW", .choices = "programs|all|exec|none",
     .what = "Which processes: programs that it starts, but no shells and launchers (the default); "
             "all of them; its own process only, also as another program (exec); none but the "
             "program itself."},
    {RUN, 0, "follow-name", "PATTERN", TEXT(follow_name), .setting = "FOLLOW_NAME",
     .what = "Only processes with an executable name that matches this shell pattern."},
    {RUN, 0, "patch", "RUNTIME[,...]", TEXT(patch),
     .what = "Hook runtimes that are linked into the program by changing their functions' first "
             "instructions in memory as it starts: auto (the default: those with symbols), none, or "
             "names. 'greenprof runtimes' lists them; 'greenprof runtimes PROGRAM' says which it has."},

    {EXPORT, 'f', "format", "FORMAT", TEXT(format), .hint = GP_HINT_FORMAT,
     .what = "What to write; without it the suffix of OUT says so. One of:"},
    {EXPORT | FLAMEGRAPH, 'o', "output", "OUT", TEXT(output), .hint = GP_HINT_FILE,
     .what = "File to write; '-', the default, is standard output."},

    {VIEW, 'o', "output", "OUT.html", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Page to write (default: FILE.html beside it, or in TMPDIR where that cannot be written)."},

    {MERGE, 'o', "output", "OUT", TEXT(output), .hint = GP_HINT_FILE, .what = "Capture to write."},
    {RECOVER, 'o', "output", "OUT", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Capture to write, of one FILE (default: of FILE.greenprof, FILE-recovered.greenprof)."},

    {REPORT, 's', "sort", "KEY[,KEY...]", TEXT(sort), .hint = GP_HINT_SORT,
     .what = "Order of the rows: tottime (the default), or several of these keys; a unique "
             "beginning is enough. Of coroutines and traces also a column: wall, cpu, blocked, preempted, ready, "
             "parked, waiting, gil, lock, queued, longest or switches. Keys:"},
    {DIFF, 'o', "output", "OUT.html", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Write a differential flame graph instead of the table: one HTML file in which colour "
             "is change."},
    {DIFF, 0, "per", NULL, TEXT(per), .choices = "total|second|trace|none",
     .what = "What makes the two comparable: each side's share of its own total (the default), CPU "
             "time a second of its duration, CPU time a trace, or none: CPU time as it is."},
    {DIFF, 's', "sort", NULL, TEXT(order), .choices = "own|total|significance|name",
     .what = "Order of the rows: by the change of a function's own time (the default of captures), by that of "
             "its time with all it calls, by the larger |z| of the two (the default of stores), or by name."},
    {DIFF, 0, "by", NULL, TEXT(by), .choices = "function|stack|endpoint",
     .what = "What is compared: functions (the default), whole stacks, or requests by endpoint: latency, CPU, waits, "
             "switches."},
    {TABLES, 'n', "rows", "N", NUMBER(rows), .hi = UINT32_MAX, .standard = 40, .what = "Show N rows, 0 = all."},
    {TABLES, 'r', "restrict", "R", TEXTS(restrictions),
     .what = "Show only some of the rows: R is a number of rows, a fraction of them such as .1, or "
             "an extended regular expression that their names must match. May be repeated: each "
             "restricts what the one before has left, -n last."},
    {REPORT, 0, "callers", "R", TEXTS(callers),
     .what = "Show the callers of the functions that R leaves; R as for -r, often a regular "
             "expression."},
    {REPORT, 0, "callees", "R", TEXTS(callees), .what = "Show the callees of the functions that R leaves."},
    {COROUTINES, 'n', "rows", "N", NUMBER(rows), .hi = UINT32_MAX, .standard = 40, .what = "Show N stacks, 0 = all."},
    {COROUTINES, 'm', "members", "N", NUMBER(members), .hi = UINT32_MAX, .standard = 10,
     .what = "Show N coroutines of each stack, the longest in their state first; 0 = all."},
    {COROUTINES, 'o', "output", "OUT", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Of a process: keep the census in this file, which this command reads later."},
    {COROUTINES, 'j', "json", NULL, FLAG(json), .what = "Write JSON: every chosen coroutine."},
    {ATTACH, 'o', "output", "FILE", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Capture to write (default: PID.greenprof in this directory); the process itself writes it, as its user."},
    {ATTACH, 'd', "duration", "SECONDS", NUMBER(duration_s), .lo = 1, .hi = 86400,
     .what = "Detach after so long, or at Ctrl-C (default: return at once, 'greenprof detach PID' ends it)."},
    {ATTACH, 0, "native", NULL, FLAG(native), .what = "Python programs: show native frames among the Python ones."},
    {START, 'o', "output", "FILE", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Capture to write; the process itself writes it, as its user. %p stands for the process id; children "
             "write FILE.PID unless it is there (default: what the process was started with, and a number behind it "
             "where that is there)."},
    {ATTACH, 'F', "frequency", "HZ", NUMBER(frequency_hz), .lo = 1, .hi = PROF_FREQUENCY_MAX_HZ,
     .what = "Samples a second of CPU time and thread (default: at most 1000, within 2 % of the program's CPU time)."},
    {START, 'F', "frequency", "HZ", NUMBER(frequency_hz), .lo = 1, .hi = PROF_FREQUENCY_MAX_HZ,
     .what = "Samples a second of CPU time and thread (default: what the process was started with)."},
    {ATTACH | START, 0, "clock", NULL, TEXT(clock), .choices = "cpu|wall",
     .what = "What reports of the capture show by default. The capture has both."},
    {DUMP, 'o', "output", "OUT", TEXT(output), .hint = GP_HINT_FILE,
     .what = "Copy it to this file; without, the capture itself has everything up to now."},
    {DUMP, 0, "slow", "[OPTIONS,]DIR", TEXT(slow),
     .what = "Of each request that is open now a folder in DIR: what each coroutine waits for, and where its time "
             "went; with over=250ms of those that were slow as well. OPTIONS as of run --slow."},
    {TOP, 's', "sort", NULL, TEXT(order), .choices = "cpu|ready|parked|longest",
     .what = "Order of the rows: by CPU time in the interval (the default), by the time ready or parked in it, or by "
             "the longest slice so far. The keys c, r, p and l change it, q ends."},
    {TOP, 'n', "rows", "N", NUMBER(rows), .hi = UINT32_MAX, .standard = 40, .what = "Show N rows, 0 = all."},
    {TOP, 0, "interval", "MS", NUMBER(interval_ms), .lo = 10, .hi = 55000, .standard = 1000,
     .what = "Milliseconds between two pages."},
    {TOP, 0, "once", NULL, FLAG(once), .what = "Show one interval, then end."},
    {STATUS | TOP, 'j', "json", NULL, FLAG(json), .what = "Write JSON; top: an object a line and interval."},
    {READING, 0, "service", "NAME", TEXTS(service), .chooses = true,
     .what = "Of a store (clickhouse://...): only this service, or these; so with the next four. See greenprof ship."},
    {READING, 0, "host", "NAME", TEXTS(host), .chooses = true, .what = "See --service."},
    {READING, 0, "version", "NAME", TEXTS(version), .chooses = true, .what = "See --service."},
    {READING, 0, "endpoint", "NAME", TEXTS(endpoint), .chooses = true, .what = "See --service."},
    {READING, 0, "label", "KEY=VALUE", TEXTS(label), .chooses = true,
     .what = "Only processes with this label; several: with all of them."},

    {REPORT, 0, "by", NULL, TEXT(by),
     .choices =
         "function|coroutine|thread|trace|request|critical-path|victim-time|pool|lock|service|host|version|endpoint",
     .what = "What the rows are. request: requests, the slowest first, and percentiles of their latency. "
             "lock: locks, by how long was waited for each, with the code that held it. "
             "critical-path: functions, by how much of the latency of requests they are: each moment of a "
             "request counts once. victim-time: functions, by how long others were ready and had to "
             "wait while they kept the thread for 10 ms or more (GREENPROF_HOG_MS). pool: pools of threads, "
             "their queues, and the functions that held their workers."},
    {WRITING, 0, "by", NULL, TEXT(by),
     .choices = "coroutine|trace|critical-path|victim-time|service|host|version|endpoint",
     .what = "Put the coroutine or the trace at the root of every stack. critical-path: weigh stacks by how "
             "much of the latency of requests they are; --trace chooses which requests. victim-time: weigh stacks by "
             "how long others had to wait for them; --trace and the like choose which others."},

    {DIFF, 0, "base-trace", "ID", TEXTS(base_choice.traces),
     .what = "The options --base-... choose the base where it is not chosen as FILE is; with them, "
             "one FILE is enough: two parts of it are compared."},
    {DIFF, 0, "base-coroutine", "ID", TEXTS(base_choice.coroutines), .what = "See --coroutine."},
    {DIFF, 0, "base-name", "REGEX", REGEX(base_choice.names), .what = "See --name."},
    {DIFF, 0, "base-thread", "NAME|TID", TEXTS(base_choice.threads), .what = "See --thread."},
    {DIFF, 0, "base-from", "TIME", TEXT(base_choice.from), .what = "See --from."},
    {DIFF, 0, "base-to", "TIME", TEXT(base_choice.to), .what = "See --to."},

    {READING | COROUTINES, 0, "trace", "ID", TEXTS(choice.traces), .chooses = true,
     .what = "Only what ran for this trace: 32 hex digits, a UUID or a traceparent. This option "
             "and those that follow may be repeated: several of one kind select what matches "
             "any of them, different kinds what matches all."},
    {READING | COROUTINES, 0, "coroutine", "ID", TEXTS(choice.coroutines), .chooses = true,
     .what = "Only the coroutine of this number."},
    {READING | COROUTINES, 0, "name", "REGEX", REGEX(choice.names), .chooses = true,
     .what = "Only coroutines with a name that matches this extended regular expression."},
    {READING, 0, "thread", "NAME|TID", TEXTS(choice.threads), .chooses = true,
     .what = "Only what ran on threads of this name or thread id."},
    {READING | EXPLAIN, 0, "from", "TIME", TEXT(choice.from), .chooses = true,
     .what = "Only from this moment on: seconds since the start, negative ones before the end, a "
             "date and time (2026-11-21T12:00:00Z; without a zone it is local), a time of day, or "
             "@SECONDS since 1970."},
    {READING | EXPLAIN, 0, "to", "TIME", TEXT(choice.to), .chooses = true, .what = "Only what is before this moment."},
    {READING, 0, "focus", "REGEX", REGEX(focus), .chooses = true,
     .what = "Only stacks in which the name, file or module of a function matches this extended "
             "regular expression; of several each must match."},
    {READING, 0, "ignore", "REGEX", REGEX(ignore), .chooses = true,
     .what = "Leave out stacks in which the name, file or module of a function matches."},
    {READING, 0, "clock", NULL, TEXT(clock), .choices = "cpu|wall", .chooses = true,
     .what = "CPU time, or the wall clock: on the CPU, off it, ready and parked, each marked by the "
             "last frame (default: what the capture was made for)."},

    {READING | EXPLAIN | MCP | TRACE | COROUTINES | SYMBOLIZE | SHIP, 0, "symfs", "DIR", TEXTS(symfs),
     .hint = GP_HINT_FILE,
     .what = "A directory that stands for the root directory of the profiled processes: of a container, /proc/PID/root "
             "or its unpacked image. Files that are not at their paths here, or are other builds, are looked for below "
             "it, and so are their debug files and /tmp/perf-PID.map."},
    {READING, 0, "stitch", NULL, FLAG(stitch),
     .what = "Put the stack at which a coroutine was created above its own, after it [spawned], and "
             "the one at which its creator was above that. --focus and --ignore look at all of it."},

    {WRITING, 0, "source", NULL, FLAG(source),
     .what = "html: show the lines of functions with their time, of source files that can be read here and now; the "
             "page then has parts of these files."},

    {TRACE, 0, "slowest", NULL, FLAG(slowest), .what = "show: the trace that took longest, instead of ID."},
    {TRACE, 0, "key", "FILE", TEXT(key), .hint = GP_HINT_FILE,
     .what =
         "headers: file with the key that signs (default: as of GREENPROF_HMAC_KEYS_FILE, or GREENPROF_HMAC_KEYS)."},
    {TRACE, 0, "html", NULL, FLAG(html),
     .what = "show: write one HTML page that needs nothing else: tree, waterfall, details, flame graphs."},
    {TRACE, 'j', "json", NULL, FLAG(json), .what = "Write JSON; that of show is a SOURCE as well."},
    {TRACE, 0, "dot", NULL, FLAG(dot), .what = "show: write the control flow as a graph for Graphviz."},
    {TRACE, 0, "chrome", NULL, FLAG(chrome), .what = "show: write Chrome's trace events, for Perfetto."},
    {TRACE, 0, "rally", NULL, FLAG(rally),
     .what = "Write charts for Rally: show for add_output(complete=...), list for a hook of the action sys_call."},
    {TRACE, 's', "sort", NULL, TEXT(order), .choices = "start|latency",
     .what = "list: the order, by start (the default), or the slowest first."},
    {TRACE, 'n', "rows", "N", NUMBER(rows), .hi = UINT32_MAX,
     .what = "list: show the first N traces in that order; 0, the default, is all."},
    {TRACE, 'o', "output", "OUT", TEXT(output), .hint = GP_HINT_FILE,
     .what = "File to write; '-', the default, is standard output."},

    {SYMBOLIZE, 0, "debuginfod", "URL[,URL...]", TEXT(debuginfod),
     .what = "Fetch debug files of what has no names from these servers of debuginfod, env = those of DEBUGINFOD_URLS. "
             "Without this option nothing is asked over the network."},

    {SHIP, 0, "to", "URL", TEXTS(to),
     .what = "Where to: " GP_DESTINATION_URLS "may be repeated: each destination gets all."},
    {SHIP, 0, "state", "DIR", TEXT(state), .hint = GP_HINT_FILE,
     .what = "Where it is written down what has arrived (default: $XDG_STATE_HOME/greenprof, else "
             "~/.local/state/greenprof)."},
    {SHIP, 0, "grain", "TIME", TEXT(grain),
     .what = "Samples that differ in nothing but their time are summed up over this time, whole seconds: 10s (the "
             "default), 1m."},
    {SHIP, 0, "interval", "TIME", TEXT(interval),
     .what = "How often it is looked for what is new (default: the grain)."},
    {SHIP, 0, "once", NULL, FLAG(once), .what = "Send what is there, then end."},
    {SHIP, 0, "dry-run", NULL, FLAG(dry_run),
     .what = "Show what would leave this host: tables, columns, examples, bytes; send nothing."},
    {SHIP, 0, "no-traces", NULL, FLAG(no_traces),
     .what = "Leave trace ids and spans out: fewer rows. Requests keep their endpoints and times."},
    {SHIP, 0, "with-info", NULL, FLAG(with_info),
     .what = "Send the program's arguments and the fields of spans (SQL texts, URLs), too."},
    {SHIP, 0, "rate", "ROWS", NUMBER(rate), .hi = UINT32_MAX,
     .what = "At most that many rows a second on average, to each destination; 0, the default, is any number."},
    {SHIP, 0, "bytes-per-second", "BYTES", NUMBER(bytes_per_second), .hi = INT64_MAX,
     .what = "At most that many bytes a second on average, to each destination; 0, the default, is any number."},

    {EXPLAIN | REPORT | INFO | DIFF | GP_OPTION_OF(GP_COMMAND_RUNTIMES), 'j', "json", NULL, FLAG(json),
     .what = "Write JSON: doc/json.md says what is in it."},
    {EXPLAIN, 0, "fail-on", "NAME>VALUE[,...]", TEXT(fail_on),
     .what = "Exit with status 3 where one of these holds, for tests: victim>1s, what others waited for long slices; "
             "p99>250ms, the latency of requests; findings>0, but for what the machine did; a kind of finding, by what "
             "it cost (held-loop>100ms) or "
             "how many there are (growing>0)."},
    {EXPLAIN, 0, "junit", "OUT", TEXT(junit), .hint = GP_HINT_FILE,
     .what =
         "Write what became of --fail-on as JUnit's XML: each condition is a test; without --fail-on, findings>0 is."},

    {INFO, 'v', "verbose", NULL, FLAG(verbose), .what = "List threads and modules, too."},

    {LIVE, 'p', "pid", "PID", TEXT(pid), .what = "The process: the same as PID without an option."},

    {EVERY, 'h', "help", NULL, FLAG(help), .what = "Show this help."},
    {0},
};
// clang-format on

const gp_command_t *gp_command_find(const char *name)
{
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        if (strcmp(command->name, name) == 0 || (command->also != NULL && strcmp(command->also, name) == 0))
            return command;
    return NULL;
}

bool gp_option_applies(const gp_option_t *option, const gp_command_t *command)
{
    return option->commands & GP_OPTION_OF(command - gp_commands);
}

const char *gp_option_value(const gp_option_t *option)
{
    return option->value != NULL ? option->value : option->choices;
}

const char *gp_option_text(const gp_option_t *option, char *text, size_t size)
{
    int len = snprintf(text, size, "%s", option->what);
    bool range = option->kind == GP_OPTION_NUMBER && option->hi < UINT32_MAX;
    bool standard = option->kind == GP_OPTION_NUMBER && option->standard != 0;
    if (range && len > 0 && (size_t)len < size)
        len += snprintf(text + len, size - (size_t)len, " %" PRIu64 " to %" PRIu64 "%s", option->lo, option->hi,
                        standard ? "," : ".");
    if (standard && len > 0 && (size_t)len < size)
        snprintf(text + len, size - (size_t)len, " %s%" PRIu64 ".", range ? "default " : "Default: ", option->standard);
    return text;
}
