// SPDX-License-Identifier: MIT
// A ClickHouse's rows of many hosts, as one capture: so every command that reads captures can ask a store.
//
// Model: the store adds up the samples chosen by the filters, in one pass over its rows, by stack, state and other keys
// asked for. They become a capture in a temporary file: functions with the names that the shipping hosts resolved, a
// coroutine for each name, times at the grain of the shipper. Weights are as sampled: they add up to the nanosecond,
// and no exact time stands beside them. A sample may stand for many: it says for how many, and how far their weights
// differ. A tenant's question never sees another's rows: the tenant is in every WHERE.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include "model/kinds.h"
#include "ship/send/clickhouse/clickhouse.h"

typedef struct gp_ask {
    // The owner that stands for a sample's coroutine: NULL = one for all; "coroutine" = its name; "service", "host",
    // "version", "endpoint".
    const char *by;
    // In critical paths the endpoint stands for the coroutine, whose name is the first frame of its stacks. Delays are
    // of long slices: each coroutine's wait, with the stacks of the one that ran.
    enum gp_row_measure measure;
    bool with_traces; // samples apart by trace
    bool with_times;  // and by the shipper's grain; else all of them are at the beginning
    bool with_errors; // how far weights differ is asked for; else samples of one row are taken for alike
    bool with_hosts;  // the capture says how many hosts have samples: its text "hosts"
    bool is_wall;     // the capture's default view
    // Besides those of the URL: service, host, version, endpoint, trace, label (KEY=VALUE or KEY:VALUE), from, to.
    const gp_row_pair_t *filters; // [filter_count]; the same name twice: either
    size_t filter_count;
} gp_ask_t;

typedef struct gp_ask_span {
    gp_row_span_t row;
    gp_row_process_t process; // its id, service, host, and pid: 0 = not known
} gp_ask_span_t;

typedef struct gp_ask_request {
    gp_row_request_t row;
    gp_row_process_t process;        // its id, service, version and host
    uint64_t path_ns[GP_KIND_COUNT]; // of its trace in its process, by enum gp_sample_kind; zeros = not known
} gp_ask_request_t;

typedef struct gp_ask_endpoint {
    const char *service, *endpoint;
    uint64_t count, failed, p50_ns, p90_ns, p99_ns, max_ns; // of all requests that were chosen
} gp_ask_endpoint_t;

typedef struct gp_ask_requests {
    const char *order;            // columns of greenprof_requests: "latency_ns DESC"
    uint64_t limit;               // the first so many in that order; 0 = all
    const gp_row_pair_t *filters; // [filter_count], as in gp_ask_t
    size_t filter_count;
    // Called once with all requests, then with each endpoint. A result other than 0 ends the reading.
    int (*take_requests)(void *context, const gp_ask_request_t *requests, size_t count);
    int (*take_endpoint)(void *context, const gp_ask_endpoint_t *endpoint);
    void *context;
} gp_ask_requests_t;

typedef struct gp_ask_delay { // coroutine `hog` kept its thread while `victim` of the same service was ready
    const char *service, *hog, *victim;
    const char *endpoint; // of the victim's request, "" = none
    uint64_t ns, count;
} gp_ask_delay_t;

typedef struct gp_ask_delays {
    unsigned limit;               // the longest so many
    const gp_row_pair_t *filters; // [filter_count], as in gp_ask_t
    size_t filter_count;
    int (*take)(void *context, const gp_ask_delay_t *delay); // a result other than 0 ends the reading
    void *context;
} gp_ask_delays_t;

// Is it the URL of a store that can be asked?
bool gp_ask_is_url(const char *text);

// The URL as it may be shown: without a password. To be freed; NULL: memory is short.
char *gp_ask_shown(const char *url);

// Ask for the spans chosen by the URL's filters, of the traces that begin so.
//   trace: a beginning of the 32 hex digits; NULL = all.
//   take:  called with each; pointers are valid during the call. A result other than 0 ends the reading.
// Returns 0, take's, or a negative errno value and what is wrong.
int gp_ask_spans(const char *url, const char *trace, int (*take)(void *context, const gp_ask_span_t *span),
                 void *context, char error[GP_FLEET_ERROR_SIZE]);

// Ask for requests of all services. Returns 0, what was returned, or a negative errno value and what is wrong.
int gp_ask_requests(const char *url, const gp_ask_requests_t *ask, char error[GP_FLEET_ERROR_SIZE]);

// Ask for hogs and their victims, the longest delays first. Returns as gp_ask_requests().
int gp_ask_delays(const char *url, const gp_ask_delays_t *ask, char error[GP_FLEET_ERROR_SIZE]);

// Ask, and write the capture. Returns an open descriptor of a file that has no name any more, or a negative errno value
// and what is wrong.
int gp_ask(const char *url, const gp_ask_t *ask, char error[GP_FLEET_ERROR_SIZE]);
