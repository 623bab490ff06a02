// SPDX-License-Identifier: MIT
// The records of one of several captures, in the numbers and on the clock of all.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file_stamp.h"
#include "capture/several/captures_private.h"

enum { HOG_BITS = 40, SAMPLES_AT_ONCE = 256 };

// --- fields that are numbers or times

typedef enum meaning { PLAIN, TIME, TIME_IF_SET, CORO, THREAD, CALLED, TRACE, STACK, LOC, HOG } meaning_t;

typedef struct field {
    uint16_t offset;
    uint16_t meaning;
} field_t;

enum { FIELDS_MAX = 9 };

typedef struct shape { // of a record type
    size_t bytes;
    field_t fields[FIELDS_MAX]; // up to the first plain one
} shape_t;

// clang-format off
#define FIELD(type, name, meaning) {offsetof(gp_##type##_record_t, name), meaning},
#define SHAPE(number, id, name, how, turn)                                                                             \
    [GP_CHUNK_##id] = {sizeof(gp_##name##_record_t), {GP_FIELDS_##name(FIELD) {0, PLAIN}}},
static const shape_t shapes[] = {GP_RECORDS_OF_ONE_SIZE(SHAPE) SHAPE(, HOGS, hog, , ) SHAPE(, SPANS, span, , )};
// clang-format on

static uint32_t captures_records_narrow(const gp_captures_pass_t *pass, meaning_t meaning, uint32_t number)
{
    gp_captures_ids_t *all = &pass->captures->ids;
    gp_capture_ids_t *ids = &pass->input->ids;
    switch (meaning) {
    case THREAD:
        return (uint32_t)gp_counted_on(ids, GP_COUNTED_THREADS, number);
    case CALLED:
        return (uint32_t)gp_counted_on(ids, GP_COUNTED_CALLED, number);
    case TRACE:
        return gp_common_find(all, ids, GP_COMMON_TRACES, number);
    default:
        return gp_common_find(all, ids, GP_COMMON_STACKS, number);
    }
}

static uint64_t captures_records_wide(const gp_captures_pass_t *pass, meaning_t meaning, uint64_t number)
{
    switch (meaning) {
    case TIME:
        return number + pass->input->shift_ns;
    case TIME_IF_SET:
        return number != 0 ? number + pass->input->shift_ns : 0;
    case CORO:
        return gp_counted_on(&pass->input->ids, GP_COUNTED_COROS, number);
    case HOG:
        return (uint64_t)pass->captures->at << HOG_BITS | number;
    default:
        return gp_common_loc(&pass->captures->ids, &pass->input->ids, number);
    }
}

static void captures_records_translate(const gp_captures_pass_t *pass, const shape_t *shape, uint8_t *record)
{
    for (const field_t *field = shape->fields; field->meaning != PLAIN; field++) {
        uint8_t *at = record + field->offset;
        if (field->meaning == THREAD || field->meaning == CALLED || field->meaning == TRACE ||
            field->meaning == STACK) {
            uint32_t number = captures_records_narrow(pass, field->meaning, *(uint32_t *)(void *)at);
            memcpy(at, &number, sizeof(number));
        } else {
            uint64_t number = captures_records_wide(pass, field->meaning, *(uint64_t *)(void *)at);
            memcpy(at, &number, sizeof(number));
        }
    }
}

// --- copies: what the reader hands out is not to be changed

void *gp_captures_room(gp_captures_t *captures, size_t bytes)
{
    size_t room = bytes + 8;
    if (room > captures->records_room) {
        void *records = realloc(captures->records, 2 * room);
        if (records == NULL)
            return NULL;
        captures->records = records;
        captures->records_room = 2 * room;
    }
    memset((char *)captures->records + bytes, 0, 8);
    return captures->records;
}

static void *captures_records_copy(const gp_captures_pass_t *pass, const void *records, size_t bytes)
{
    void *room = gp_captures_room(pass->captures, bytes);
    return room != NULL ? memcpy(room, records, bytes) : NULL;
}

static int captures_records_pass_on(const gp_captures_pass_t *pass, enum gp_chunk_type type, const void *records,
                                    size_t bytes)
{
    return pass->sink(pass->context, type, records, bytes);
}

static int captures_records_pass_fixed(const gp_captures_pass_t *pass, enum gp_chunk_type type, const void *records,
                                       size_t count)
{
    const shape_t *shape = &shapes[type];
    uint8_t *copied = captures_records_copy(pass, records, count * shape->bytes);
    if (copied == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        captures_records_translate(pass, shape, copied + i * shape->bytes);
    return captures_records_pass_on(pass, type, copied, count * shape->bytes);
}

// A census is left out: a moment of one process.
static int captures_records_on_other(void *context, enum gp_chunk_type type, const void *record)
{
    return type != GP_CHUNK_CENSUS ? captures_records_pass_fixed(context, type, record, 1) : 0;
}

static uint64_t captures_records_no_earlier(uint64_t ns, uint64_t least_ns)
{
    return ns > least_ns ? ns : least_ns;
}

static uint64_t captures_records_part_of(uint64_t whole, uint64_t part, uint64_t of)
{
    return (uint64_t)((unsigned __int128)whole * part / of);
}

// An activity that lasts across the end of the part before is in both parts: this one tells the time from there on.
static gp_activity_record_t captures_records_cut_activity(const gp_captures_pass_t *pass,
                                                          const gp_activity_record_t *record)
{
    const gp_capture_input_t *input = pass->input;
    gp_activity_record_t cut = *record;
    if (!gp_captures_goes_on(pass->captures, input) || !input[-1].ended)
        return cut;
    uint64_t end_ns = input[-1].end.time_ns + input[-1].shift_ns;
    uint64_t from_ns = end_ns > input->shift_ns ? end_ns - input->shift_ns : 0;
    cut.start_ns = captures_records_no_earlier(cut.start_ns, from_ns);
    cut.left_ns = captures_records_no_earlier(cut.left_ns, cut.start_ns);
    cut.end_ns = captures_records_no_earlier(cut.end_ns, cut.left_ns);
    if (cut.slice_ns > cut.left_ns - cut.start_ns) {
        uint64_t slice_ns = cut.left_ns - cut.start_ns;
        cut.cpu_ns = captures_records_part_of(cut.cpu_ns, slice_ns, cut.slice_ns);
        cut.blocked_ns = captures_records_part_of(cut.blocked_ns, slice_ns, cut.slice_ns);
        cut.gil_ns = captures_records_part_of(cut.gil_ns, slice_ns, cut.slice_ns);
        cut.lock_ns = captures_records_part_of(cut.lock_ns, slice_ns, cut.slice_ns);
        cut.slice_ns = slice_ns;
    }
    if (cut.ready_ns != 0)
        cut.ready_ns = captures_records_no_earlier(cut.ready_ns, cut.left_ns);
    return cut;
}

static int captures_records_on_activity(void *context, const gp_activity_record_t *record)
{
    const gp_activity_record_t cut = captures_records_cut_activity(context, record);
    ((gp_captures_pass_t *)context)->input->activities++;
    return captures_records_pass_fixed(context, GP_CHUNK_ACTIVITIES, &cut, 1);
}

static int captures_records_on_open_activity(void *context, const gp_activity_record_t *record)
{
    const gp_activity_record_t cut = captures_records_cut_activity(context, record);
    return captures_records_pass_fixed(context, GP_CHUNK_OPEN_ACTIVITIES, &cut, 1);
}

static int captures_records_on_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_captures_pass_t *pass = context;
    int result = 0;
    pass->input->samples += count;
    for (size_t i = 0; i < count && result == 0; i += SAMPLES_AT_ONCE)
        result = captures_records_pass_fixed(pass, GP_CHUNK_SAMPLES, &samples[i],
                                             count - i < SAMPLES_AT_ONCE ? count - i : (size_t)SAMPLES_AT_ONCE);
    return result;
}

static int captures_records_on_hog(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks)
{
    const gp_captures_pass_t *pass = context;
    size_t bytes = sizeof(*hog) + hog->stack_count * sizeof(*stacks); // they stand behind it
    gp_hog_record_t *record = captures_records_copy(pass, hog, bytes);
    if (record == NULL)
        return -ENOMEM;
    captures_records_translate(pass, &shapes[GP_CHUNK_HOGS], (uint8_t *)record);
    gp_hog_stack_t *copied = (gp_hog_stack_t *)(void *)(record + 1);
    for (uint32_t i = 0; i < hog->stack_count; i++)
        copied[i].stack_id = captures_records_narrow(pass, STACK, copied[i].stack_id);
    return captures_records_pass_on(pass, GP_CHUNK_HOGS, record, bytes);
}

// With name and fields, which stand behind it.
static int captures_records_pass_span(const gp_captures_pass_t *pass, enum gp_chunk_type type,
                                      const gp_span_record_t *span)
{
    size_t bytes = sizeof(*span) + span->name_len + span->fields_len;
    uint8_t *record = captures_records_copy(pass, span, bytes);
    if (record == NULL)
        return -ENOMEM;
    captures_records_translate(pass, &shapes[GP_CHUNK_SPANS], record);
    return captures_records_pass_on(pass, type, record, bytes);
}

static int captures_records_on_span(void *context, const gp_span_record_t *span, const char *name, const char *fields)
{
    (void)name, (void)fields;
    return captures_records_pass_span(context, GP_CHUNK_SPANS, span);
}

static int captures_records_on_open_span(void *context, const gp_span_record_t *span, const char *name,
                                         const char *fields)
{
    (void)name, (void)fields;
    return captures_records_pass_span(context, GP_CHUNK_OPEN_SPANS, span);
}

// --- definitions of what captures have in common

static gp_common_key_t captures_records_key_of(const void *bytes, size_t len, uint64_t more)
{
    XXH128_hash_t hash = XXH3_128bits(bytes, len);
    return (gp_common_key_t){{hash.low64, hash.high64 ^ more}};
}

// Give a definition its common number, and pass it on where it is new.
//   record: a copy; number: its field with the number.
static int captures_records_define(const gp_captures_pass_t *pass, gp_common_t kind, enum gp_chunk_type type,
                                   void *record, size_t bytes, gp_common_key_t key, uint32_t *number, uint32_t largest)
{
    bool is_new;
    uint32_t common = gp_common_define(&pass->captures->ids, &pass->input->ids, kind, *number, key, &is_new);
    if (common == 0)
        return -ENOMEM;
    if (common > largest)
        return -EOVERFLOW;
    *number = common;
    return is_new ? captures_records_pass_on(pass, type, record, bytes) : 0;
}

// A module without a build-id has one; 0 = not known.
static uint64_t captures_records_stamp_of(const gp_module_record_t *module)
{
    gp_file_stamp_t stamp;
    memcpy(&stamp, module->build_id, sizeof(stamp));
    return stamp.bytes ^ (uint64_t)stamp.changed_ns;
}

static int captures_records_on_module(void *context, const gp_module_record_t *module, const char *path,
                                      size_t path_len)
{
    size_t bytes = sizeof(*module) + path_len;
    gp_module_record_t *record = captures_records_copy(context, module, bytes);
    gp_common_key_t key = module->build_id_len > 0
                              ? captures_records_key_of(module->build_id, module->build_id_len, 1)
                              : captures_records_key_of(path, path_len, captures_records_stamp_of(module));
    return record != NULL ? captures_records_define(context, GP_COMMON_MODULES, GP_CHUNK_MODULES, record, bytes, key,
                                                    &record->id, GP_MODULE_LANGUAGE - 1)
                          : -ENOMEM;
}

static int captures_records_on_function(void *context, const gp_function_record_t *function, const char *name,
                                        const char *file)
{
    size_t bytes = sizeof(*function) + function->name_len + function->file_len;
    gp_function_record_t *record = captures_records_copy(context, function, bytes);
    gp_common_key_t key = captures_records_key_of(name, function->name_len, function->first_line);
    gp_common_key_t place = captures_records_key_of(file, function->file_len, function->first_line);
    key.words[0] ^= place.words[1] * 3; // name and file are not interchangeable
    return record != NULL ? captures_records_define(context, GP_COMMON_FUNCTIONS, GP_CHUNK_FUNCTIONS, record, bytes,
                                                    key, &record->number, GP_LANGUAGE_FUNCTIONS_MAX)
                          : -ENOMEM;
}

static int captures_records_on_trace(void *context, const gp_trace_record_t *trace)
{
    gp_trace_record_t *record = captures_records_copy(context, trace, sizeof(*trace));
    gp_common_key_t key;
    if (trace->index == 0)
        return 0;
    memcpy(&key, trace->id, sizeof(key));
    return record != NULL ? captures_records_define(context, GP_COMMON_TRACES, GP_CHUNK_TRACES, record, sizeof(*record),
                                                    key, &record->index, UINT32_MAX)
                          : -ENOMEM;
}

static int captures_records_on_stack(void *context, const gp_stack_record_t *stack, const gp_loc_t *frames)
{
    const gp_captures_pass_t *pass = context;
    size_t depth = stack->depth, bytes = depth * sizeof(*frames);
    gp_stack_record_t *record =
        captures_records_copy(pass, stack, sizeof(*stack) + bytes); // the frames stand behind it
    if (record == NULL)
        return -ENOMEM;
    gp_loc_t *locs = (gp_loc_t *)(void *)(record + 1);
    for (size_t i = 0; i < depth; i++)
        locs[i] = gp_common_loc(&pass->captures->ids, &pass->input->ids, locs[i]);
    return captures_records_define(pass, GP_COMMON_STACKS, GP_CHUNK_STACKS, record, sizeof(*stack) + bytes,
                                   captures_records_key_of(locs, bytes, stack->flags), &record->id, UINT32_MAX);
}

// --- what is kept until all are read

const char *const gp_captures_text_keys[GP_TEXTS] = {[GP_TEXT_EXE] = "exe",
                                                     [GP_TEXT_CMDLINE] = "cmdline",
                                                     [GP_TEXT_HOSTNAME] = "hostname",
                                                     [GP_TEXT_SERVICE] = "service"};

static int captures_records_on_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    gp_capture_input_t *input = ((gp_captures_pass_t *)context)->input;
    gp_capture_text_t *texts = input->texts;
    if (key_len == strlen("process") && memcmp(key, "process", key_len) == 0)
        return gp_captures_keep_process(input, value, value_len);
    if (key_len == strlen(GP_NOT_KNOWN_KEY) && memcmp(key, GP_NOT_KNOWN_KEY, key_len) == 0)
        return gp_captures_pass_meta(context, GP_NOT_KNOWN_KEY, value, value_len);
    for (size_t i = 0; i < GP_TEXTS; i++) {
        if (strlen(gp_captures_text_keys[i]) != key_len || memcmp(key, gp_captures_text_keys[i], key_len) != 0)
            continue;
        free(texts[i].text);
        // -Wanalyzer-malloc-leak: the input keeps it.
        texts[i] = (gp_capture_text_t){calloc(value_len + 1, 1), value_len};
        if (texts[i].text == NULL)
            return -ENOMEM;
        memcpy(texts[i].text, value, value_len);
    }
    return 0;
}

static int captures_records_on_counters(void *context, const gp_counters_record_t *counters, const uint64_t *values)
{
    gp_capture_input_t *input = ((gp_captures_pass_t *)context)->input;
    input->totals = *counters;
    memset(input->counters, 0, sizeof(input->counters));
    for (uint64_t i = 0; i < counters->count && i < GP_COUNTER_COUNT; i++)
        input->counters[i] = values[i];
    return 0;
}

static int captures_records_on_end(void *context, const gp_end_record_t *end)
{
    gp_capture_input_t *input = ((gp_captures_pass_t *)context)->input;
    input->end = *end;
    input->ended = true;
    return 0;
}

// A record with a tail that is new to captures belongs here, too ("samples" is another way to be given them).
#define ONE(number, id, name, how, turn) +1
_Static_assert(sizeof(gp_reader_handlers_t) == (14 GP_RECORDS_OF_ONE_SIZE(ONE)) * sizeof(int (*)(void)),
               "every kind of record, and `sample_words` and `kept`, and not `chunk`");

const gp_reader_handlers_t gp_captures_handlers = {
    .meta = captures_records_on_meta,
    .module = captures_records_on_module,
    .function = captures_records_on_function,
    .trace = captures_records_on_trace,
    .stack = captures_records_on_stack,
    .samples = captures_records_on_samples,
    .hog = captures_records_on_hog,
    .span = captures_records_on_span,
    .open_span = captures_records_on_open_span,
    .activity = captures_records_on_activity,
    .open_activity = captures_records_on_open_activity,
    .counters = captures_records_on_counters,
    .end = captures_records_on_end,
    .other = captures_records_on_other,
};
