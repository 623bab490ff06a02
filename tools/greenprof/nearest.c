// SPDX-License-Identifier: MIT
#include "nearest.h"

#include <stdbool.h>
#include <string.h>

enum { LETTERS_MAX = 31, LETTERS_AN_ERROR = 3 };

static size_t nearest_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Optimal string alignment: Levenshtein's distance, and neighbours exchanged count as one.
static size_t nearest_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[LETTERS_MAX + 1][LETTERS_MAX + 1];
    for (size_t i = 0; i <= a_len; i++)
        for (size_t j = 0; j <= b_len; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            size_t changed = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[i][j] = nearest_least(changed, nearest_least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = nearest_least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    return rows[a_len][b_len];
}

// Words of perf, py-spy, samply and others, and their meaning here: of any command, or of the command in the first
// column.
static const char *const meanings[][3] = {
    {"", "profile", "run"},
    {"", "exec", "run"},
    {"", "python", "run -- python3"},
    {"", "python3", "run -- python3"},
    {"", "open", "view"},
    {"", "show", "view"},
    {"", "web", "view"},
    {"", "ui", "view"},
    {"", "serve", "view"},
    {"", "load", "view"},
    {"", "html", "view"},
    {"", "annotate", "flamegraph FILE --source -o FILE.html"},
    {"", "svg", "flamegraph"},
    {"", "flame", "flamegraph"},
    {"", "graph", "flamegraph"},
    {"", "script", "export"},
    {"", "convert", "export"},
    {"", "speedscope", "export --format speedscope"},
    {"", "firefox", "export --format firefox"},
    {"", "perfetto", "export --format chrome"},
    {"", "pprof", "export --format pprof"},
    {"", "pstats", "export --format pstats"},
    {"", "collapse", "export --format folded"},
    {"", "stat", "run PROGRAM, then greenprof report FILE"},
    {"", "tree", "view"},
    {"", "heap", "run: time is recorded, allocations are not"},
    {"", "memory", "run: time is recorded, allocations are not"},
    {"", "alloc", "run: time is recorded, allocations are not"},
    {"", "stats", "report"},
    {"", "functions", "report"},
    {"", "hot", "report"},
    {"", "requests", "report --by request"},
    {"", "slow", "report --by request"},
    {"", "blame", "report --by victim-time"},
    {"", "threads", "report --by thread"},
    {"", "locks", "report --by lock"},
    {"", "lock", "report --by lock"},
    {"", "pools", "report --by pool"},
    {"", "gil", "explain"},
    {"", "why", "explain"},
    {"", "analyze", "explain"},
    {"", "summary", "explain"},
    {"", "sched", "report --clock wall"},
    {"", "timechart", "view"},
    {"", "collect", "attach"},
    {"", "strace", "trace"},
    {"", "kill", "detach"},
    {"", "evlist", "info"},
    {"", "completion", "--help"},
    {"", "compare", "diff"},
    {"", "combine", "merge"},
    {"", "join", "merge"},
    {"", "repair", "recover"},
    {"", "salvage", "recover"},
    {"", "symbols", "symbolize"},
    {"", "addr2line", "symbolize"},
    {"", "upload", "ship"},
    {"", "push", "ship"},
    {"", "list", "trace list"},
    {"", "ls", "trace list"},
    {"", "dump-stacks", "coroutines"},
    {"", "stacks", "coroutines"},
    {"", "backtrace", "coroutines"},
    {"", "bt", "coroutines"},
    {"", "ps", "coroutines"},
    {"", "fibers", "coroutines"},
    {"", "greenlets", "coroutines"},
    {"", "tasks", "coroutines"},
    {"", "watch", "top"},
    {"", "live", "top"},
    {"", "monitor", "top"},
    {"", "pid", "attach"},
    {"", "languages", "runtimes"},
    {"", "supported", "runtimes"},
    {"", "version", "--version"},
    {"", "-v", "--version"},
    {"", "man", "help"},
    {"*", "rate", "frequency"},
    {"*", "hz", "frequency"},
    {"*", "freq", "frequency"},
    {"*", "limit", "rows"},
    {"*", "top", "rows"},
    {"*", "lines", "rows"},
    {"*", "head", "rows"},
    {"*", "count", "rows"},
    {"*", "wall", "clock"},
    {"*", "wallclock", "clock"},
    {"*", "timeout", "duration"},
    {"*", "seconds", "duration"},
    {"*", "outfile", "output"},
    {"*", "out-file", "output"},
    {"*", "grep", "focus"},
    {"*", "match", "focus"},
    {"*", "include", "focus"},
    {"*", "exclude", "ignore"},
    {"*", "hide", "ignore"},
    {"*", "since", "from"},
    {"*", "start", "from"},
    {"*", "until", "to"},
    {"*", "end", "to"},
    {"*", "max-depth", "depth"},
    {"*", "subprocesses", "follow"},
    {"*", "children", "follow"},
    {"*", "fork", "follow"},
    {"*", "request", "trace"},
    {"*", "group-by", "by"},
    {"*", "silent", "quiet"},
    {"format", "perfetto", "chrome"},
    {"format", "svg", "flamegraph"},
    {"format", "page", "html"},
    {"format", "prof", "pstats"},
    {"format", "collapsed", "folded"},
    {"format", "protobuf", "pprof"},
    {"run", "p", "greenprof attach PID"},
    {"run", "pid", "greenprof attach PID"},
    {"run", "d", "timeout SECONDS greenprof run PROGRAM"},
    {"run", "duration", "timeout SECONDS greenprof run PROGRAM"},
    {"run", "timeout", "timeout SECONDS greenprof run PROGRAM"},
    {"run", "format", "greenprof export FILE --format FORMAT"},
    {"run", "f", "greenprof export FILE --format FORMAT"},
    {"run", "r", "-F HZ"},
    {"run", "c", "greenprof run -- python3 -c CODE; perf's -c is -F HZ"},
    {"run", "m", "greenprof run -- python3 -m MODULE"},
    {"run", "i", "-F HZ"},
    {"run", "interval", "-F HZ"},
    {"run", "--memory", "greenprof run PROGRAM: time is recorded, allocations are not"},
    {"run", "a", "greenprof attach PID"},
    {"run", "e", "--clock wall, or --engine"},
    {"run", "g", "greenprof run PROGRAM: stacks are always recorded"},
    {"run", "call-graph", "greenprof run PROGRAM: stacks are always recorded"},
    {"attach", "f", "greenprof export FILE --format FORMAT"},
    {"attach", "format", "greenprof export FILE --format FORMAT"},
    {"run", "gil", "--clock wall"},
    {"trace", "p", "greenprof attach PID"},
    {"trace", "pid", "greenprof attach PID"},
    {"flamegraph", "p", "greenprof attach PID"},
    {"flamegraph", "pid", "greenprof attach PID"},
    {"report", "-http", "greenprof view FILE"},
    {"report", "-top", "greenprof report FILE"},
    {"report", "p", "greenprof top PID"},
    {"report", "pid", "greenprof top PID"},
    {"report", "l", "-n ROWS"},
    {"report", "t", "-n ROWS"},
    {"report", "i", "greenprof report FILE"},
    {"report", "stdio", "greenprof report FILE"},
    {"report", "text", "greenprof report FILE"},
    {"report", "no-children", "--sort tottime"},
    {"report", "children", "--sort cumtime"},
    {"report", "g", "--callers"},
    {"report", "tree", "greenprof view FILE"},
    {"report", "flamegraph", "greenprof view FILE"},
    {"explain", "html", "greenprof view FILE"},
    {"sort", "self", "tottime"},
    {"sort", "overhead", "tottime"},
    {"sort", "symbol", "name"},
    {"sort", "sym", "name"},
    {"sort", "dso", "filename"},
    {"sort", "comm", "tottime --by thread"},
    {"sort", "own", "tottime"},
    {"sort", "samples", "tottime"},
    {"sort", "total", "cumtime"},
    {"sort", "inclusive", "cumtime"},
    {"report", "o", "greenprof report FILE > OUT"},
    {"report", "output", "greenprof report FILE > OUT"},
    {"report", "format", "greenprof export FILE --format FORMAT"},
    {"report", "html", "greenprof view FILE"},
    {"report", "self", "--sort tottime"},
    {"report", "cumulative", "--sort cumtime"},
    {"report", "requests", "--by request"},
    {"report", "coroutines", "--by coroutine"},
    {"export", "svg", "greenprof flamegraph FILE -o OUT.svg"},
    {"export", "html", "greenprof flamegraph FILE -o OUT.html"},
    {"flamegraph", "f", "greenprof export FILE --format FORMAT"},
    {"flamegraph", "format", "greenprof export FILE --format FORMAT"},
};

const char *gp_nearest_meaning(const char *of, const char *word)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (strcmp(meanings[i][0], of) == 0 && strcmp(meanings[i][1], word) == 0)
            return meanings[i][2];
    return NULL;
}

static bool nearest_is_synonym(const gp_nearest_t *nearest, const char *name)
{
    const char *meaning = nearest->of != NULL ? gp_nearest_meaning(nearest->of, nearest->word) : NULL;
    return meaning != NULL && strcmp(meaning, name) == 0;
}

void gp_nearest_try(gp_nearest_t *nearest, const char *name)
{
    size_t word_len = strlen(nearest->word), len = strlen(name);
    if (word_len == 0 || word_len > LETTERS_MAX || len > LETTERS_MAX)
        return;
    bool is_synonym = nearest_is_synonym(nearest, name);
    bool is_exchanged = nearest->word[0] == name[1] && nearest->word[1] == name[0];
    if (!is_synonym && nearest->word[0] != name[0] && !is_exchanged)
        return; // nobody mistypes the first letter, but for its neighbour
    size_t apart = is_synonym ? 0 : nearest_distance(nearest->word, word_len, name, len);
    if (apart > (len + LETTERS_AN_ERROR - 1) / LETTERS_AN_ERROR ||
        (nearest->name != NULL && apart >= nearest->distance))
        return;
    nearest->name = name;
    nearest->distance = apart;
}
