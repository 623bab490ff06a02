// SPDX-License-Identifier: MIT
// Chrome's Trace Event JSON, for Perfetto, chrome://tracing and Speedscope.
//
// A "process" of coroutines, with a "thread" for each: its activities, as slices; and the process itself, with its
// threads: which coroutine ran there. Arrows are flow events. Times are microseconds, since the start. Samples are not
// in it: hardly any reader reads the format's own place for them.
//
// Source: Trace Event Format (Google); perfetto, src/trace_processor/importers/json.
#include "export/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/memory.h"
#include "export/output.h"
#include "export/write/json_text.h"
#include "report/timeline.h"

// The pid that coroutines are shown under: no process has one so large. Source: proc_sys_kernel(5), pid_max.
enum { COROUTINES_PID = 1 << 22 };

typedef struct chrome {
    const gp_timeline_t *timeline;
    gp_json_t json;
    uint32_t *tids; // of threads that have a name by now
    uint32_t tid_count;
    size_t tid_capacity;
    gp_index_t tid_index;
} chrome_t;

static const char *chrome_color_of(const char *state)
{
    static const struct {
        const char *state, *color;
    } colors[] = {
        {"running", "thread_state_running"},
        {"interleaved", "thread_state_running"},
        {"ready", "thread_state_runnable"},
    };
    for (size_t i = 0; i < sizeof(colors) / sizeof(colors[0]); i++)
        if (strcmp(colors[i].state, state) == 0)
            return colors[i].color;
    return "thread_state_sleeping";
}

static void chrome_begin_event(chrome_t *chrome, const char *phase, const char *name, uint64_t pid, uint64_t tid)
{
    gp_json_t *json = &chrome->json;
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_text(json, "ph", phase);
    gp_json_key_text(json, "name", name);
    gp_json_key_uint(json, "pid", pid);
    gp_json_key_uint(json, "tid", tid);
}

static void chrome_end_event(chrome_t *chrome)
{
    gp_json_close(&chrome->json, '}');
}

static void chrome_put_time(chrome_t *chrome, const char *key, uint64_t ns)
{
    gp_json_key(&chrome->json, key);
    gp_json_microseconds(&chrome->json, ns);
}

// A slice never ends after the next one begins, even where readers add `ts` and `dur` in doubles: a sum that is rounded
// up gets a nanosecond less. A division gives the same double as reading the decimal number does.
static void chrome_put_times(chrome_t *chrome, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t duration_ns = to_ns - from_ns;
    if (duration_ns > 1 && (double)from_ns / 1e3 + (double)duration_ns / 1e3 > (double)to_ns / 1e3)
        duration_ns--;
    chrome_put_time(chrome, "ts", from_ns);
    chrome_put_time(chrome, "dur", duration_ns);
}

static uint64_t chrome_coroutines_pid(const chrome_t *chrome)
{
    return (uint64_t)chrome->timeline->pid + COROUTINES_PID;
}

// Name a process or a thread.
static void chrome_put_name(chrome_t *chrome, const char *what, uint64_t pid, uint64_t tid, const char *name)
{
    chrome_begin_event(chrome, "M", what, pid, tid);
    gp_json_key(&chrome->json, "args");
    gp_json_open(&chrome->json, '{');
    gp_json_key_text(&chrome->json, "name", name);
    gp_json_close(&chrome->json, '}');
    chrome_end_event(chrome);
}

// Arguments are for slices that need them: Speedscope makes them a part of the name.
static void chrome_put_arguments(chrome_t *chrome, const gp_activity_t *activity, bool is_active)
{
    bool is_interleaved = is_active && !gp_timeline_is_whole(activity);
    gp_json_t *json = &chrome->json;
    if (activity->trace == NULL && !is_interleaved)
        return;
    gp_json_key(json, "args");
    gp_json_open(json, '{');
    if (activity->trace != NULL)
        gp_json_key_text(json, "trace", activity->trace);
    if (is_interleaved)
        chrome_put_time(chrome, "running_us", activity->slice_ns);
    gp_json_close(json, '}');
}

static void chrome_put_slices(chrome_t *chrome, const gp_activity_t *activity)
{
    gp_slice_t slices[GP_SLICES_MAX];
    size_t count = gp_timeline_slices(chrome->timeline, activity, slices);
    for (size_t i = 0; i < count; i++) {
        chrome_begin_event(chrome, "X", slices[i].state, chrome_coroutines_pid(chrome), activity->track + 1);
        gp_json_key_text(&chrome->json, "cat", "coroutine");
        chrome_put_times(chrome, slices[i].from_ns, slices[i].to_ns);
        gp_json_key_text(&chrome->json, "cname", chrome_color_of(slices[i].state));
        chrome_put_arguments(chrome, activity, slices[i].from_ns < activity->left_ns);
        chrome_end_event(chrome);
    }
}

// Which coroutine ran on a thread, where that is known exactly.
static void chrome_put_on_thread(chrome_t *chrome, const gp_activity_t *activity)
{
    const gp_track_t *track = &chrome->timeline->tracks[activity->track];
    if (activity->thread_id == 0 || track->is_thread || activity->left_ns <= activity->start_ns ||
        !gp_timeline_is_whole(activity))
        return;
    chrome_begin_event(chrome, "X", track->name, chrome->timeline->pid, activity->thread_id);
    gp_json_key_text(&chrome->json, "cat", "thread");
    chrome_put_times(chrome, activity->start_ns, activity->left_ns);
    chrome_end_event(chrome);
}

// Each end of an arrow belongs to the slice around it, and the start of a slice to the one before: hence a nanosecond
// more.
static void chrome_put_arrow(chrome_t *chrome, const gp_arrow_t *arrow)
{
    for (int end = 0; end < 2; end++) {
        chrome_begin_event(chrome, end ? "f" : "s", arrow->what, chrome_coroutines_pid(chrome),
                           (end ? arrow->to : arrow->from) + 1);
        gp_json_key_text(&chrome->json, "cat", arrow->what);
        gp_json_key_uint(&chrome->json, "id", arrow->id);
        chrome_put_time(chrome, "ts", end ? arrow->to_ns + 1 : arrow->from_ns);
        if (end)
            gp_json_key_text(&chrome->json, "bp", "e");
        chrome_end_event(chrome);
    }
}

static void chrome_put_tracks(chrome_t *chrome, const char *title)
{
    const gp_timeline_t *timeline = chrome->timeline;
    gp_arrow_t arrow;
    chrome_put_name(chrome, "process_name", timeline->pid, 0, title);
    chrome_put_name(chrome, "process_name", chrome_coroutines_pid(chrome), 0, "coroutines");
    for (uint32_t i = 0; i < timeline->track_count; i++) {
        chrome_put_name(chrome, "thread_name", chrome_coroutines_pid(chrome), i + 1, timeline->tracks[i].name);
        if (gp_timeline_spawn(timeline, i, &arrow))
            chrome_put_arrow(chrome, &arrow);
    }
}

static bool chrome_same_tid(const void *owner, uint32_t number, const void *key)
{
    return ((const chrome_t *)owner)->tids[number] == *(const uint32_t *)key;
}

// Name the thread of an activity, the first time. Returns 0 or -ENOMEM.
static int chrome_put_thread(chrome_t *chrome, const gp_activity_t *activity)
{
    uint32_t tid = activity->thread_id;
    uint64_t hash = gp_hash_u64(tid);
    if (tid == 0 || gp_index_find(&chrome->tid_index, hash, chrome_same_tid, chrome, &tid) != GP_INDEX_NONE)
        return 0;
    if (gp_grow(&chrome->tids, &chrome->tid_capacity, chrome->tid_count, sizeof(*chrome->tids)) < 0 ||
        gp_index_add(&chrome->tid_index, hash, chrome->tid_count) < 0)
        return -ENOMEM;
    chrome->tids[chrome->tid_count++] = tid;
    chrome_put_name(chrome, "thread_name", chrome->timeline->pid, tid, activity->thread_name);
    return 0;
}

static int chrome_put_activity(void *context, const gp_activity_t *activity, const gp_activity_t *before, size_t number)
{
    chrome_t *chrome = context;
    gp_arrow_t arrow;
    (void)before;
    if (chrome_put_thread(chrome, activity) < 0)
        return -ENOMEM;
    chrome_put_slices(chrome, activity);
    chrome_put_on_thread(chrome, activity);
    if (gp_timeline_wake(activity, number, &arrow))
        chrome_put_arrow(chrome, &arrow);
    return gp_output_state(chrome->json.out);
}

int gp_chrome_write(const gp_report_t *report, FILE *out)
{
    chrome_t chrome = {.timeline = report->timeline, .json = {.out = out}};
    if (report->timeline == NULL)
        return -ENOTSUP;
    gp_json_open(&chrome.json, '{');
    gp_json_key_text(&chrome.json, "displayTimeUnit", "ms");
    gp_json_key(&chrome.json, "traceEvents");
    gp_json_open(&chrome.json, '[');
    chrome_put_tracks(&chrome, report->title);
    int result = gp_timeline_each_activity(report->timeline, chrome_put_activity, &chrome);
    gp_json_close(&chrome.json, ']');
    gp_json_close(&chrome.json, '}');
    putc('\n', out);
    free(chrome.tids);
    gp_index_free(&chrome.tid_index);
    return result;
}
