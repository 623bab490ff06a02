// SPDX-License-Identifier: MIT
// Reading a capture file: one pass, front to back, a bounded piece of it in memory at a time.
//
// Model: gp_reader_read() checks the file header, then goes from chunk to chunk and calls a handler for every record.
// Damage costs only itself: a chunk with a bad checksum, a truncated tail or bytes of no chunk are skipped and counted,
// and the next chunk is found by its magic. The caller learns from gp_reader_summary_t what is missing.
//
// Order of calls: gp_reader_read() alone, or gp_reader_read_part() again and again. Memory: one chunk (at most
// GP_CHUNK_MAX and a header). Threads: any number of readers at once. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/format.h"

// Handlers, one a record type; NULL = not interested. Records and texts are valid during the call only; texts are not
// NUL-terminated. A handler returns 0, or a negative errno value that ends the reading and is returned by it.
#define GP_HANDLER(number, id, name, how, turn) int (*name)(void *context, const gp_##name##_record_t *name);
// The 4-byte words of a field of gp_sample_record_t, as bits.
#define GP_SAMPLE_WORDS(field)                                                                                         \
    (((UINT64_C(1) << sizeof(((gp_sample_record_t *)NULL)->field) / 4) - 1) << offsetof(gp_sample_record_t, field) / 4)

typedef struct gp_reader_handlers {
    GP_RECORDS_OF_ONE_SIZE(GP_HANDLER)
    // Records of one size that have no handler above; NULL = not interested.
    int (*other)(void *context, enum gp_chunk_type type, const void *record);
    // Called once, before any record.
    int (*header)(void *context, const gp_file_header_t *header);
    // Called for every whole chunk, before its records.
    int (*chunk)(void *context, const gp_chunk_header_t *chunk);
    int (*meta)(void *context, const char *key, size_t key_len, const char *value, size_t value_len);
    int (*module)(void *context, const gp_module_record_t *module, const char *path, size_t path_len);
    int (*function)(void *context, const gp_function_record_t *function, const char *name, const char *file);
    // frames: gp_loc_t[stack->depth], innermost first.
    int (*stack)(void *context, const gp_stack_record_t *stack, const gp_loc_t *frames);
    // Instead of `sample`: as many as come at a time, at least one.
    int (*samples)(void *context, const gp_sample_record_t *samples, size_t count);
    // The words of samples it looks at, GP_SAMPLE_WORDS(): the rest may be anything. 0 = all.
    uint64_t sample_words;
    // Where samples are kept for another reading (capture/read/reader_kept.h); NULL = nowhere.
    struct gp_reader_kept *kept;
    // values: uint64_t[record->count], enum gp_counter.
    int (*counters)(void *context, const gp_counters_record_t *record, const uint64_t *values);
    // stacks: gp_hog_stack_t[hog->stack_count].
    int (*hog)(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks);
    // fields: `span->field_count` pairs of key and value, each ended by NUL.
    int (*span)(void *context, const gp_span_record_t *span, const char *name, const char *fields);
    int (*open_span)(void *context, const gp_span_record_t *span, const char *name, const char *fields);
} gp_reader_handlers_t;
#undef GP_HANDLER

// Who takes the records of a reading, one of several: each has all records of a chunk, or some of them, before the
// next.
typedef struct gp_taker {
    const gp_reader_handlers_t *handlers;
    void *context;               // passed to them
    const struct gp_taker *next; // NULL = it is the last one
} gp_taker_t;

typedef struct gp_reader_summary {
    uint64_t bytes;          // read in all
    uint64_t chunks;         // read whole
    uint64_t chunks_unknown; // of a type or with flags this reader does not know: skipped
    uint64_t chunks_damaged; // places where a chunk was expected and something else was found
    uint64_t chunks_missing; // by the gaps in the sequence numbers; a lost tail has none
    uint64_t bytes_skipped;  // between good chunks, and behind the last one
    uint64_t records_bad;    // in good chunks: sizes do not add up; the rest of that chunk is skipped
    bool header_damaged;     // the file header was taken from its copy
    bool truncated;          // the file ends inside a chunk
    bool ended;              // an end record was seen: the file is complete up to its end
} gp_reader_summary_t;

enum { GP_READER_ERROR_SIZE = 160 };

// Read a capture from an open descriptor.
//   fd:      read from its position on; a pipe will do. Not closed.
//   context: passed to the handlers.
//   summary: filled also on failure; not NULL.
//   error:   what is wrong, in words, when the result is not 0; not NULL.
// Returns 0 (also for a damaged file: look at the summary); -EINVAL for what is no capture this
// reader can read; the handlers' or read()'s error; -ENOMEM.
int gp_reader_read(int fd, const gp_reader_handlers_t *handlers, void *context, gp_reader_summary_t *summary,
                   char error[GP_READER_ERROR_SIZE]);
// The same for several takers.
int gp_reader_take(int fd, const gp_taker_t *takers, gp_reader_summary_t *summary, char error[GP_READER_ERROR_SIZE]);

// A part of a capture, which may still be written: whole chunks from one place on.
typedef struct gp_reader_part {
    uint64_t from;     // byte of the file where a chunk begins: 0, or a `to` of before
    uint64_t max;      // no more chunk is begun behind that many bytes; 0 = up to the end of the file
    uint64_t to;       // set: behind the last whole chunk; `from` where there is none
    uint32_t sequence; // set: the number of the chunk that comes behind it
} gp_reader_part_t;

// Read a part of a capture. The header's handler is called, too. A chunk that is not whole yet at the end of the file
// is left for the next time, and does not count as damage.
//   fd: of a file; its position is changed.
// Returns as gp_reader_read().
int gp_reader_read_part(int fd, gp_reader_part_t *part, const gp_reader_handlers_t *handlers, void *context,
                        gp_reader_summary_t *summary, char error[GP_READER_ERROR_SIZE]);
int gp_reader_take_part(int fd, gp_reader_part_t *part, const gp_taker_t *takers, gp_reader_summary_t *summary,
                        char error[GP_READER_ERROR_SIZE]);

// Hand samples, or an activity, to all that take them. Each returns 0 or a handler's error.
int gp_takers_give_samples(const gp_taker_t *takers, const gp_sample_record_t *samples, size_t count);
int gp_takers_give_activity(const gp_taker_t *takers, const gp_activity_record_t *activity);
bool gp_takers_want_samples(const gp_taker_t *takers);
bool gp_takers_want_activities(const gp_taker_t *takers);
// The words of samples they look at, GP_SAMPLE_WORDS(); 0 = all.
uint64_t gp_takers_sample_words(const gp_taker_t *takers);
