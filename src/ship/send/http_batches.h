// SPDX-License-Identifier: MIT
// Posts to destinations that are no store: a batch goes as one or more requests, its parts, in a fixed order.
//
// Model: such a receiver cannot say what it has. A post remembers how many parts of each batch of the group in flight
// have been taken, and after a failure sends the rest; parts in doubt, after a crash or a lost answer, are sent again.
// Where a receiver says when to come again (Retry-After), nothing is sent before.
//
// Order of calls: open -> (begin -> is_due, send...) for each batch -> done -> close. Threads: one at a time.
// Signals: not safe.
#pragma once

#include "ship/rows/row.h"
#include "ship/send/http.h"
#include "ship/send/url.h"

enum { GP_POST_URL_SIZE = 4096 };

typedef struct gp_http_batches_progress {
    uint64_t batch;
    uint32_t parts; // taken so far, the first ones
} gp_http_batches_progress_t;

typedef struct gp_http_batches { // zero-initialized = closed
    gp_http_t *http;
    char base[GP_POST_URL_SIZE / 2];      // "https://host:port/path", without a slash at its end
    gp_http_batches_progress_t *progress; // of the group in flight
    size_t count, capacity;
    size_t at;     // the batch that was begun
    uint32_t part; // of it, the next one
} gp_http_batches_t;

// Take an URL "NAME+http://host[:port][/path]" or "NAME+https://..." apart.
//   names: options of this kind besides gp_http_option_names, ended by NULL.
// Returns 0; -EINVAL, -ENOMEM and what is wrong.
int gp_http_batches_open(gp_http_batches_t *post, const gp_fleet_url_t *url, const char *const *names,
                         char error[GP_FLEET_ERROR_SIZE]);

// Go through the parts of a batch from the first one on.
int gp_http_batches_begin(gp_http_batches_t *post, const gp_batch_t *batch);

// Whether the next part is to be sent: else it was taken before. Call it once for each part, in order.
bool gp_http_batches_is_due(gp_http_batches_t *post);

// Send the part that is due. `answer` is the caller's to free, also after a failure.
// Returns 0 when it was taken, else as gp_destination_kind_t's `send` says.
int gp_http_batches_send(gp_http_batches_t *post, const gp_http_request_t *request, gp_http_answer_t *answer,
                         char error[GP_FLEET_ERROR_SIZE]);

// Say what is wrong. Returns `result`.
int gp_http_batches_fail(char error[GP_FLEET_ERROR_SIZE], int result);

// All batches of the group were taken.
void gp_http_batches_done(gp_http_batches_t *post);

void gp_http_batches_close(gp_http_batches_t *post);
