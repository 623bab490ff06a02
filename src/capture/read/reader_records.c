// SPDX-License-Identifier: MIT
#include "capture/read/reader_records.h"

#include <errno.h>

#include "capture/read/reader_payload.h"

// A payload that is being taken apart.
typedef struct records {
    const uint8_t *at;
    size_t left;
    const gp_reader_handlers_t *handlers;
    void *context;
} records_t;

// Take `len` bytes and their padding to 8. Returns NULL when there are not so many.
static const void *reader_records_take(records_t *records, uint64_t len)
{
    const uint8_t *at = records->at;
    if (len > records->left)
        return NULL;
    size_t padded = ((size_t)len + 7) & ~(size_t)7;
    if (padded > records->left) // the last record's padding may be the chunk's
        padded = records->left;
    records->at += padded;
    records->left -= padded;
    return at;
}

static int reader_records_meta_record(records_t *records)
{
    const gp_meta_record_t *record = reader_records_take(records, sizeof(*record));
    const char *text = record ? reader_records_take(records, (uint64_t)record->key_len + record->value_len) : NULL;
    if (text == NULL)
        return -EBADMSG;
    if (records->handlers->meta == NULL)
        return 0;
    return records->handlers->meta(records->context, text, record->key_len, text + record->key_len, record->value_len);
}

static int reader_records_module_record(records_t *records)
{
    const gp_module_record_t *record = reader_records_take(records, sizeof(*record));
    const char *path = record ? reader_records_take(records, record->path_len) : NULL;
    if (path == NULL || record->build_id_len > sizeof(record->build_id))
        return -EBADMSG;
    if (records->handlers->module == NULL)
        return 0;
    return records->handlers->module(records->context, record, path, record->path_len);
}

static int reader_records_function_record(records_t *records)
{
    const gp_function_record_t *record = reader_records_take(records, sizeof(*record));
    const char *name = record ? reader_records_take(records, (uint64_t)record->name_len + record->file_len) : NULL;
    if (name == NULL)
        return -EBADMSG;
    if (records->handlers->function == NULL)
        return 0;
    return records->handlers->function(records->context, record, name, name + record->name_len);
}

static int reader_records_stack_record(records_t *records)
{
    const gp_stack_record_t *record = reader_records_take(records, sizeof(*record));
    const gp_loc_t *frames = record ? reader_records_take(records, (uint64_t)record->depth * sizeof(gp_loc_t)) : NULL;
    if (frames == NULL)
        return -EBADMSG;
    if (records->handlers->stack == NULL)
        return 0;
    return records->handlers->stack(records->context, record, frames);
}

static int reader_records_counters_record(records_t *records)
{
    const gp_counters_record_t *record = reader_records_take(records, sizeof(*record));
    const uint64_t *values = NULL;
    if (record != NULL && record->count <= GP_CHUNK_MAX / sizeof(*values))
        values = reader_records_take(records, record->count * sizeof(*values));
    if (values == NULL)
        return -EBADMSG;
    if (records->handlers->counters == NULL)
        return 0;
    return records->handlers->counters(records->context, record, values);
}

static int reader_records_hog_record(records_t *records)
{
    const gp_hog_record_t *record = reader_records_take(records, sizeof(*record));
    const gp_hog_stack_t *stacks =
        record ? reader_records_take(records, (uint64_t)record->stack_count * sizeof(*stacks)) : NULL;
    if (stacks == NULL)
        return -EBADMSG;
    if (records->handlers->hog == NULL)
        return 0;
    return records->handlers->hog(records->context, record, stacks);
}

// Are there as many texts as it says, each with its end?
static bool reader_records_has_fields(const gp_span_record_t *record, const char *fields)
{
    size_t texts = 0;
    for (size_t i = 0; i < record->fields_len; i++)
        texts += fields[i] == '\0';
    return texts == 2 * (size_t)record->field_count &&
           (record->fields_len == 0 || fields[record->fields_len - 1] == '\0');
}

typedef int span_handler_t(void *context, const gp_span_record_t *span, const char *name, const char *fields);

static int reader_records_span_like_record(records_t *records, span_handler_t *handler)
{
    const gp_span_record_t *record = reader_records_take(records, sizeof(*record));
    const char *name = record ? reader_records_take(records, (uint64_t)record->name_len + record->fields_len) : NULL;
    if (name == NULL || !reader_records_has_fields(record, name + record->name_len))
        return -EBADMSG;
    return handler != NULL ? handler(records->context, record, name, name + record->name_len) : 0;
}

static int reader_records_span_record(records_t *records)
{
    return reader_records_span_like_record(records, records->handlers->span);
}

static int reader_records_open_span_record(records_t *records)
{
    return reader_records_span_like_record(records, records->handlers->open_span);
}

#define RECORD_OF_ONE_SIZE(number, id, name, how, turn)                                                                \
    static int reader_records_##name##_record(records_t *records)                                                      \
    {                                                                                                                  \
        const gp_##name##_record_t *record = reader_records_take(records, sizeof(*record));                            \
        if (record == NULL)                                                                                            \
            return -EBADMSG;                                                                                           \
        if (records->handlers->name != NULL)                                                                           \
            return records->handlers->name(records->context, record);                                                  \
        return records->handlers->other != NULL ? records->handlers->other(records->context, number, record) : 0;      \
    }
GP_RECORDS_OF_ONE_SIZE(RECORD_OF_ONE_SIZE)

// All that are left at once, where the handler takes them so.
static int reader_records_samples_record(records_t *records)
{
    size_t count = records->left / sizeof(gp_sample_record_t);
    if (records->handlers->samples == NULL || count == 0)
        return reader_records_sample_record(records);
    const gp_sample_record_t *samples = reader_records_take(records, count * sizeof(*samples));
    return records->handlers->samples(records->context, samples, count);
}

// Read by gp_reader_read() itself, where it has to.
static int reader_records_header_record(records_t *records)
{
    return reader_records_take(records, sizeof(gp_file_header_t)) != NULL ? 0 : -EBADMSG;
}

#define OF_ONE_SIZE(number, id, name, how, turn)                                                                       \
    [number] = {reader_records_##name##_record, sizeof(gp_##name##_record_t)},
#define WITH_TAIL(number, id, name, how, turn) [number] = {reader_records_##name##_record, 0},
static const struct record_type {
    int (*parse)(records_t *records);
    size_t bytes; // of a record, where all are of one size; else 0
} record_types[GP_CHUNK_TYPES] = {[GP_CHUNK_HEADER] = {reader_records_header_record, 0},
                                  GP_RECORDS_OF_ONE_SIZE(OF_ONE_SIZE) GP_RECORDS_WITH_TAIL(WITH_TAIL)};

#define FITS(number, id, name, how, turn) &&sizeof(gp_##name##_record_t) / 4 <= GP_UNPACK_WORDS_MAX
_Static_assert(1 GP_RECORDS_OF_ONE_SIZE(FITS), "records of one size can be unpacked");

// Returns NULL for a type that this reader does not know.
static const struct record_type *reader_records_type_of(uint16_t type)
{
    return type < GP_CHUNK_TYPES && record_types[type].parse != NULL ? &record_types[type] : NULL;
}

static int reader_records_parse(const struct record_type *type, records_t *records)
{
    // -Wanalyzer-null-dereference: a caller looks up the type first.
    return type == &record_types[GP_CHUNK_SAMPLES] ? reader_records_samples_record(records) : type->parse(records);
}

static bool reader_records_are_wanted(uint16_t type, const gp_reader_handlers_t *handlers)
{
#define WANTED(number, id, name, how, turn)                                                                            \
    case number:                                                                                                       \
        return handlers->name != NULL;
#define WANTED_OR_OTHER(number, id, name, how, turn)                                                                   \
    case number:                                                                                                       \
        return handlers->name != NULL || handlers->other != NULL;
    if (type == GP_CHUNK_SAMPLES && handlers->samples != NULL)
        return true;
    switch (type) {
        GP_RECORDS_OF_ONE_SIZE(WANTED_OR_OTHER)
        GP_RECORDS_WITH_TAIL(WANTED)
    default:
        return true;
    }
}

// Hand whole records to each taker. A bad record is bad for all of them.
static int reader_records_give(uint16_t type, const void *bytes, size_t len, const gp_taker_t *takers)
{
    const struct record_type *of = reader_records_type_of(type);
    int result = 0;
    for (const gp_taker_t *taker = takers; taker != NULL && (result == 0 || result == -EBADMSG); taker = taker->next) {
        records_t records = {bytes, len, taker->handlers, taker->context};
        if (!reader_records_are_wanted(type, taker->handlers))
            continue;
        int own = 0;
        while (records.left > 0 && own == 0)
            own = reader_records_parse(of, &records);
        result = own != 0 ? own : result;
    }
    return result;
}

int gp_reader_records(uint16_t type, const uint8_t *payload, size_t len, const gp_taker_t *takers, bool *known)
{
    *known = reader_records_type_of(type) != NULL;
    return *known ? reader_records_give(type, payload, len, takers) : 0;
}

int gp_reader_packed_records(uint16_t type, const uint8_t *payload, size_t len, const gp_taker_t *takers, bool *known)
{
    _Alignas(uint64_t) uint32_t block[GP_UNPACK_BLOCK * GP_UNPACK_WORDS_MAX];
    gp_unpacker_t unpacker;
    const struct record_type *of = reader_records_type_of(type);
    size_t bytes = of != NULL ? of->bytes : 0, count;
    int result = gp_unpack_begin(&unpacker, payload, len);
    uint64_t words = type == GP_CHUNK_SAMPLES ? gp_takers_sample_words(takers) : 0;

    *known = bytes != 0;
    if (!*known)
        return 0;
    while (result == 0 && (count = gp_unpack_next(&unpacker, block, bytes / 4, words != 0 ? words : GP_UNPACK_ALL)) > 0)
        result = reader_records_give(type, block, count * bytes, takers);
    return result;
}

bool gp_reader_is_wanted(uint16_t type, const gp_taker_t *takers)
{
    bool is_wanted = false;
    for (const gp_taker_t *taker = takers; taker != NULL; taker = taker->next)
        is_wanted |= reader_records_are_wanted(type, taker->handlers);
    return is_wanted;
}

// --- takers

bool gp_takers_want_samples(const gp_taker_t *takers)
{
    while (takers != NULL && takers->handlers->samples == NULL)
        takers = takers->next;
    return takers != NULL;
}

bool gp_takers_want_activities(const gp_taker_t *takers)
{
    while (takers != NULL && takers->handlers->activity == NULL)
        takers = takers->next;
    return takers != NULL;
}

uint64_t gp_takers_sample_words(const gp_taker_t *takers)
{
    uint64_t words = 0;
    for (const gp_taker_t *taker = takers; taker != NULL; taker = taker->next) {
        bool takes_all =
            taker->handlers->samples != NULL ? taker->handlers->sample_words == 0 : taker->handlers->sample != NULL;
        if (takes_all)
            return 0;
        words |= taker->handlers->samples != NULL ? taker->handlers->sample_words : 0;
    }
    return words;
}

int gp_takers_give_samples(const gp_taker_t *takers, const gp_sample_record_t *samples, size_t count)
{
    int result = 0;
    for (const gp_taker_t *taker = takers; taker != NULL && result == 0; taker = taker->next)
        result = taker->handlers->samples != NULL ? taker->handlers->samples(taker->context, samples, count) : 0;
    return result;
}

int gp_takers_give_activity(const gp_taker_t *takers, const gp_activity_record_t *activity)
{
    int result = 0;
    for (const gp_taker_t *taker = takers; taker != NULL && result == 0; taker = taker->next)
        result = taker->handlers->activity != NULL ? taker->handlers->activity(taker->context, activity) : 0;
    return result;
}
