// SPDX-License-Identifier: MIT
// Declarations that captures.c and captures_records.c share.
#pragma once

#include "capture/several/captures.h"

typedef struct gp_captures_pass { // context of the handlers below
    gp_captures_t *captures;
    gp_capture_input_t *input; // that is read
    gp_captures_sink_t *sink;
    void *context; // its
} gp_captures_pass_t;

// Pass on what one of several captures holds, in the numbers of all; keep its texts, totals and end.
extern const gp_reader_handlers_t gp_captures_handlers;

extern const char *const gp_captures_text_keys[GP_TEXTS];

// A text of the capture that is made, of one key.
int gp_captures_pass_meta(const gp_captures_pass_t *pass, const char *key, const char *value, size_t value_len);

// The name of a capture's program.
const char *gp_captures_exe_of(const gp_capture_input_t *input);

// Keep the text of one of a capture's processes; pass on all known processes, in common numbers.
int gp_captures_keep_process(gp_capture_input_t *input, const char *text, size_t len);
int gp_captures_pass_processes(const gp_captures_pass_t *pass, const gp_capture_input_t *input);
void gp_captures_free_processes(gp_capture_input_t *input);

// Find out which captures are parts of one recording, and put these side by side, the first one first.
void gp_captures_find_recordings(gp_captures_t *captures);

// Is the capture before it the part before? Is there none behind it?
bool gp_captures_goes_on(const gp_captures_t *captures, const gp_capture_input_t *input);
bool gp_captures_is_last_part(const gp_captures_t *captures, const gp_capture_input_t *input);

// Room for records, on an 8-byte boundary, the last 8 bytes zeroed; NULL when memory is short.
void *gp_captures_room(gp_captures_t *captures, size_t bytes);
