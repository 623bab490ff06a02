// SPDX-License-Identifier: MIT
#include "capture/killed/recovery_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capture/killed/ring_known.h"
#include "capture/killed/ring_walk.h"
#include "capture/write/intern.h"
#include "capture/write/ring_to_records.h"

typedef gp_ring_taken_t taken_t;

typedef struct reading {
    gp_recovery_rings_t *rings;
    gp_ring_known_t known;
    gp_intern_t stacks;
    gp_ring_walk_t walk;
    gp_ring_clock_t clock;
    gp_loc_t locs[GP_RING_WALK_DEPTH_MAX + GP_RING_STACK_MORE];
    bool is_short; // of memory
} reading_t;

static void recovery_rings_need(reading_t *reading, uint64_t coro_id, const uint64_t trace[2], uint32_t thread)
{
    static const uint64_t none[2];
    bool has_room =
        gp_ring_known_need_coro(&reading->known, coro_id) != NULL &&
        (memcmp(trace, none, sizeof(none)) == 0 || gp_ring_known_need_trace(&reading->known, trace) != NULL) &&
        gp_ring_known_need_thread(&reading->known, thread) != NULL;
    reading->is_short |= !has_room;
}

static void recovery_rings_note_needs(void *context, const taken_t *taken)
{
    reading_t *reading = context;
    const gp_activity_mark_t *activity = (const void *)taken->record;
    const gp_sample_t *sample = (const void *)taken->record;
    const gp_span_mark_t *mark = (const void *)taken->record;
    switch (atomic_load_explicit(&taken->record->committed, memory_order_relaxed)) {
    case GP_RING_ACTIVITY:
        recovery_rings_need(reading, activity->coro_id, activity->trace, taken->thread);
        break;
    case GP_RING_SPAN:
        recovery_rings_need(reading, mark->span.coro_id, mark->span.trace, taken->thread);
        break;
    default:
        recovery_rings_need(reading, sample->coro_id, sample->trace, taken->thread);
        break;
    }
}

static void *recovery_rings_add(reading_t *reading, enum gp_chunk_type type, size_t bytes)
{
    void *record = gp_writer_add(&reading->rings->writer, type, bytes);
    reading->is_short |= record == NULL;
    return record;
}

static void recovery_rings_note_time(reading_t *reading, uint64_t time_ns)
{
    reading->rings->last_ns = time_ns > reading->rings->last_ns ? time_ns : reading->rings->last_ns;
}

static uint32_t recovery_rings_trace_of(reading_t *reading, const uint64_t id[2])
{
    gp_ring_known_trace_t *trace = id[0] != 0 || id[1] != 0 ? gp_ring_known_need_trace(&reading->known, id) : NULL;
    if (trace == NULL)
        return 0;
    if (trace->number == 0) {
        gp_trace_record_t *record = recovery_rings_add(reading, GP_CHUNK_TRACES, sizeof(*record));
        if (record == NULL)
            return 0;
        record->index = trace->number = ++reading->known.last_trace;
        memcpy(record->id, id, sizeof(record->id));
    }
    return trace->number;
}

static gp_ring_known_coro_t *recovery_rings_coro_of(reading_t *reading, uint64_t id, const taken_t *taken)
{
    gp_ring_known_coro_t *coro = gp_ring_known_need_coro(&reading->known, id);
    if (coro == NULL || coro->is_there)
        return coro;
    gp_coro_record_t *record = recovery_rings_add(reading, GP_CHUNK_COROS, sizeof(*record));
    if (record == NULL)
        return coro;
    record->id = id;
    record->kind = id == taken->root_id ? GP_CORO_THREAD : GP_CORO_ANNOUNCED;
    record->thread = id == taken->root_id ? taken->thread : 0;
    coro->is_there = true;
    return coro;
}

static gp_loc_t recovery_rings_unknown(reading_t *reading)
{
    reading->rings->unknown_frames++;
    return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
}

static bool recovery_rings_is_within(const uint64_t range[2], uint64_t pc)
{
    return pc >= range[0] && pc < range[1];
}

static gp_loc_t recovery_rings_locate_language(reading_t *reading, uint64_t word)
{
    const gp_frame_place_t *place =
        gp_frame_table_slot((gp_frame_place_t *)(uintptr_t)reading->walk.file->frames, word);
    if (place->word != word)
        return recovery_rings_unknown(reading);
    bool is_there = GP_LOC_MODULE(place->loc) != GP_MODULE_LANGUAGE ||
                    GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(place->loc)) <= reading->known.last_function;
    return is_there ? place->loc : recovery_rings_unknown(reading);
}

static gp_loc_t recovery_rings_locate(void *context, uintptr_t word)
{
    reading_t *reading = context;
    if (gp_language_is_frame(word))
        return recovery_rings_locate_language(reading, word);
    const gp_ring_known_module_t *module = gp_ring_known_module_at(&reading->known, word);
    if (module == NULL)
        return recovery_rings_unknown(reading);
    return module->is_own || recovery_rings_is_within(reading->walk.file->header.own, word)
               ? (gp_loc_t)GP_LOC_OWN
               : GP_LOC(module->record.id, word - module->record.bias);
}

static uint32_t recovery_rings_add_stack(reading_t *reading, const gp_sample_t *sample)
{
    const uint64_t *entry = reading->walk.file->header.entry;
    const gp_locator_t locator = {recovery_rings_locate, reading, {entry[0], entry[1]}};
    gp_stack_t stack;
    bool is_new;
    uint64_t key[2];
    gp_ring_stack(sample, &locator, reading->locs, &stack);
    size_t bytes = stack.depth * sizeof(gp_loc_t);
    gp_intern_key(reading->locs, bytes, key);
    uint32_t id = gp_intern(&reading->stacks, key[0], key[1], &is_new);
    gp_stack_record_t *record = is_new ? recovery_rings_add(reading, GP_CHUNK_STACKS, sizeof(*record) + bytes) : NULL;
    if (record == NULL)
        return is_new ? 0 : id;
    record->id = id;
    record->depth = (uint16_t)stack.depth;
    record->flags = (uint16_t)stack.flags;
    memcpy(record + 1, reading->locs, bytes);
    return id;
}

// How much of `ns` that end at `time_ns` is after a moment.
static uint64_t recovery_rings_after(uint64_t time_ns, uint64_t ns, uint64_t moment_ns)
{
    uint64_t most = time_ns > moment_ns ? time_ns - moment_ns : 0;
    return ns < most ? ns : most;
}

// Exact times end with the capture's last ones: from there on, samples tell.
static void recovery_rings_add_times(reading_t *reading, const gp_sample_t *sample, gp_ring_refs_t refs,
                                     uint64_t ledger_ns)
{
    uint64_t time_ns = gp_ring_clock_since(&reading->clock, sample->ticks);
    uint64_t cpu_ns = recovery_rings_after(time_ns, sample->weight_ns, ledger_ns);
    gp_ring_known_thread_t *thread = gp_ring_known_need_thread(&reading->known, refs.thread);
    gp_counters_record_t *counters = reading->known.counters;
    uint64_t counted_ns = counters != NULL ? counters->time_ns : 0;
    if (thread != NULL)
        thread->record.cpu_ns += recovery_rings_after(time_ns, sample->weight_ns, thread->is_there ? counted_ns : 0);
    if (counters != NULL)
        counters->process_cpu_ns += recovery_rings_after(time_ns, sample->weight_ns, counted_ns);
    gp_ledger_record_t *record = cpu_ns > 0 ? recovery_rings_add(reading, GP_CHUNK_LEDGER, sizeof(*record)) : NULL;
    if (record == NULL)
        return;
    record->coro_id = sample->coro_id;
    record->trace = refs.trace;
    record->time_ns = time_ns;
    record->cpu_ns = cpu_ns;
    record->slice_ns = recovery_rings_after(time_ns, sample->weight_ns + sample->off_ns, ledger_ns);
}

static void recovery_rings_take_sample(reading_t *reading, const taken_t *taken)
{
    const gp_sample_t *sample = (const void *)taken->record;
    const gp_ring_known_coro_t *coro = recovery_rings_coro_of(reading, sample->coro_id, taken);
    bool is_wait = taken->record->committed == GP_RING_WAIT;
    gp_share_t shares[2];
    size_t count = gp_ring_shares(sample, is_wait ? GP_RING_WAIT : GP_RING_SAMPLE, shares);
    gp_ring_refs_t refs = {
        .trace = recovery_rings_trace_of(reading, sample->trace),
        .stack = is_wait && sample->depth == 0 ? 0 : recovery_rings_add_stack(reading, sample),
        .thread = taken->thread,
    };
    recovery_rings_note_time(reading, gp_ring_clock_since(&reading->clock, sample->ticks));
    reading->rings->samples += !is_wait;
    reading->rings->waits += is_wait;
    for (size_t i = 0; i < count; i++) {
        gp_sample_record_t *record = recovery_rings_add(reading, GP_CHUNK_SAMPLES, sizeof(*record));
        if (record != NULL)
            gp_ring_to_sample(record, sample, shares[i], &reading->clock, refs);
    }
    if (!is_wait)
        recovery_rings_add_times(reading, sample, refs, coro != NULL ? coro->ledger_ns : UINT64_MAX);
}

// The wait at an activity's end, as far as the ledger does not have it.
static void recovery_rings_add_wait(reading_t *reading, const gp_activity_record_t *activity, uint64_t ledger_ns)
{
    uint64_t wait_ns = activity->end_ns > activity->left_ns ? activity->end_ns - activity->left_ns : 0;
    uint64_t ready_ns =
        activity->ready_ns != 0 && activity->ready_ns < activity->end_ns ? activity->end_ns - activity->ready_ns : 0;
    wait_ns = recovery_rings_after(activity->end_ns, wait_ns, ledger_ns);
    ready_ns = ready_ns < wait_ns ? ready_ns : wait_ns;
    gp_ledger_record_t *record = wait_ns > 0 ? recovery_rings_add(reading, GP_CHUNK_LEDGER, sizeof(*record)) : NULL;
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

static void recovery_rings_note_over(reading_t *reading, const gp_activity_record_t *activity)
{
    gp_recovery_rings_t *rings = reading->rings;
    if (gp_grow(&rings->overs, &rings->over_room, rings->over_count, sizeof(*rings->overs)) == 0)
        rings->overs[rings->over_count++] = (gp_recovery_over_t){activity->coro_id, activity->end_ns};
    else
        reading->is_short = true;
}

static void recovery_rings_take_activity(reading_t *reading, const taken_t *taken)
{
    const gp_activity_mark_t *mark = (const void *)taken->record;
    const gp_ring_known_coro_t *coro = recovery_rings_coro_of(reading, mark->coro_id, taken);
    uint64_t ledger_ns = coro != NULL ? coro->ledger_ns : UINT64_MAX;
    bool has_waits = mark->coro_id != taken->root_id; // a thread's own has none
    uint32_t trace = recovery_rings_trace_of(reading, mark->trace);
    gp_activity_record_t *record = recovery_rings_add(reading, GP_CHUNK_ACTIVITIES, sizeof(*record));
    if (record == NULL)
        return;
    gp_ring_to_activity(record, mark, &reading->clock, trace);
    recovery_rings_note_time(reading, record->end_ns);
    recovery_rings_note_over(reading, record);
    if (has_waits)
        recovery_rings_add_wait(reading, record, ledger_ns);
}

static void recovery_rings_note_span(reading_t *reading, uint64_t id)
{
    gp_recovery_rings_t *rings = reading->rings;
    if (gp_grow(&rings->span_ids, &rings->span_room, rings->spans, sizeof(id)) == 0)
        rings->span_ids[rings->spans++] = id;
    else
        reading->is_short = true;
}

static void recovery_rings_take_span(reading_t *reading, const taken_t *taken)
{
    const gp_span_mark_t *mark = (const void *)taken->record;
    recovery_rings_coro_of(reading, mark->span.coro_id, taken);
    gp_ring_refs_t refs = {.trace = recovery_rings_trace_of(reading, mark->span.trace)};
    gp_span_record_t *record =
        recovery_rings_add(reading, GP_CHUNK_SPANS, sizeof(*record) + gp_ring_span_text_len(mark));
    if (record == NULL)
        return;
    gp_ring_to_span(record, mark, &reading->clock, refs);
    recovery_rings_note_time(reading, record->end_ns);
    recovery_rings_note_span(reading, record->id);
}

static void recovery_rings_take(void *context, const taken_t *taken)
{
    reading_t *reading = context;
    gp_ring_known_thread_t *thread = gp_ring_known_need_thread(&reading->known, taken->thread);
    if (thread != NULL && !thread->is_there && thread->record.tid == 0) {
        thread->record.tid = taken->tid;
        thread->record.coro_id = taken->root_id;
        recovery_rings_coro_of(reading, taken->root_id, taken);
    }
    switch (atomic_load_explicit(&taken->record->committed, memory_order_relaxed)) {
    case GP_RING_ACTIVITY:
        recovery_rings_take_activity(reading, taken);
        break;
    case GP_RING_SPAN:
        recovery_rings_take_span(reading, taken);
        break;
    default:
        recovery_rings_take_sample(reading, taken);
        break;
    }
}

// Sums that the capture has (threads, counters) come again, enlarged.
static void recovery_rings_add_sums(reading_t *reading)
{
    gp_ring_known_t *known = &reading->known;
    for (size_t i = 0; i < known->threads.count; i++) {
        gp_thread_record_t *record = recovery_rings_add(reading, GP_CHUNK_THREADS, sizeof(*record));
        if (record != NULL)
            *record = known->threads.items[i].record;
    }
    if (known->counters == NULL || known->counters->count <= GP_COUNTER_SAMPLES)
        return;
    size_t bytes = sizeof(*known->counters) + known->counters->count * sizeof(uint64_t);
    gp_counters_record_t *record = recovery_rings_add(reading, GP_CHUNK_COUNTERS, bytes);
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

static int recovery_rings_read_records(reading_t *reading, int fd)
{
    char error[GP_READER_ERROR_SIZE];
    gp_ring_known_begin(&reading->known);
    gp_ring_walk(&reading->walk, NULL, recovery_rings_note_needs, reading);
    reading->known.first_sequence = reading->walk.note->first_sequence;
    int result = gp_ring_known_read(&reading->known, fd, error);
    if (result < 0)
        return result;
    reading->stacks.last = reading->known.last_stack;
    gp_ring_walk(&reading->walk, reading->known.has, recovery_rings_take, reading);
    if (reading->rings->samples + reading->rings->waits + reading->rings->spans > 0)
        recovery_rings_add_sums(reading);
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
        reading->clock = (gp_ring_clock_t){reading->walk.note->start_ticks, file->header.tick_mult};
        result = recovery_rings_read_records(reading, fd);
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
