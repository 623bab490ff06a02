// SPDX-License-Identifier: MIT
// Sources of spans. A source adds the wanted spans that it can read to a set; anything else is counted
// (gp_spans_t.unreadable).
//
// Each returns 0, -ENOMEM, or another negative errno value and what is wrong. Threads: one at a time. Signals: not
// safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "traces/spans.h"

struct gp_dataset;

// Which trace: NULL = all. Sources leave others out where that is less work; one may still be in the set.
//   A beginning of the 32 hex digits, in lower case.
typedef const char *gp_wanted_t;

// A JSON text: greenprof's own (one object a line, or the document that `trace show --json` writes), OSProfiler's
// report
// ("osprofiler trace show --json"), or a list of OSProfiler's events.
//   text: [len]. Bytes that are not UTF-8, unpaired surrogates and NULs are read as U+FFFD.
int gp_spans_read_json(gp_spans_t *set, const char *text, size_t len, char error[GP_SPANS_ERROR_SIZE]);

// Read a file to its end.
//   text: malloc()ed, ended by NUL; to be freed in any case.
// Returns 0 or a negative errno value.
int gp_spans_read_all(int fd, char **text, size_t *len);

// An event of OSProfiler, as it is in Redis. Ends are joined with beginnings by gp_events_finish().
typedef struct gp_events gp_events_t;
gp_events_t *gp_events_create(gp_spans_t *set);
//   text: as above.
int gp_events_read(gp_events_t *events, const char *text, size_t len);
int gp_events_finish(gp_events_t *events); // frees
void gp_events_free(gp_events_t *events);

// A directory that the file consumer writes: a folder a trace, in it spans-*.jsonl and profile-*.folded.
int gp_spans_read_folder(gp_spans_t *set, const char *path, gp_wanted_t wanted, char error[GP_SPANS_ERROR_SIZE]);

// A capture that was read with GP_KEEP_SPANS.
int gp_spans_read_dataset(gp_spans_t *set, const struct gp_dataset *dataset);

// The work of the coroutines of a trace's requests, as the capture has it. After gp_spans_link(), too.
//   number: of the trace in the dataset.
int gp_spans_take_work(gp_spans_t *set, uint32_t trace, const struct gp_dataset *dataset, uint32_t number);

// The stacks sampled for the spans of a trace, in the form of the format `folded`, each below the frame that GP_BY_SPAN
// puts there. The text is changed. After gp_spans_link(), too.
int gp_spans_take_profile(gp_spans_t *set, uint32_t trace, char *folded);

// Redis in OSProfiler's schema. url: as src/consumer/backends/redis/url.h has them; a Sentinel says where the master
// is.
bool gp_spans_is_redis(const char *source);
int gp_spans_read_redis(gp_spans_t *set, const char *url, gp_wanted_t wanted, char error[GP_SPANS_ERROR_SIZE]);
