// SPDX-License-Identifier: MIT
#include "capture/killed/recovery_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capture/killed/ring_known.h"
#include "capture/killed/ring_walk.h"
#include "capture/write/intern.h"

typedef gp_ring_taken_t taken_t;

typedef struct reading {
    gp_recovery_rings_t *rings;
    gp_ring_known_t known;
    gp_intern_t stacks;
    gp_ring_walk_t walk;
    gp_loc_t locs[GP_RING_WALK_DEPTH_MAX + 3];
    bool is_short; // of memory
} reading_t;

static void need(reading_t *reading, uint64_t coro_id, const uint64_t trace[2], uint32_t thread)
{
    static const uint64_t none[2];
    bool has_room =
        gp_ring_known_need_coro(&reading->known, coro_id) != NULL &&
        (memcmp(trace, none, sizeof(none)) == 0 || gp_ring_known_need_trace(&reading->known, trace) != NULL) &&
        gp_ring_known_need_thread(&reading->known, thread) != NULL;
    reading->is_short |= !has_room;
}

static void note_needs(void *context, const taken_t *taken)
{
    reading_t *reading = context;
    const gp_ring_file_activity_t *activity = (const void *)taken->record;
    const gp_ring_file_sample_t *sample = (const void *)taken->record;
    const gp_ring_file_span_t *span = (const void *)taken->record;
    switch (taken->record->committed) {
    case GP_RING_FILE_ACTIVITY:
        need(reading, activity->coro_id, activity->trace, taken->thread);
        break;
    case GP_RING_FILE_SPAN:
        need(reading, span->coro_id, span->trace, taken->thread);
        break;
    default:
        need(reading, sample->coro_id, sample->trace, taken->thread);
        break;
    }
}

static void *add(reading_t *reading, enum gp_chunk_type type, size_t bytes)
{
    void *record = gp_writer_add(&reading->rings->writer, type, bytes);
    reading->is_short |= record == NULL;
    return record;
}

static uint64_t ticks_to_ns(const reading_t *reading, uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * reading->walk.file->header.tick_mult) >> 32);
}

static uint64_t since(reading_t *reading, uint64_t ticks)
{
    return ticks > reading->walk.note->start_ticks ? ticks_to_ns(reading, ticks - reading->walk.note->start_ticks) : 0;
}

static void note_time(reading_t *reading, uint64_t time_ns)
{
    reading->rings->last_ns = time_ns > reading->rings->last_ns ? time_ns : reading->rings->last_ns;
}

static uint32_t trace_of(reading_t *reading, const uint64_t id[2])
{
    gp_ring_known_trace_t *trace = id[0] != 0 || id[1] != 0 ? gp_ring_known_need_trace(&reading->known, id) : NULL;
    if (trace == NULL)
        return 0;
    if (trace->number == 0) {
        gp_trace_record_t *record = add(reading, GP_CHUNK_TRACES, sizeof(*record));
        if (record == NULL)
            return 0;
        record->index = trace->number = ++reading->known.last_trace;
        memcpy(record->id, id, sizeof(record->id));
    }
    return trace->number;
}

static gp_ring_known_coro_t *coro_of(reading_t *reading, uint64_t id, const taken_t *taken)
{
    gp_ring_known_coro_t *coro = gp_ring_known_need_coro(&reading->known, id);
    if (coro == NULL || coro->is_there)
        return coro;
    gp_coro_record_t *record = add(reading, GP_CHUNK_COROS, sizeof(*record));
    if (record == NULL)
        return coro;
    record->id = id;
    record->kind = id == taken->root_id ? GP_CORO_THREAD : GP_CORO_ANNOUNCED;
    record->thread = id == taken->root_id ? taken->thread : 0;
    coro->is_there = true;
    return coro;
}

static gp_loc_t unknown(reading_t *reading)
{
    reading->rings->unknown_frames++;
    return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
}

static bool is_within(const uint64_t range[2], uint64_t pc)
{
    return pc >= range[0] && pc < range[1];
}

static gp_loc_t locate_language(reading_t *reading, uint64_t word)
{
    const gp_frame_place_t *place =
        gp_frame_table_slot((gp_frame_place_t *)(uintptr_t)reading->walk.file->frames, word);
    if (place->word != word)
        return unknown(reading);
    bool is_there = GP_LOC_MODULE(place->loc) != GP_MODULE_LANGUAGE ||
                    GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(place->loc)) <= reading->known.last_function;
    return is_there ? place->loc : unknown(reading);
}

enum { LOC_OWN = 0, LOC_CUT = 1 }; // of greenprof's own, or not to be shown; nor are its callers

static gp_loc_t locate(reading_t *reading, uint64_t word)
{
    if (word & GP_RING_FILE_LANGUAGE_FRAME)
        return locate_language(reading, word);
    const gp_ring_known_module_t *module = gp_ring_known_module_at(&reading->known, word);
    if (module == NULL)
        return unknown(reading);
    return module->is_own || is_within(reading->walk.file->header.own, word)
               ? (gp_loc_t)LOC_OWN
               : GP_LOC(module->record.id, word - module->record.bias);
}

// As src/core/collect/samples.c has them.
static size_t locate_frames(reading_t *reading, const gp_ring_file_sample_t *sample, size_t depth)
{
    for (uint64_t i = 0; i < sample->depth; i++) {
        uint64_t word = sample->frames[i];
        gp_loc_t loc = locate(reading, word);
        if (word & GP_RING_FILE_LANGUAGE_FRAME && loc == LOC_CUT)
            break;
        if (loc == LOC_OWN) { // what is called on behalf of its caller is the caller's time
            if (!(word & GP_RING_FILE_LANGUAGE_FRAME) && !is_within(reading->walk.file->header.entry, word))
                depth = 0;
            continue;
        }
        if (depth > 0 && loc == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN) && reading->locs[depth - 1] == loc)
            continue; // one stands for all of a row
        reading->locs[depth++] = loc;
        if (i == 0 && (sample->flags & GP_RING_FILE_TRUNCATED))
            reading->locs[depth++] = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_TRUNCATED);
    }
    return depth;
}

static size_t stack_of(reading_t *reading, const gp_ring_file_sample_t *sample, unsigned *flags)
{
    size_t depth = 0;
    *flags = 0;
    if (sample->flags & GP_RING_FILE_SWITCHING) {
        *flags |= GP_STACK_SWITCHING;
        reading->locs[depth++] = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_SWITCHING);
        return depth;
    }
    if (sample->flags & GP_RING_FILE_HELD_BACK)
        reading->locs[depth++] = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_SIGNAL_BLOCKED);
    if (sample->flags & GP_RING_FILE_NOT_STARTED)
        reading->locs[depth++] = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_NOT_STARTED);
    depth = locate_frames(reading, sample, depth);
    *flags |= sample->flags & GP_RING_FILE_TRUNCATED ? GP_STACK_TRUNCATED : 0u;
    if (sample->flags & GP_RING_FILE_INCOMPLETE) {
        reading->locs[depth++] = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
        *flags |= GP_STACK_INCOMPLETE;
    }
    if (depth == 0)
        reading->locs[depth++] = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    return depth;
}

static uint32_t add_stack(reading_t *reading, const gp_ring_file_sample_t *sample)
{
    unsigned flags;
    bool is_new;
    uint64_t key[2];
    size_t depth = stack_of(reading, sample, &flags), bytes = depth * sizeof(gp_loc_t);
    gp_intern_key(reading->locs, bytes, key);
    uint32_t id = gp_intern(&reading->stacks, key[0], key[1], &is_new);
    gp_stack_record_t *record = is_new ? add(reading, GP_CHUNK_STACKS, sizeof(*record) + bytes) : NULL;
    if (record == NULL)
        return is_new ? 0 : id;
    record->id = id;
    record->depth = (uint16_t)depth;
    record->flags = (uint16_t)flags;
    memcpy(record + 1, reading->locs, bytes);
    return id;
}

typedef struct share {
    enum gp_sample_kind kind;
    uint64_t weight_ns;
} share_t;

static void add_sample(reading_t *reading, const taken_t *taken, const gp_sample_record_t *common, share_t share)
{
    if (share.weight_ns == 0 && share.kind != GP_KIND_CPU)
        return;
    gp_sample_record_t *record = add(reading, GP_CHUNK_SAMPLES, sizeof(*record));
    if (record == NULL)
        return;
    *record = *common;
    record->thread = taken->thread;
    record->kind = share.kind;
    record->weight_ns = share.weight_ns;
}

// How much of `ns` that end at `time_ns` is after a moment.
static uint64_t after(uint64_t time_ns, uint64_t ns, uint64_t moment_ns)
{
    uint64_t most = time_ns > moment_ns ? time_ns - moment_ns : 0;
    return ns < most ? ns : most;
}

// The times that are exact end with the last that the capture has of them: from there on, samples tell.
static void add_times(reading_t *reading, const taken_t *taken, const gp_ring_file_sample_t *sample,
                      const gp_sample_record_t *common, uint64_t ledger_ns)
{
    uint64_t time_ns = common->time_ns, cpu_ns = after(time_ns, sample->weight_ns, ledger_ns);
    gp_ring_known_thread_t *thread = gp_ring_known_need_thread(&reading->known, taken->thread);
    gp_counters_record_t *counters = reading->known.counters;
    uint64_t counted_ns = counters != NULL ? counters->time_ns : 0;
    if (thread != NULL)
        thread->record.cpu_ns += after(time_ns, sample->weight_ns, thread->is_there ? counted_ns : 0);
    if (counters != NULL)
        counters->process_cpu_ns += after(time_ns, sample->weight_ns, counted_ns);
    gp_ledger_record_t *record = cpu_ns > 0 ? add(reading, GP_CHUNK_LEDGER, sizeof(*record)) : NULL;
    if (record == NULL)
        return;
    record->coro_id = common->coro_id;
    record->trace = common->trace;
    record->time_ns = time_ns;
    record->cpu_ns = cpu_ns;
    record->slice_ns = after(time_ns, sample->weight_ns + sample->off_ns, ledger_ns);
}

static void take_sample(reading_t *reading, const taken_t *taken)
{
    const gp_ring_file_sample_t *sample = (const void *)taken->record;
    const gp_ring_known_coro_t *coro = coro_of(reading, sample->coro_id, taken);
    bool is_wait = taken->record->committed == GP_RING_FILE_WAIT;
    gp_sample_record_t common = {
        .time_ns = since(reading, sample->ticks),
        .coro_id = sample->coro_id,
        .trace = trace_of(reading, sample->trace),
        .stack_id = is_wait && sample->depth == 0 ? 0 : add_stack(reading, sample),
    };
    note_time(reading, common.time_ns);
    reading->rings->samples += !is_wait;
    reading->rings->waits += is_wait;
    if (!is_wait) {
        add_sample(reading, taken, &common, (share_t){GP_KIND_CPU, sample->weight_ns});
        add_sample(reading, taken, &common, (share_t){GP_KIND_PREEMPTED, sample->off_ns});
        add_times(reading, taken, sample, &common, coro != NULL ? coro->ledger_ns : UINT64_MAX);
    } else if (sample->flags & GP_RING_FILE_BLIND) {
        add_sample(reading, taken, &common, (share_t){GP_KIND_WAITING, sample->weight_ns});
    } else {
        uint64_t ready_ns = sample->off_ns < sample->weight_ns ? sample->off_ns : sample->weight_ns;
        add_sample(reading, taken, &common, (share_t){GP_KIND_READY, ready_ns});
        add_sample(reading, taken, &common, (share_t){GP_KIND_PARKED, sample->weight_ns - ready_ns});
    }
}

// The wait at an activity's end, as far as the ledger does not have it.
static void add_wait(reading_t *reading, const gp_activity_record_t *activity, uint64_t ledger_ns)
{
    uint64_t wait_ns = activity->end_ns > activity->left_ns ? activity->end_ns - activity->left_ns : 0;
    uint64_t ready_ns =
        activity->ready_ns != 0 && activity->ready_ns < activity->end_ns ? activity->end_ns - activity->ready_ns : 0;
    wait_ns = after(activity->end_ns, wait_ns, ledger_ns);
    ready_ns = ready_ns < wait_ns ? ready_ns : wait_ns;
    gp_ledger_record_t *record = wait_ns > 0 ? add(reading, GP_CHUNK_LEDGER, sizeof(*record)) : NULL;
    if (record == NULL)
        return;
    record->coro_id = activity->coro_id;
    record->trace = activity->trace;
    record->time_ns = activity->end_ns;
    record->switches = 1;
    if (activity->ready_ns == 0) {
        record->waiting_ns = wait_ns;
    } else {
        record->ready_ns = ready_ns;
        record->parked_ns = wait_ns - ready_ns;
    }
}

static void note_over(reading_t *reading, const gp_activity_record_t *activity)
{
    gp_recovery_rings_t *rings = reading->rings;
    if (gp_grow(&rings->overs, &rings->over_room, rings->over_count, sizeof(*rings->overs)) == 0)
        rings->overs[rings->over_count++] = (gp_recovery_over_t){activity->coro_id, activity->end_ns};
    else
        reading->is_short = true;
}

static void take_activity(reading_t *reading, const taken_t *taken)
{
    const gp_ring_file_activity_t *mark = (const void *)taken->record;
    const gp_ring_known_coro_t *coro = coro_of(reading, mark->coro_id, taken);
    uint64_t ledger_ns = coro != NULL ? coro->ledger_ns : UINT64_MAX;
    bool has_waits = mark->coro_id != taken->root_id; // a thread's own has none
    uint32_t trace = trace_of(reading, mark->trace);
    gp_activity_record_t *record = add(reading, GP_CHUNK_ACTIVITIES, sizeof(*record));
    if (record == NULL)
        return;
    uint64_t ready = mark->ready > mark->left ? mark->ready : mark->left;
    record->coro_id = mark->coro_id;
    record->start_ns = since(reading, mark->start);
    record->left_ns = since(reading, mark->left);
    record->end_ns = since(reading, mark->end);
    record->slice_ns = ticks_to_ns(reading, mark->slice_ticks);
    record->ready_ns = mark->ready != 0 ? since(reading, ready < mark->end ? ready : mark->end) : 0;
    record->waker_id = mark->ready != 0 ? mark->waker : 0;
    record->trace = trace;
    record->thread = mark->thread;
    record->is_open = mark->is_open;
    if (mark->settled >= mark->left)
        gp_activity_set_times(record, mark->off_ns, mark->blocked_ns);
    note_time(reading, record->end_ns);
    note_over(reading, record);
    if (has_waits)
        add_wait(reading, record, ledger_ns);
}

static void note_span(reading_t *reading, uint64_t id)
{
    gp_recovery_rings_t *rings = reading->rings;
    if (gp_grow(&rings->span_ids, &rings->span_room, rings->spans, sizeof(id)) == 0)
        rings->span_ids[rings->spans++] = id;
    else
        reading->is_short = true;
}

static void take_span(reading_t *reading, const taken_t *taken)
{
    const gp_ring_file_span_t *mark = (const void *)taken->record;
    coro_of(reading, mark->coro_id, taken);
    uint32_t trace = trace_of(reading, mark->trace);
    size_t text_len = (size_t)mark->name_len + mark->fields_len;
    gp_span_record_t *record = add(reading, GP_CHUNK_SPANS, sizeof(*record) + text_len);
    if (record == NULL)
        return;
    *record = (gp_span_record_t){
        .id = mark->id,
        .parent_id = mark->parent_id,
        .coro_id = mark->coro_id,
        .end_coro_id = mark->end_coro_id,
        .start_ns = since(reading, mark->start),
        .end_ns = since(reading, mark->end),
        .cpu_ns = mark->times.cpu_ns,
        .slice_ns = mark->times.slice_ns,
        .blocked_ns = mark->times.blocked_ns,
        .ready_ns = mark->times.ready_ns,
        .parked_ns = mark->times.parked_ns,
        .waiting_ns = mark->times.waiting_ns,
        .switches = mark->times.switches,
        .trace = trace,
        .thread = mark->thread,
        .kind = mark->kind,
        .flags = mark->flags,
        .name_len = mark->name_len,
        .field_count = mark->field_count,
        .fields_len = mark->fields_len,
    };
    memcpy(record + 1, mark->text, text_len);
    note_time(reading, record->end_ns);
    note_span(reading, mark->id);
}

static void take(void *context, const taken_t *taken)
{
    reading_t *reading = context;
    gp_ring_known_thread_t *thread = gp_ring_known_need_thread(&reading->known, taken->thread);
    if (thread != NULL && !thread->is_there && thread->record.tid == 0) {
        thread->record.tid = taken->tid;
        thread->record.coro_id = taken->root_id;
        coro_of(reading, taken->root_id, taken);
    }
    switch (taken->record->committed) {
    case GP_RING_FILE_ACTIVITY:
        take_activity(reading, taken);
        break;
    case GP_RING_FILE_SPAN:
        take_span(reading, taken);
        break;
    default:
        take_sample(reading, taken);
        break;
    }
}

// What the capture says of these in sum comes again, and is more.
static void add_sums(reading_t *reading)
{
    gp_ring_known_t *known = &reading->known;
    for (size_t i = 0; i < known->thread_count; i++) {
        gp_thread_record_t *record = add(reading, GP_CHUNK_THREADS, sizeof(*record));
        if (record != NULL)
            *record = known->threads[i].record;
    }
    if (known->counters == NULL || known->counters->count <= GP_COUNTER_SAMPLES)
        return;
    size_t bytes = sizeof(*known->counters) + known->counters->count * sizeof(uint64_t);
    gp_counters_record_t *record = add(reading, GP_CHUNK_COUNTERS, bytes);
    if (record == NULL)
        return;
    memcpy(record, known->counters, bytes);
    uint64_t *values = (uint64_t *)(void *)(record + 1);
    values[GP_COUNTER_SIGNALS] += reading->rings->samples;
    values[GP_COUNTER_SAMPLES] += reading->rings->samples;
    if (known->counters->count > GP_COUNTER_WAIT_SAMPLES)
        values[GP_COUNTER_WAIT_SAMPLES] += reading->rings->waits;
    if (record->time_ns < reading->rings->last_ns)
        record->time_ns = reading->rings->last_ns;
}

static int read_records(reading_t *reading, int fd)
{
    char error[GP_READER_ERROR_SIZE];
    gp_ring_walk(&reading->walk, NULL, note_needs, reading);
    reading->known.first_sequence = reading->walk.note->first_sequence;
    int result = gp_ring_known_read(&reading->known, fd, error);
    if (result < 0)
        return result;
    reading->stacks.last = reading->known.last_stack;
    gp_ring_walk(&reading->walk, reading->known.has, take, reading);
    if (reading->rings->samples + reading->rings->waits + reading->rings->spans > 0)
        add_sums(reading);
    return reading->is_short ? -ENOMEM : 0;
}

int gp_recovery_rings_take(gp_recovery_rings_t **rings, const gp_ring_file_t *file, size_t bytes, int fd,
                           const gp_file_header_t *header)
{
    reading_t *reading = calloc(1, sizeof(*reading));
    gp_recovery_rings_t *made = calloc(1, sizeof(*made));
    int result = reading != NULL && made != NULL ? 0 : -ENOMEM;
    if (made != NULL)
        made->writer = (gp_writer_t)GP_WRITER_INIT;
    if (result == 0)
        result = gp_ring_walk_begin(&reading->walk, file, bytes, header);
    if (result == 0) {
        reading->rings = made;
        result = read_records(reading, fd);
    }
    if (result == 0) {
        *rings = made;
        made = NULL;
    }
    gp_recovery_rings_free(made);
    if (reading != NULL) {
        gp_ring_known_free(&reading->known);
        gp_intern_reset(&reading->stacks);
    }
    free(reading);
    return result;
}

int gp_recovery_rings_read(gp_recovery_rings_t **rings, int rings_fd, int fd, const gp_file_header_t *header)
{
    gp_ring_file_t *file = NULL;
    size_t bytes = 0;
    int result = gp_ring_walk_load(rings_fd, &file, &bytes);
    if (result == 0)
        result = gp_recovery_rings_take(rings, file, bytes, fd, header);
    free(file);
    return result;
}

void gp_recovery_rings_free(gp_recovery_rings_t *rings)
{
    if (rings == NULL)
        return;
    gp_writer_abandon(&rings->writer);
    free(rings->span_ids);
    free(rings->overs);
    free(rings);
}
