// SPDX-License-Identifier: MIT
// Captures, read as one.
//
// Model: one capture is passed on as it is. Records of several come one capture after the other, parts of a recording
// in their order. Coroutines and threads get numbers that are unique among all captures; a coroutine in several parts
// of a recording is one. Traces of one id are one trace, modules of one build-id (or path, where they have none) one
// module, equal stacks one stack. Times count from the first capture's start: within one boot of the machine by the
// monotonic clock, which is never set, else by the time of day. Counters are added up, and there is an end where all
// have one. A census is left out: coroutines alive at the ends of several processes were not alive at one moment. A
// meta text "merged" tells each capture's coroutines and threads, and a text "process" each process'
// (capture/read/process_text.h).
//
// Order of calls: add... -> read -> read_again... -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "capture/read/reader_kept.h"
#include "capture/several/captures_ids.h"

// Texts that several captures have in common, or not.
enum { GP_TEXT_EXE, GP_TEXT_CMDLINE, GP_TEXT_HOSTNAME, GP_TEXT_SERVICE, GP_TEXTS };

typedef struct gp_capture_text {
    char *text; // ended by NUL, and may have more of them; NULL = not known
    size_t len;
} gp_capture_text_t;

typedef struct gp_capture_input {
    const char *path; // the caller's
    int fd;
    int64_t start;                // where the capture begins; -1: it can be read only once
    gp_reader_summary_t summary;  // of the first reading
    uint64_t samples, activities; // counts of the first reading: a process that still runs may have written more
    gp_reader_kept_t kept;        // of the samples, for the second reading
    gp_file_header_t header;      // from here on: where there are several
    uint64_t shift_ns;            // added to its times
    uint64_t image_ns;            // when its program began, as far as that is known
    size_t recording;             // the same for all parts of one
    gp_capture_ids_t ids;
    gp_capture_text_t texts[GP_TEXTS];
    gp_capture_text_t *processes; // capture/read/process_text.h, of one that is merged
    size_t process_count, process_capacity;
    gp_counters_record_t totals;
    uint64_t counters[GP_COUNTER_COUNT];
    bool ended;
    gp_end_record_t end;
} gp_capture_input_t;

typedef struct gp_captures { // zero-initialized = none
    gp_capture_input_t *inputs;
    size_t count, capacity, recordings;
    size_t at; // index of the capture being read, or of the faulty one
    // Of a single one's samples: what is kept in memory for the next reading, GP_SAMPLE_WORDS(), and how many bytes.
    uint64_t keep_words;
    size_t keep_bytes;
    gp_file_header_t header;                           // of all of them; set by reading
    void (*on_input)(const gp_capture_input_t *input); // called before each is read; NULL = not at all
    gp_captures_ids_t ids;
    void *records; // scratch, on an 8-byte boundary
    size_t records_room;
} gp_captures_t;

// Takes records of one type: gp_reader_records() understands them, and gp_writer_add() has room for them. Returns 0 or
// a negative errno value, which ends the reading.
typedef int gp_captures_sink_t(void *context, enum gp_chunk_type type, const void *records, size_t bytes);

// Add a capture. The descriptor is duplicated; the path stays the caller's. Returns 0 or a negative errno value.
int gp_captures_add(gp_captures_t *captures, int fd, const char *path);

// Read the headers of several captures, make a common one out of them, and put the parts of each recording side by
// side. An input that can be read only once fails.
// Returns 0 or a negative errno value, and what is wrong with captures->inputs[captures->at].
int gp_captures_open(gp_captures_t *captures, char error[GP_READER_ERROR_SIZE]);

// Read several captures that are open.
int gp_captures_pass(gp_captures_t *captures, gp_captures_sink_t *sink, void *context,
                     char error[GP_READER_ERROR_SIZE]);

// Read one capture or, once they are open, several. Returns as gp_captures_open(), or a handler's error.
int gp_captures_read(gp_captures_t *captures, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE]);

// Read the samples and activities again, as many as there were.
//   takers: of their handlers `samples` and `activity` are called.
int gp_captures_read_again(gp_captures_t *captures, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE]);

void gp_captures_free(gp_captures_t *captures);
