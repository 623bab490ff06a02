// SPDX-License-Identifier: MIT
// Chrome's trace events, which Perfetto opens: a process a process, its spans on tracks on which they nest, and arrows
// from calls to what they caused elsewhere.
//
// Source: Trace Event Format (Google).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/write/json_text.h"
#include "traces/write.h"

enum { TRACKS_MAX = 512 }; // of a process

// A slice must lie within the one below it on its track. Each process has tracks; a span goes to the first one on which
// it fits.
typedef struct track {
    uint32_t number, next;       // from 1 on, in its process; index of the next one there
    const gp_tree_span_t **open; // innermost last
    size_t open_count, open_capacity;
} track_t;

typedef struct chrome {
    const gp_tree_view_t *view;
    gp_json_t json;
    track_t *tracks;
    size_t track_count, track_capacity;
    uint32_t *track_of; // by number of the span
    uint32_t *first;    // track, by process, plus 1; 0 = none
} chrome_t;

static bool write_chrome_fits(track_t *track, const gp_tree_span_t *span)
{
    while (track->open_count > 0 && track->open[track->open_count - 1]->to_ns <= span->from_ns)
        track->open_count--;
    return track->open_count == 0 || track->open[track->open_count - 1]->to_ns >= span->to_ns;
}

// Returns the track, or NULL when memory is short.
static track_t *write_chrome_find_track(chrome_t *chrome, const gp_tree_span_t *span)
{
    uint32_t *link = &chrome->first[span->process], number = 1;
    for (; *link != 0; link = &chrome->tracks[*link - 1].next, number++) {
        track_t *track = &chrome->tracks[*link - 1];
        if (write_chrome_fits(track, span) || number == TRACKS_MAX)
            return track;
    }
    size_t process_link = (size_t)((char *)link - (char *)chrome->tracks);
    bool is_first = link == &chrome->first[span->process];
    if (gp_grow(&chrome->tracks, &chrome->track_capacity, chrome->track_count, sizeof(track_t)) < 0)
        return NULL;
    if (!is_first)
        link = (uint32_t *)((char *)chrome->tracks + process_link); // the array may have moved
    chrome->tracks[chrome->track_count++] = (track_t){.number = number};
    *link = (uint32_t)chrome->track_count;
    return &chrome->tracks[chrome->track_count - 1];
}

static uint32_t write_chrome_place(chrome_t *chrome, const gp_tree_span_t *span)
{
    track_t *track = write_chrome_find_track(chrome, span);
    if (track == NULL || gp_grow(&track->open, &track->open_capacity, track->open_count, sizeof(*track->open)) < 0)
        return GP_NO_SPAN;
    track->open[track->open_count++] = span;
    return track->number;
}

static void write_chrome_begin(chrome_t *chrome, const char *phase, const char *name, uint32_t process, uint32_t track)
{
    gp_json_line(&chrome->json);
    gp_json_open(&chrome->json, '{');
    gp_json_key_text(&chrome->json, "ph", phase);
    gp_json_key_text(&chrome->json, "name", name);
    gp_json_key_uint(&chrome->json, "pid", process + 1);
    gp_json_key_uint(&chrome->json, "tid", track);
}

static void write_chrome_put_time(chrome_t *chrome, const char *key, int64_t ns)
{
    gp_json_key(&chrome->json, key);
    gp_json_microseconds(&chrome->json, ns > 0 ? (uint64_t)ns : 0);
}

static void write_chrome_put_arguments(chrome_t *chrome, const gp_tree_span_t *span)
{
    gp_json_t *json = &chrome->json;
    char id[GP_ID128_SIZE];
    gp_json_key(json, "args");
    gp_json_open(json, '{');
    gp_json_key_text(json, "span", gp_id128_of_span(span->id, id));
    gp_json_key(json, "critical");
    gp_json_bool(json, span->record.flags & GP_TREE_CRITICAL);
    write_chrome_put_time(chrome, "self_us", (int64_t)span->self_ns);
    if (!(span->record.flags & GP_SPAN_NO_TIMES)) {
        write_chrome_put_time(chrome, "cpu_us", (int64_t)span->record.cpu_ns);
        write_chrome_put_time(chrome, "ready_us", (int64_t)span->record.ready_ns);
        write_chrome_put_time(chrome, "parked_us", (int64_t)span->record.parked_ns);
    }
    for (uint32_t i = 0; i < span->record.field_count; i++)
        gp_json_key_text(json, span->record.fields[i].key, span->record.fields[i].value);
    gp_json_close(json, '}');
}

static void write_chrome_put_span(chrome_t *chrome, const gp_tree_span_t *span, uint32_t track)
{
    write_chrome_begin(chrome, "X", span->record.name[0] ? span->record.name : span->kind, span->process, track);
    gp_json_key_text(&chrome->json, "cat", span->kind);
    write_chrome_put_time(chrome, "ts", span->from_ns - chrome->view->trace->from_ns);
    write_chrome_put_time(chrome, "dur", (int64_t)gp_tree_span_ns(span));
    if (span->record.flags & GP_SPAN_FAILED)
        gp_json_key_text(&chrome->json, "cname", "terrible");
    write_chrome_put_arguments(chrome, span);
    gp_json_close(&chrome->json, '}');
}

static void write_chrome_put_arrow(chrome_t *chrome, uint32_t number)
{
    const gp_tree_span_t *span = &chrome->view->set->items[number];
    const gp_tree_span_t *caller = span->parent != GP_NO_SPAN ? &chrome->view->set->items[span->parent] : NULL;
    if (caller == NULL || caller->process == span->process)
        return;
    for (int end = 0; end < 2; end++) {
        const gp_tree_span_t *at = end ? span : caller;
        write_chrome_begin(chrome, end ? "f" : "s", "call", at->process, chrome->track_of[end ? number : span->parent]);
        gp_json_key_text(&chrome->json, "cat", "call");
        gp_json_key_uint(&chrome->json, "id", number + 1u);
        write_chrome_put_time(chrome, "ts", (end ? span->from_ns : caller->from_ns) - chrome->view->trace->from_ns);
        if (end)
            gp_json_key_text(&chrome->json, "bp", "e");
        gp_json_close(&chrome->json, '}');
    }
}

static void write_chrome_put_names(chrome_t *chrome)
{
    const gp_spans_t *set = chrome->view->set;
    for (uint32_t i = 0; i < set->process_count; i++) {
        if (chrome->first[i] == 0)
            continue;
        write_chrome_begin(chrome, "M", "process_name", i, 0);
        gp_json_key(&chrome->json, "args");
        gp_json_open(&chrome->json, '{');
        gp_json_key_text(&chrome->json, "name", set->processes[i].service[0] ? set->processes[i].service : "?");
        gp_json_close(&chrome->json, '}');
        gp_json_close(&chrome->json, '}');
    }
}

static const gp_spans_t *sorting; // qsort() has no context

// By beginning; what encloses comes first.
static int write_chrome_compare(const void *left, const void *right)
{
    const gp_tree_span_t *a = &sorting->items[*(const uint32_t *)left], *b = &sorting->items[*(const uint32_t *)right];
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    if (a->to_ns != b->to_ns)
        return a->to_ns > b->to_ns ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

static int write_chrome_put_all(chrome_t *chrome)
{
    const gp_spans_t *set = chrome->view->set;
    uint32_t count = chrome->view->trace->count, *order = calloc((size_t)count + 1, sizeof(*order));
    int result = order != NULL ? 0 : -ENOMEM;
    if (result == 0) {
        memcpy(order, set->order + chrome->view->trace->first, count * sizeof(*order));
        sorting = set;
        qsort(order, count, sizeof(*order), write_chrome_compare);
    }
    for (uint32_t i = 0; i < count && result == 0; i++) {
        chrome->track_of[order[i]] = write_chrome_place(chrome, &set->items[order[i]]);
        if (chrome->track_of[order[i]] == GP_NO_SPAN)
            result = -ENOMEM;
        else
            write_chrome_put_span(chrome, &set->items[order[i]], chrome->track_of[order[i]]);
    }
    for (uint32_t i = 0; i < count && result == 0; i++)
        write_chrome_put_arrow(chrome, order[i]);
    free(order);
    write_chrome_put_names(chrome);
    return result;
}

int gp_tree_write_chrome(const gp_tree_view_t *view, FILE *out)
{
    chrome_t chrome = {.view = view,
                       .json = {.out = out},
                       .track_of = calloc(view->set->count + 1, sizeof(uint32_t)),
                       .first = calloc(view->set->process_count + 1, sizeof(uint32_t))};
    int result = -ENOMEM;
    if (chrome.track_of != NULL && chrome.first != NULL) {
        gp_json_open(&chrome.json, '{');
        gp_json_key_text(&chrome.json, "displayTimeUnit", "ms");
        gp_json_key(&chrome.json, "traceEvents");
        gp_json_open(&chrome.json, '[');
        result = write_chrome_put_all(&chrome);
        gp_json_close(&chrome.json, ']');
        gp_json_close(&chrome.json, '}');
        putc('\n', out);
    }
    for (size_t i = 0; i < chrome.track_count; i++)
        free(chrome.tracks[i].open);
    free(chrome.tracks);
    free(chrome.track_of);
    free(chrome.first);
    return result;
}
