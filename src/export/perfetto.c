// SPDX-License-Identifier: MIT
// Perfetto's own trace format (.pftrace): the timeline as track events, and every sample as a stack
// sample of an asynchronous context, which Perfetto has since v58; older ones leave the samples out.
//
// Times are CLOCK_REALTIME ns. Samples of time on the CPU have the counter "cpu-time", those of other time "wait-time".
#include "export/formats.h"

#include <errno.h>
#include <stdlib.h>

#include "export/output.h"
#include "export/perfetto_fields.h"
#include "export/write/protobuf.h"
#include "export/write/string_table.h"
#include "report/timeline.h"

enum { SEQUENCE = 1, PROCESS_UUID = 1, TRACKS_UUID = 16, COUNTER_CPU = 1, COUNTER_WAIT = 2 };

typedef struct perfetto {
    const gp_report_t *report;
    const gp_timeline_t *timeline;
    FILE *out;
    gp_string_table_t functions, files; // numbers are interning ids: 0 = none
    gp_text_t packet, message, inner;   // what is being put together
    int failed;
} perfetto_t;

static uint64_t uuid_of(uint32_t track)
{
    return (uint64_t)TRACKS_UUID + track;
}

// Write `packet`, which has its contents already.
static void end_packet(perfetto_t *perfetto, unsigned flags)
{
    gp_pb_uint(&perfetto->packet, PACKET_SEQUENCE_ID, SEQUENCE);
    gp_pb_uint(&perfetto->packet, PACKET_SEQUENCE_FLAGS, flags);
    gp_text_clear(&perfetto->message);
    gp_pb_message(&perfetto->message, TRACE_PACKET, &perfetto->packet);
    if (perfetto->message.failed || perfetto->packet.failed || perfetto->inner.failed)
        perfetto->failed = 1;
    else
        fwrite(perfetto->message.data, 1, perfetto->message.len, perfetto->out);
    gp_text_clear(&perfetto->packet);
    gp_text_clear(&perfetto->message);
}

// Add `message` to the packet.
static void put_message(perfetto_t *perfetto, unsigned field)
{
    gp_pb_message(&perfetto->packet, field, &perfetto->message);
    gp_text_clear(&perfetto->message);
}

// Add `inner` to the message.
static void put_inner(perfetto_t *perfetto, unsigned field)
{
    gp_pb_message(&perfetto->message, field, &perfetto->inner);
    gp_text_clear(&perfetto->inner);
}

static void put_time(perfetto_t *perfetto, uint64_t ns)
{
    gp_pb_uint(&perfetto->packet, PACKET_TIMESTAMP, perfetto->report->start_realtime_ns + ns);
}

static void put_descriptors(perfetto_t *perfetto)
{
    const gp_timeline_t *timeline = perfetto->timeline;
    gp_pb_uint(&perfetto->message, TRACK_UUID, PROCESS_UUID);
    gp_pb_uint(&perfetto->inner, PROCESS_PID, timeline->pid);
    gp_pb_text(&perfetto->inner, PROCESS_NAME, perfetto->report->title);
    put_inner(perfetto, TRACK_PROCESS);
    put_message(perfetto, PACKET_TRACK_DESCRIPTOR);
    end_packet(perfetto, 0);
    for (uint32_t i = 0; i < timeline->track_count; i++) {
        gp_pb_uint(&perfetto->message, TRACK_UUID, uuid_of(i));
        gp_pb_uint(&perfetto->message, TRACK_PARENT_UUID, PROCESS_UUID);
        gp_pb_text(&perfetto->message, TRACK_NAME, timeline->tracks[i].name);
        put_message(perfetto, PACKET_TRACK_DESCRIPTOR);
        end_packet(perfetto, 0);
    }
}

static void begin_event(perfetto_t *perfetto, unsigned type, uint32_t track, const char *name, uint64_t ns)
{
    put_time(perfetto, ns);
    gp_pb_uint(&perfetto->message, EVENT_TYPE, type);
    gp_pb_uint(&perfetto->message, EVENT_TRACK_UUID, uuid_of(track));
    if (name != NULL) {
        gp_pb_text(&perfetto->message, EVENT_CATEGORY, "coroutine");
        gp_pb_text(&perfetto->message, EVENT_NAME, name);
    }
}

static void end_event(perfetto_t *perfetto)
{
    put_message(perfetto, PACKET_TRACK_EVENT);
    end_packet(perfetto, 0);
}

static void put_annotations(perfetto_t *perfetto, const gp_activity_t *activity, bool is_active)
{
    if (activity->trace != NULL) {
        gp_pb_text(&perfetto->inner, ANNOTATION_NAME, "trace");
        gp_pb_text(&perfetto->inner, ANNOTATION_STRING, activity->trace);
        put_inner(perfetto, EVENT_ANNOTATION);
    }
    if (is_active && !gp_timeline_is_whole(activity)) {
        gp_pb_text(&perfetto->inner, ANNOTATION_NAME, "running_ns");
        gp_pb_uint(&perfetto->inner, ANNOTATION_UINT, activity->slice_ns);
        put_inner(perfetto, EVENT_ANNOTATION);
    }
    if (is_active && activity->thread_id != 0) {
        gp_pb_text(&perfetto->inner, ANNOTATION_NAME, "thread");
        gp_pb_uint(&perfetto->inner, ANNOTATION_UINT, activity->thread_id);
        put_inner(perfetto, EVENT_ANNOTATION);
    }
}

// Where an arrow starts.
static void put_source(perfetto_t *perfetto, const gp_arrow_t *arrow)
{
    begin_event(perfetto, TYPE_INSTANT, arrow->from, arrow->what, arrow->from_ns);
    gp_pb_fixed64(&perfetto->message, EVENT_FLOW, arrow->id);
    end_event(perfetto);
}

// The arrow that ends at the beginning of an activity: that of a track's first is its spawn.
static bool arrow_into(const gp_timeline_t *timeline, const gp_activity_t *activity, const gp_activity_t *before,
                       size_t number, gp_arrow_t *arrow)
{
    if (before == NULL)
        return gp_timeline_spawn(timeline, activity->track, arrow);
    return before->end_ns == activity->start_ns && gp_timeline_wake(before, number - 1, arrow);
}

// 0, or why writing should end.
static int state_of(const perfetto_t *perfetto)
{
    return perfetto->failed ? -ENOMEM : gp_output_state(perfetto->out);
}

static int put_activity(void *context, const gp_activity_t *activity, const gp_activity_t *before, size_t number)
{
    perfetto_t *perfetto = context;
    gp_slice_t slices[GP_SLICES_MAX];
    gp_arrow_t arrow;
    size_t count = gp_timeline_slices(perfetto->timeline, activity, slices);
    bool has_arrow = count > 0 && arrow_into(perfetto->timeline, activity, before, number, &arrow);
    if (has_arrow)
        put_source(perfetto, &arrow);
    for (size_t i = 0; i < count; i++) {
        begin_event(perfetto, TYPE_BEGIN, activity->track, slices[i].state, slices[i].from_ns);
        if (has_arrow && i == 0)
            gp_pb_fixed64(&perfetto->message, EVENT_TERMINATING_FLOW, arrow.id);
        put_annotations(perfetto, activity, slices[i].from_ns < activity->left_ns);
        end_event(perfetto);
        begin_event(perfetto, TYPE_END, activity->track, NULL, slices[i].to_ns);
        end_event(perfetto);
    }
    return state_of(perfetto);
}

static void put_frames(perfetto_t *perfetto)
{
    const gp_report_t *report = perfetto->report;
    for (uint32_t i = 0; i < report->frame_count; i++) {
        const gp_frame_t *frame = &report->frames[i];
        gp_pb_uint(&perfetto->inner, FRAME_IID, (uint64_t)i + 1);
        gp_pb_uint(&perfetto->inner, FRAME_FUNCTION, gp_string_table_number(&perfetto->functions, frame->function));
        if (!frame->pseudo)
            gp_pb_uint(&perfetto->inner, FRAME_SOURCE_PATH, gp_string_table_number(&perfetto->files, frame->file));
        gp_pb_uint(&perfetto->inner, FRAME_LINE, frame->line);
        put_inner(perfetto, INTERNED_FRAMES);
    }
}

static void put_strings(perfetto_t *perfetto, const gp_string_table_t *strings, unsigned field)
{
    for (size_t i = 1; i < strings->count; i++) {
        gp_pb_uint(&perfetto->inner, STRING_IID, i);
        gp_pb_text(&perfetto->inner, STRING_BYTES, strings->texts[i]);
        put_inner(perfetto, field);
    }
}

static void put_callstacks(perfetto_t *perfetto)
{
    for (uint32_t i = 0; i < perfetto->timeline->stack_count; i++) {
        const gp_timed_stack_t *stack = &perfetto->timeline->stacks[i];
        gp_pb_uint(&perfetto->inner, CALLSTACK_IID, (uint64_t)i + 1);
        for (uint32_t k = 0; k < stack->depth; k++)
            gp_pb_uint(&perfetto->inner, CALLSTACK_FRAMES, (uint64_t)stack->frames[k] + 1);
        put_inner(perfetto, INTERNED_CALLSTACKS);
    }
}

static void put_counter(perfetto_t *perfetto, uint64_t iid, const char *name)
{
    gp_pb_uint(&perfetto->inner, COUNTER_IID, iid);
    gp_pb_text(&perfetto->inner, COUNTER_NAME, name);
    gp_pb_uint(&perfetto->inner, COUNTER_UNIT, UNIT_NANOSECONDS);
    put_inner(perfetto, INTERNED_COUNTERS);
}

static void put_contexts(perfetto_t *perfetto)
{
    for (uint32_t i = 0; i < perfetto->timeline->track_count; i++) {
        const gp_track_t *track = &perfetto->timeline->tracks[i];
        gp_pb_uint(&perfetto->inner, ASYNC_IID, (uint64_t)i + 1);
        gp_pb_text(&perfetto->inner, ASYNC_NAME, track->name);
        gp_pb_text(&perfetto->inner, ASYNC_KIND, track->is_thread ? "thread" : "coroutine");
        if (track->parent != GP_NO_TRACK)
            gp_pb_uint(&perfetto->inner, ASYNC_PARENT, (uint64_t)track->parent + 1);
        put_inner(perfetto, INTERNED_ASYNC_CONTEXTS);
    }
}

// What samples refer to, in one packet before all others.
static void put_interned(perfetto_t *perfetto)
{
    put_frames(perfetto);
    put_strings(perfetto, &perfetto->functions, INTERNED_FUNCTION_NAMES);
    put_strings(perfetto, &perfetto->files, INTERNED_SOURCE_PATHS);
    put_callstacks(perfetto);
    put_counter(perfetto, COUNTER_CPU, "cpu-time");
    put_counter(perfetto, COUNTER_WAIT, "wait-time");
    put_contexts(perfetto);
    put_message(perfetto, PACKET_INTERNED_DATA);
    gp_pb_text(&perfetto->inner, DEFAULTS_SOURCE, "greenprof");
    put_inner(perfetto, DEFAULTS_STACK_SAMPLE);
    put_message(perfetto, PACKET_DEFAULTS);
    end_packet(perfetto, SEQUENCE_CLEARED);
}

static int put_sample(void *context, const gp_timed_sample_t *sample)
{
    perfetto_t *perfetto = context;
    put_time(perfetto, sample->time_ns);
    gp_pb_uint(&perfetto->inner, TASK_PID, perfetto->timeline->pid);
    gp_pb_uint(&perfetto->inner, TASK_ASYNC_ID, (uint64_t)sample->track + 1);
    put_inner(perfetto, SAMPLE_TASK);
    gp_pb_uint(&perfetto->message, SAMPLE_CALLSTACK_IID, (uint64_t)sample->stack + 1);
    gp_pb_uint(&perfetto->message, SAMPLE_COUNTER_IID, sample->is_cpu ? COUNTER_CPU : COUNTER_WAIT);
    gp_pb_uint(&perfetto->message, SAMPLE_WEIGHT, sample->weight_ns);
    put_message(perfetto, PACKET_STACK_SAMPLE);
    end_packet(perfetto, SEQUENCE_NEEDED);
    return state_of(perfetto);
}

int gp_perfetto_write(const gp_report_t *report, FILE *out)
{
    perfetto_t perfetto = {.report = report, .timeline = report->timeline, .out = out};
    if (report->timeline == NULL)
        return -ENOTSUP;
    // Number 0 of a table is "": it must not become an id.
    gp_string_table_number(&perfetto.functions, "");
    gp_string_table_number(&perfetto.files, "");
    put_interned(&perfetto);
    put_descriptors(&perfetto);
    int result = gp_timeline_each_activity(perfetto.timeline, put_activity, &perfetto);
    if (result == 0)
        result = gp_timeline_each_sample(perfetto.timeline, put_sample, &perfetto);
    if (perfetto.functions.failed || perfetto.files.failed)
        result = -ENOMEM;
    if (result == 0)
        result = state_of(&perfetto);
    gp_string_table_free(&perfetto.functions);
    gp_string_table_free(&perfetto.files);
    gp_text_free(&perfetto.packet);
    gp_text_free(&perfetto.message);
    gp_text_free(&perfetto.inner);
    return result;
}
