// SPDX-License-Identifier: MIT
// OpenTelemetry profiles, as ProfilesData, which is also the body of an export request (POST
// /v1development/profiles, application/x-protobuf).
//
// Two profiles: cpu/ns and samples/1. A sample's identity is its stack, its attributes (coroutine.name, coroutine.id,
// thread.name, thread.id) and its link, which has the trace id; greenprof has no span ids yet, they are zeros. Entry 0
// of every table is the zero value, which means "none".
//
// Nothing in the format says which version of it a file has: it is an attribute of the scope.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "export/function_table.h"
#include "export/otlp_fields.h"
#include "export/otlp_resource.h"
#include "export/output.h"
#include "export/write/protobuf.h"
#include "export/write/string_table.h"
#include "report/report_words.h"
#include "report/spill.h"

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, PROFILE_ID_BYTES = 16, LABEL_ATTRIBUTES = 4 };
enum { CPU, SAMPLES, PROFILES }; // the two profiles; readers show the first by default
enum { DICTIONARY = PROFILES, SPILL_PARTS };
enum { DICTIONARY_BYTES = 64 * 1024 }; // that are kept before they are put by

// Indices of a label in the tables; 0 = none.
typedef struct label_indices {
    uint32_t attributes[LABEL_ATTRIBUTES];
    uint32_t link;
} label_indices_t;

typedef struct stack {
    const uint32_t *frames;
    uint32_t depth;
} otlp_stack_t;

typedef struct otlp {
    const gp_report_t *report;
    gp_function_table_t *functions;
    gp_string_table_t strings;
    gp_string_table_t attributes; // "key=value": numbers are those of the attribute table
    gp_string_table_t links;      // trace ids in hex: numbers are those of the link table
    label_indices_t *labels;      // by label
    uint32_t *locations;          // by innermost frame: number in the location table, 0 = none yet
    uint32_t location_count;
    uint32_t *paths;      // by gp_report_row_t.path, less 1: number in the stack table, 0 = none yet
    otlp_stack_t *stacks; // still possible in rows
    uint32_t first_stack; // the first one's number in the stack table
    size_t stack_count, stack_capacity;
    gp_index_t stack_index;
    gp_arena_t arena;          // of the stacks
    gp_text_t dictionary;      // the end of it
    gp_text_t heads[PROFILES]; // of the profiles, all but their samples
    // Samples and the dictionary: lengths come before what they are the lengths of.
    gp_spill_t spill;
    gp_text_t whole, message, inner; // being put together
} otlp_t;

static uint64_t otlp_as_int64(uint64_t value)
{
    return value <= INT64_MAX ? value : INT64_MAX;
}

static void otlp_put_string(otlp_t *otlp, unsigned field, const char *text)
{
    gp_pb_uint(&otlp->message, field, gp_string_table_number(&otlp->strings, text));
}

// Add `message` to a table of the dictionary, or to what else there is.
static void otlp_put_message(otlp_t *otlp, gp_text_t *to, unsigned field)
{
    gp_pb_message(to, field, &otlp->message);
    gp_text_clear(&otlp->message);
}

static void otlp_put_zero_entries(otlp_t *otlp)
{
    static const uint8_t zeros[TRACE_ID_BYTES];
    for (unsigned table = DICTIONARY_MAPPING_TABLE; table <= DICTIONARY_STACK_TABLE; table++) {
        if (table == DICTIONARY_STRING_TABLE) // written at the end
            continue;
        if (table == DICTIONARY_LINK_TABLE) {
            gp_pb_bytes(&otlp->message, LINK_TRACE_ID, zeros, TRACE_ID_BYTES);
            gp_pb_bytes(&otlp->message, LINK_SPAN_ID, zeros, SPAN_ID_BYTES);
        }
        otlp_put_message(otlp, &otlp->dictionary, table);
    }
    gp_string_table_number(&otlp->attributes, "");
    gp_string_table_number(&otlp->links, "");
    otlp->location_count = 1;
}

// Find or add an attribute: a text, or a number where that is NULL. Returns its number, 0 where
// there is nothing to say.
static uint32_t otlp_attribute(otlp_t *otlp, const char *key, const char *text, uint64_t value, const char *unit)
{
    char number[24];
    if (value == 0 && (text == NULL || text[0] == '\0'))
        return 0;
    snprintf(number, sizeof(number), "%" PRIu64, value);
    gp_text_clear(&otlp->inner);
    gp_text_add(&otlp->inner, key, strlen(key));
    gp_text_add(&otlp->inner, "=", 1);
    gp_text_add(&otlp->inner, text ? text : number, strlen(text ? text : number));
    size_t known = otlp->attributes.count;
    uint32_t index = otlp->inner.failed ? 0 : gp_string_table_number(&otlp->attributes, otlp->inner.data);
    if (otlp->attributes.count == known)
        return index;

    gp_text_clear(&otlp->inner);
    if (text != NULL)
        gp_pb_text(&otlp->inner, ANY_VALUE_STRING, text);
    else
        gp_pb_uint(&otlp->inner, ANY_VALUE_INT, otlp_as_int64(value));
    otlp_put_string(otlp, ATTRIBUTE_KEY, key);
    gp_pb_message(&otlp->message, ATTRIBUTE_VALUE, &otlp->inner);
    otlp_put_string(otlp, ATTRIBUTE_UNIT, unit);
    otlp_put_message(otlp, &otlp->dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    return index;
}

static void otlp_put_mapping(otlp_t *otlp, const gp_report_mapping_t *mapping)
{
    uint32_t build_id = otlp_attribute(otlp, "process.executable.build_id.gnu", mapping->build_id, 0, "");
    gp_pb_uint(&otlp->message, MAPPING_MEMORY_START, mapping->start);
    gp_pb_uint(&otlp->message, MAPPING_MEMORY_LIMIT, mapping->end);
    otlp_put_string(otlp, MAPPING_FILENAME, mapping->path);
    if (build_id != 0) {
        gp_text_clear(&otlp->inner);
        gp_pb_varint(&otlp->inner, build_id);
        gp_pb_message(&otlp->message, MAPPING_ATTRIBUTE_INDICES, &otlp->inner);
    }
    otlp_put_message(otlp, &otlp->dictionary, DICTIONARY_MAPPING_TABLE);
}

// Functions have their number in the function table plus 1.
static void otlp_put_function(otlp_t *otlp, const gp_report_frame_t *frame)
{
    otlp_put_string(otlp, FUNCTION_NAME, frame->function);
    otlp_put_string(otlp, FUNCTION_FILENAME, frame->pseudo ? "" : frame->file);
    gp_pb_uint(&otlp->message, FUNCTION_START_LINE, frame->first_line);
    otlp_put_message(otlp, &otlp->dictionary, DICTIONARY_FUNCTION_TABLE);
}

static void otlp_put_line(otlp_t *otlp, uint32_t frame)
{
    gp_text_clear(&otlp->inner);
    gp_pb_uint(&otlp->inner, LINE_FUNCTION_INDEX, otlp->functions->of_frame[frame] + 1u);
    gp_pb_uint(&otlp->inner, LINE_LINE, otlp->report->frames[frame].line);
    gp_pb_message(&otlp->message, LOCATION_LINES, &otlp->inner);
}

// Add the location with the innermost frame `at` on the row, unless it is there. Returns its
// outermost frame's place on the row.
static uint32_t otlp_add_location(otlp_t *otlp, const gp_report_row_t *row, uint32_t at)
{
    const gp_report_frame_t *frames = otlp->report->frames;
    uint32_t innermost = row->frames[at], outermost = at;
    while (outermost > 0 && frames[row->frames[outermost]].inlined)
        outermost--;
    if (otlp->locations[innermost] != 0)
        return outermost;
    otlp->locations[innermost] = otlp->location_count++;
    gp_pb_uint(&otlp->message, LOCATION_MAPPING_INDEX, frames[innermost].mapping);
    gp_pb_uint(&otlp->message, LOCATION_ADDRESS, frames[innermost].address);
    for (uint32_t i = at + 1; i > outermost; i--)
        otlp_put_line(otlp, row->frames[i - 1]);
    otlp_put_message(otlp, &otlp->dictionary, DICTIONARY_LOCATION_TABLE);
    return outermost;
}

static bool otlp_same_stack(const void *owner, uint32_t number, const void *key)
{
    const otlp_stack_t *a = &((const otlp_t *)owner)->stacks[number];
    const gp_report_row_t *b = key;
    return a->depth == b->depth && memcmp(a->frames, b->frames, a->depth * sizeof(*a->frames)) == 0;
}

// The number of a stack that is new; 0 when memory is short.
static uint32_t otlp_new_stack(otlp_t *otlp, const gp_report_row_t *row, uint64_t hash)
{
    uint32_t number = (uint32_t)otlp->stack_count;
    uint32_t *frames = gp_arena_copy(&otlp->arena, row->frames, row->depth * sizeof(*row->frames));
    if (frames == NULL || gp_grow(&otlp->stacks, &otlp->stack_capacity, number, sizeof(*otlp->stacks)) < 0 ||
        gp_index_add(&otlp->stack_index, hash, number) < 0) {
        otlp->dictionary.failed = 1;
        return 0;
    }
    otlp->stacks[number] = (otlp_stack_t){frames, row->depth};
    otlp->stack_count++;
    return otlp->first_stack + number;
}

// Find or add the stack of a row. Returns its number in the stack table, 0 when memory is short.
static uint32_t otlp_add_stack(otlp_t *otlp, const gp_report_row_t *row)
{
    uint64_t hash = gp_hash_bytes(row->frames, row->depth * sizeof(*row->frames));
    uint32_t number = gp_index_find(&otlp->stack_index, hash, otlp_same_stack, otlp, row);
    if (number != GP_INDEX_NONE)
        return otlp->first_stack + number;
    number = otlp_new_stack(otlp, row, hash);
    if (number == 0)
        return 0;
    for (uint32_t i = row->depth; i > 0;)
        i = otlp_add_location(otlp, row, i - 1);
    gp_text_clear(&otlp->inner);
    for (uint32_t i = row->depth; i > 0; i--) {
        gp_pb_varint(&otlp->inner, otlp->locations[row->frames[i - 1]]);
        while (i > 1 && otlp->report->frames[row->frames[i - 1]].inlined)
            i--;
    }
    gp_pb_message(&otlp->message, STACK_LOCATION_INDICES, &otlp->inner);
    otlp_put_message(otlp, &otlp->dictionary, DICTIONARY_STACK_TABLE);
    return number;
}

static int otlp_hex_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

// Find or add the link to a trace. Returns its number, 0 for what is no trace id.
static uint32_t otlp_add_link(otlp_t *otlp, const char *trace)
{
    static const uint8_t no_span[SPAN_ID_BYTES];
    uint8_t id[TRACE_ID_BYTES];
    if (trace == NULL || strspn(trace, "0123456789abcdef") != 2 * TRACE_ID_BYTES)
        return 0;
    size_t known = otlp->links.count;
    uint32_t number = gp_string_table_number(&otlp->links, trace);
    if (otlp->links.count == known)
        return number;
    for (size_t i = 0; i < TRACE_ID_BYTES; i++)
        id[i] = (uint8_t)(otlp_hex_digit(trace[2 * i]) << 4 | otlp_hex_digit(trace[2 * i + 1]));
    gp_pb_bytes(&otlp->message, LINK_TRACE_ID, id, sizeof(id));
    gp_pb_bytes(&otlp->message, LINK_SPAN_ID, no_span, sizeof(no_span));
    otlp_put_message(otlp, &otlp->dictionary, DICTIONARY_LINK_TABLE);
    return number;
}

static label_indices_t otlp_add_label(otlp_t *otlp, const gp_label_t *label)
{
    return (label_indices_t){
        .attributes =
            {
                otlp_attribute(otlp, "coroutine.name", label->coroutine, 0, ""),
                otlp_attribute(otlp, "coroutine.id", NULL, label->coroutine_id, ""),
                otlp_attribute(otlp, "thread.name", label->thread, 0, ""),
                otlp_attribute(otlp, "thread.id", NULL, label->thread_id, ""),
            },
        .link = otlp_add_link(otlp, label->trace),
    };
}

// Rows of one stack are many: it is looked for once.
static uint32_t otlp_find_stack(otlp_t *otlp, const gp_report_row_t *row)
{
    if (row->path == 0)
        return otlp_add_stack(otlp, row);
    uint32_t *known = &otlp->paths[row->path - 1];
    return *known != 0 ? *known : (*known = otlp_add_stack(otlp, row));
}

// The fields of a Sample that are the same in both profiles, into `message`.
static void otlp_begin_sample(otlp_t *otlp, uint32_t stack, const label_indices_t *label)
{
    gp_pb_uint(&otlp->message, SAMPLE_STACK_INDEX, stack);
    gp_text_clear(&otlp->inner);
    for (size_t i = 0; i < LABEL_ATTRIBUTES; i++)
        if (label->attributes[i] != 0)
            gp_pb_varint(&otlp->inner, label->attributes[i]);
    if (otlp->inner.len > 0)
        gp_pb_message(&otlp->message, SAMPLE_ATTRIBUTE_INDICES, &otlp->inner);
    gp_pb_uint(&otlp->message, SAMPLE_LINK_INDEX, label->link);
}

static int otlp_put_sample(otlp_t *otlp, unsigned profile, uint64_t value)
{
    size_t same = otlp->message.len;
    gp_text_clear(&otlp->inner);
    gp_pb_varint(&otlp->inner, otlp_as_int64(value));
    gp_pb_message(&otlp->message, SAMPLE_VALUES, &otlp->inner);
    gp_text_clear(&otlp->whole);
    gp_pb_message(&otlp->whole, PROFILE_SAMPLES, &otlp->message);
    otlp->message.len = same;
    return otlp->whole.failed ? -ENOMEM : gp_spill_add(&otlp->spill, profile, otlp->whole.data, otlp->whole.len);
}

// Put by what there is of the dictionary, if it is more than `most`.
static int otlp_spill_dictionary(otlp_t *otlp, size_t most)
{
    gp_text_t *dictionary = &otlp->dictionary;
    if (dictionary->failed)
        return -ENOMEM;
    if (dictionary->len <= most)
        return 0;
    int result = gp_spill_add(&otlp->spill, DICTIONARY, dictionary->data, dictionary->len);
    gp_text_clear(dictionary);
    return result;
}

static int otlp_put_row(otlp_t *otlp, const gp_report_row_t *row)
{
    static const label_indices_t none;
    const label_indices_t *label = row->label != 0 ? &otlp->labels[row->label - 1] : &none;
    otlp_begin_sample(otlp, otlp_find_stack(otlp, row), label);
    int result = otlp_put_sample(otlp, SAMPLES, row->samples);
    if (result == 0)
        result = otlp_put_sample(otlp, CPU, row->weight_ns);
    gp_text_clear(&otlp->message);
    return result == 0 ? otlp_spill_dictionary(otlp, DICTIONARY_BYTES) : result;
}

// Forget the stacks, which no other row has.
static void otlp_forget_stacks(otlp_t *otlp)
{
    otlp->first_stack += (uint32_t)otlp->stack_count;
    otlp->stack_count = 0;
    gp_index_free(&otlp->stack_index);
    gp_arena_free(&otlp->arena);
}

static int otlp_put_part(void *context, const gp_report_row_t *rows, size_t count)
{
    otlp_t *otlp = context;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = otlp_put_row(otlp, &rows[i]);
    if (otlp->report->rooted)
        otlp_forget_stacks(otlp);
    return result;
}

static void otlp_put_value_type(otlp_t *otlp, gp_text_t *profile, enum profile_field field, const char *type,
                                const char *unit)
{
    otlp_put_string(otlp, VALUE_TYPE_TYPE, type);
    otlp_put_string(otlp, VALUE_TYPE_UNIT, unit);
    otlp_put_message(otlp, profile, field);
}

// An id that is the same when the same profile is written again.
static void otlp_put_profile_id(const gp_report_t *report, gp_text_t *profile, unsigned which)
{
    uint64_t id[PROFILE_ID_BYTES / sizeof(uint64_t)];
    id[0] = gp_hash_more(gp_hash_u64(report->start_realtime_ns), report->total_ns);
    id[1] = gp_hash_more(gp_hash_bytes(report->title, strlen(report->title)), which + 1);
    gp_pb_bytes(profile, PROFILE_PROFILE_ID, id, sizeof(id));
}

// Attributes of a profile as a whole: losses, by reason.
static void otlp_put_profile_attributes(otlp_t *otlp, gp_text_t *profile)
{
    const gp_report_t *report = otlp->report;
    gp_text_t indices = {0};
    char key[64];
    if (report->sampled_ns > 0)
        gp_pb_varint(&indices, otlp_attribute(otlp, "greenprof.sampled_ns", NULL, report->sampled_ns, "ns"));
    for (uint32_t i = 0; i < report->counter_count; i++) {
        if (report->counters[i] == 0 || gp_counter_name(i) == NULL)
            continue;
        snprintf(key, sizeof(key), "greenprof.%s", gp_counter_name(i));
        gp_pb_varint(&indices, otlp_attribute(otlp, key, NULL, report->counters[i], "1"));
    }
    if (indices.len > 0 || indices.failed)
        gp_pb_message(profile, PROFILE_ATTRIBUTE_INDICES, &indices);
    gp_text_free(&indices);
}

static void otlp_put_profile_head(otlp_t *otlp, unsigned which)
{
    const gp_report_t *report = otlp->report;
    gp_text_t *profile = &otlp->heads[which];
    if (which == CPU)
        otlp_put_value_type(otlp, profile, PROFILE_SAMPLE_TYPE, gp_measure_name(report->measure), "ns");
    else
        otlp_put_value_type(otlp, profile, PROFILE_SAMPLE_TYPE, gp_count_words(report), "1");
    gp_pb_fixed64(profile, PROFILE_TIME_UNIX_NANO, report->start_realtime_ns);
    gp_pb_uint(profile, PROFILE_DURATION_NANO, report->duration_ns);
    otlp_put_value_type(otlp, profile, PROFILE_PERIOD_TYPE, "cpu", "ns");
    gp_pb_uint(profile, PROFILE_PERIOD, report->frequency_hz ? 1000000000 / report->frequency_hz : 0);
    otlp_put_profile_id(report, profile, which);
    otlp_put_profile_attributes(otlp, profile);
}

// The tables and both profiles.
static int otlp_put_tables(otlp_t *otlp)
{
    const gp_report_t *report = otlp->report;
    int result = 0;
    otlp_put_zero_entries(otlp);
    for (uint32_t i = 0; i < report->mapping_count; i++)
        otlp_put_mapping(otlp, &report->mappings[i]);
    for (uint32_t i = 0; i < otlp->functions->function_count; i++)
        otlp_put_function(otlp, otlp->functions->functions[i].frame);
    for (uint32_t i = 0; i < report->label_count && result == 0; i++) {
        otlp->labels[i] = otlp_add_label(otlp, &report->labels[i]);
        result = otlp_spill_dictionary(otlp, DICTIONARY_BYTES);
    }
    for (unsigned which = 0; which < PROFILES; which++)
        otlp_put_profile_head(otlp, which);
    if (result == 0)
        result = gp_report_each_part(report, otlp_put_part, otlp);
    for (size_t i = 0; i < otlp->strings.count && result == 0; i++) {
        gp_pb_text(&otlp->dictionary, DICTIONARY_STRING_TABLE, otlp->strings.texts[i]);
        result = otlp_spill_dictionary(otlp, DICTIONARY_BYTES);
    }
    return result == 0 ? otlp_spill_dictionary(otlp, 0) : result;
}

// Begin a field of `text` and `more` bytes behind it: the tag, length and `text` go to `out`.
static void otlp_begin_field(gp_text_t *out, unsigned field, const gp_text_t *text, uint64_t more)
{
    gp_pb_begin(out, field, text->len + more);
    if (text->len > 0)
        gp_text_add(out, text->data, text->len);
    out->failed = out->failed || text->failed;
}

static int otlp_write_bytes(void *context, const void *bytes, size_t len)
{
    fwrite(bytes, 1, len, context);
    return gp_output_state(context);
}

static int otlp_write_text(const gp_text_t *text, FILE *out)
{
    return text->failed ? -ENOMEM : otlp_write_bytes(out, text->data, text->len);
}

// ResourceProfiles, around the profiles: lengths from the inside out, then bytes from the outside in.
static int otlp_write_resource(otlp_t *otlp, FILE *out)
{
    gp_text_t scope = {0}, resource = {0}, data = {0}, profiles[PROFILES] = {0};
    uint64_t scope_bytes = 0;
    int result = 0;
    for (unsigned which = 0; which < PROFILES; which++) {
        otlp_begin_field(&profiles[which], SCOPE_PROFILES_PROFILES, &otlp->heads[which],
                         gp_spill_bytes(&otlp->spill, which));
        scope_bytes += profiles[which].len + gp_spill_bytes(&otlp->spill, which);
    }
    gp_pb_text(&otlp->message, SCOPE_NAME, "greenprof");
    gp_otlp_put_text(&otlp->message, SCOPE_ATTRIBUTES, "opentelemetry.proto.version", PROTO_VERSION);
    otlp_put_message(otlp, &scope, SCOPE_PROFILES_SCOPE);
    gp_otlp_put_resource(&otlp->message, otlp->report->title, otlp->report->resource);
    otlp_put_message(otlp, &resource, RESOURCE_PROFILES_RESOURCE);
    otlp_begin_field(&resource, RESOURCE_PROFILES_SCOPE_PROFILES, &scope, scope_bytes);
    otlp_begin_field(&data, DATA_RESOURCE_PROFILES, &resource, scope_bytes);
    result = otlp_write_text(&data, out);
    for (unsigned which = 0; which < PROFILES && result == 0; which++) {
        result = otlp_write_text(&profiles[which], out);
        if (result == 0)
            result = gp_spill_read(&otlp->spill, which, 1, otlp_write_bytes, out);
    }
    for (unsigned which = 0; which < PROFILES; which++)
        gp_text_free(&profiles[which]);
    gp_text_free(&scope);
    gp_text_free(&resource);
    gp_text_free(&data);
    return result;
}

static int otlp_write_data(otlp_t *otlp, FILE *out)
{
    int result = otlp_put_tables(otlp);
    if (result == 0 && (otlp->message.failed || otlp->inner.failed || otlp->strings.failed || otlp->attributes.failed ||
                        otlp->links.failed || otlp->dictionary.failed))
        result = -ENOMEM;
    if (result == 0)
        result = otlp_write_resource(otlp, out);
    gp_text_clear(&otlp->whole);
    gp_pb_begin(&otlp->whole, DATA_DICTIONARY, gp_spill_bytes(&otlp->spill, DICTIONARY));
    if (result == 0)
        result = otlp_write_text(&otlp->whole, out);
    return result == 0 ? gp_spill_read(&otlp->spill, DICTIONARY, 1, otlp_write_bytes, out) : result;
}

static bool otlp_allocate(otlp_t *otlp)
{
    const gp_report_t *report = otlp->report;
    otlp->functions = gp_function_table_create_uncharged(report);
    otlp->labels = calloc((size_t)report->label_count + 1, sizeof(*otlp->labels));
    otlp->locations = calloc((size_t)report->frame_count + 1, sizeof(*otlp->locations));
    otlp->paths = calloc((size_t)report->path_count + 1, sizeof(*otlp->paths));
    otlp->first_stack = 1; // number 0 is "none"
    return otlp->functions != NULL && otlp->labels != NULL && otlp->locations != NULL && otlp->paths != NULL &&
           gp_spill_init(&otlp->spill, SPILL_PARTS) == 0;
}

int gp_otlp_write(const gp_report_t *report, FILE *out)
{
    otlp_t otlp = {.report = report};
    int result = otlp_allocate(&otlp) ? otlp_write_data(&otlp, out) : -ENOMEM;
    gp_function_table_free(otlp.functions);
    gp_string_table_free(&otlp.strings);
    gp_string_table_free(&otlp.attributes);
    gp_string_table_free(&otlp.links);
    gp_index_free(&otlp.stack_index);
    gp_text_free(&otlp.dictionary);
    for (unsigned which = 0; which < PROFILES; which++)
        gp_text_free(&otlp.heads[which]);
    gp_spill_free(&otlp.spill);
    gp_arena_free(&otlp.arena);
    gp_text_free(&otlp.whole);
    gp_text_free(&otlp.message);
    gp_text_free(&otlp.inner);
    free(otlp.labels);
    free(otlp.locations);
    free(otlp.paths);
    free(otlp.stacks);
    return result;
}
