// SPDX-License-Identifier: MIT
// Traces and spans: which request a coroutine works for, and what it does for it.
//
// Model: every coroutine carries one 128-bit trace id, or none (all zero), and the span that is open on it. Coroutines
// it spawns inherit both. Every sample carries the trace id that was set on its coroutine at that moment, also when
// coroutines migrate between threads; in which span it lies, the spans' times tell. A span is an operation with a
// beginning and an end; one without a parent in this process is a *request*. What a coroutine does outside the lifetime
// of its trace's requests belongs to no request.
//
// Order of calls: any. Unless a declaration says otherwise: any thread, any coroutine; not from a signal handler.
#ifndef GREENPROF_TRACE_H
#define GREENPROF_TRACE_H

#include <greenprof/prof.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct prof_trace_id {
    uint8_t bytes[16]; // first byte first, as in the hex form; all zero = no trace (W3C Trace Context)
} prof_trace_id_t;

enum {
    PROF_TRACE_HEX_SIZE = 33,         // 32 lower-case hex digits and NUL
    PROF_TRACE_UUID_SIZE = 37,        // 8-4-4-4-12 and NUL
    PROF_TRACE_TRACEPARENT_SIZE = 56, // "00-<32 hex>-<16 hex>-<2 hex>" and NUL
};

// Set the calling coroutine's trace id. Where no span is open on it and spans are recorded, a request of that trace
// begins: it ends with prof_trace_clear(), with a set of another id, with prof_coro_idle(), or with the coroutine.
// Returns 0; -EINVAL for NULL or the all-zero id. Cost: ~50 ns, and ~1 us while a capture is written.
PROF_API int prof_trace_set(const prof_trace_id_t *id);

// Read the calling coroutine's trace id. Returns 0; -ENOENT when it has none (*id is zeroed); -EINVAL for NULL.
PROF_API int prof_trace_get(prof_trace_id_t *id);

// Take the calling coroutine's trace id away.
PROF_API void prof_trace_clear(void);

// Read an id from text: a UUID, 32 hex digits of either case, or a W3C traceparent header (any version but ff; what
// follows a future version's fields is ignored). Spaces around it are ignored.
// Returns 0; -EINVAL (NULL, malformed, or the all-zero id): *id is then unchanged. Signals: safe.
PROF_API int prof_trace_parse(const char *text, prof_trace_id_t *id);

// Write an id. `id` and the buffer must not be NULL. Signals: safe.
PROF_API void prof_trace_to_hex(const prof_trace_id_t *id, char text[PROF_TRACE_HEX_SIZE]);
PROF_API void prof_trace_to_uuid(const prof_trace_id_t *id, char text[PROF_TRACE_UUID_SIZE]);
//   span_id: the caller's span, not 0; sampled: sets the flag of that name. Source: W3C Trace Context, traceparent.
PROF_API void prof_trace_to_traceparent(const prof_trace_id_t *id, uint64_t span_id, int sampled,
                                        char text[PROF_TRACE_TRACEPARENT_SIZE]);

// What a span is, by the operation. The numbers are in captures: they never change.
typedef enum prof_span_kind {
    PROF_SPAN_REQUEST = 1,
    PROF_SPAN_REST_CALL = 2,
    PROF_SPAN_REST_DISPATCH = 3,
    PROF_SPAN_RPC_CALL = 4,
    PROF_SPAN_RPC_DISPATCH = 5,
    PROF_SPAN_DATABASE = 6,
    PROF_SPAN_CACHE = 7,
    PROF_SPAN_NATIVE_CALL = 8, // into a library: computing, a file
    PROF_SPAN_TASK = 9,
    PROF_SPAN_EXTERNAL_COMMAND = 10,
} prof_span_kind_t;

enum {                           // flags of a span that begins
    PROF_SPAN_REMOTE_PARENT = 1, // parent_id is a span of another process, or 0: here the span is a root, a request
    PROF_SPAN_STACK = 2,         // keep the stack at which it begins
    PROF_SPAN_PROFILE = 4,       // record this request whatever the policy says
};

// A span that is open: a number in disguise, never an address. One that is over is refused by every call.
typedef struct prof_span prof_span_t;

typedef struct prof_field {
    const char *key, *value; // UTF-8
} prof_field_t;

typedef struct prof_span_options {
    size_t size;                  // sizeof(prof_span_options_t)
    const prof_trace_id_t *trace; // of a root; NULL: that of the coroutine, else a new random one
    uint64_t parent_id;           // 0: the span that is open on the calling coroutine; else a span's prof_span_id(), on
                                  // any thread: while it is open, the caller gets its trace meanwhile
    uint32_t flags;               // PROF_SPAN_REMOTE_PARENT, ...
    uint32_t reserved;            // 0
    const prof_field_t *fields;   // [field_count], as prof_span_set() takes them
    size_t field_count;
    uint64_t start_unix_ns; // when it began, ns since 1970 (CLOCK_REALTIME): a request begins when it reaches the host,
                            // before its coroutine reads it. 0 = now; at most 60 s ago
} prof_span_options_t;

#define PROF_SPAN_OPTIONS_INIT                                                                                         \
    {                                                                                                                  \
        .size = sizeof(prof_span_options_t)                                                                            \
    }

// Begin a span on the calling coroutine: it is the parent of spans that begin there, and on coroutines that are spawned
// there, until it ends. A root sets the coroutine's trace, and gives the former one back when it ends.
//   kind: enum prof_span_kind.
//   name: of the operation, as "GET /servers": few different ones. Copied; 255 bytes of it are kept.
//   options: NULL = defaults.
// Returns the span; NULL where nothing records it, or no room is left (counted: "spans lost"). The functions below take
// NULL and do nothing, so that callers need not look. Cost, with the end: ~6 ns where nothing is recorded, 15 ns within
// a request that is not, else ~110 ns; ~1.5 us for a root.
PROF_API prof_span_t *prof_span_begin(prof_span_kind_t kind, const char *name, const prof_span_options_t *options);

// Add a field to a span. One of the same key is not replaced. What does not fit is cut or left out (counted: "fields
// cut"): 16 fields, 64 bytes a key, name and fields together 1,000 bytes.
// Calls on the same span must not overlap. Returns 0; -EINVAL for one that is over, or no key; -ENOSPC.
PROF_API int prof_span_set(prof_span_t *span, const char *key, const char *value);

// Say that the operation failed: sets the fields error.type and error.message. NULL = none of that. As prof_span_set().
PROF_API int prof_span_fail(prof_span_t *span, const char *type, const char *message);

// End a span, on any coroutine and thread. Spans that are open within it on its coroutine end with it and are marked as
// repaired. Returns 0; -EINVAL for one that is over (counted: "unbalanced ends of spans").
PROF_API int prof_span_end(prof_span_t *span);

// The span's id, which goes with requests to others; 0 for NULL and for one that is over. Signals: safe.
PROF_API uint64_t prof_span_id(const prof_span_t *span);

// The id of the span that is open on the calling coroutine; 0 = none is recorded.
PROF_API uint64_t prof_span_current(void);

#ifdef __cplusplus
}
#endif

#endif
