// SPDX-License-Identifier: MIT
// Traces and spans: a coroutine's request, and its work for the request.
//
// Model: every coroutine carries one 128-bit trace id, or none (all zero), and the span that is open on it. Coroutines
// it spawns inherit both. Every sample carries the trace id set on its coroutine at that moment, also when coroutines
// migrate between threads; the times of spans tell in which span it lies. A span is an operation with a beginning and
// an end; one without a parent in this process is a *request*. Work of a coroutine outside the lifetime of its trace's
// requests belongs to no request.
//
// Order of calls: any. Unless a declaration says otherwise: any thread, any coroutine; not from a signal handler.
#ifndef GREENPROF_TRACE_H
#define GREENPROF_TRACE_H

#include <greenprof/prof.h>

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct prof_trace_id {
    uint8_t bytes[16]; // first byte first, as in the hex form; all zero = no trace (W3C Trace Context)
} prof_trace_id_t;

enum {
    PROF_TRACE_HEX_SIZE = 33,        // 32 lower-case hex digits and NUL
    PROF_TRACE_UUID_SIZE = 37,       // 8-4-4-4-12 and NUL
    PROF_TRACE_TRACEPARENT_SIZE = 56 // "00-<32 hex>-<16 hex>-<2 hex>" and NUL
};

// Set the calling coroutine's trace id. Where no span is open on it and spans are recorded, a request of that trace
// begins: it ends with prof_trace_clear(), with a set of another id, with prof_coro_idle(), or with the coroutine.
// Returns 0; -EINVAL for NULL or the all-zero id. Cost: ~50 ns, and ~0.2 us while a capture is written, ~1 us on a
// thread's own stack.
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

// Operations of spans. The numbers are in captures: they never change.
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
    PROF_SPAN_THREAD_SPAWN = 11, // a thread is started
    PROF_SPAN_THREAD_MAIN = 12   // what a thread does, from its beginning to its end; below its PROF_SPAN_THREAD_SPAWN
} prof_span_kind_t;

// Fields that spans of a kind have where they are known, the same of each library: X(KIND, key, type); ANY: of each
// kind. prof_span_set() refuses a value of another type. Other keys are the program's own. The version is raised with
// each change of a row; rows are only added within one.
#define PROF_SPAN_FIELDS_VERSION 1
#define PROF_SPAN_FIELDS(X)                                                                                            \
    X(ANY, "error.type", TEXT)                                                                                         \
    X(ANY, "error.message", TEXT)                                                                                      \
    X(ANY, "osprofiler.parent", TEXT)                                                                                  \
    X(REST_CALL, "http.url", TEXT)                                                                                     \
    X(REST_CALL, "http.status_code", NUMBER)                                                                           \
    X(REST_DISPATCH, "http.route", TEXT)                                                                               \
    X(REST_DISPATCH, "http.status_code", NUMBER)                                                                       \
    X(RPC_CALL, "messaging.destination", TEXT)                                                                         \
    X(DATABASE, "db.system", TEXT)                                                                                     \
    X(DATABASE, "db.name", TEXT)                                                                                       \
    X(DATABASE, "db.collection", TEXT)                                                                                 \
    X(DATABASE, "db.statement", TEXT)                                                                                  \
    X(DATABASE, "db.prepared", TEXT)                                                                                   \
    X(CACHE, "cache.commands", NUMBER)                                                                                 \
    X(EXTERNAL_COMMAND, "process.exit_code", NUMBER)

enum {                           // flags of a span that begins
    PROF_SPAN_REMOTE_PARENT = 1, // parent_id is a span of another process, or 0: here the span is a root, a request
    PROF_SPAN_STACK = 2,         // keep the stack at which it begins
    PROF_SPAN_PROFILE = 4,       // record this request whatever the policy says
    PROF_SPAN_CLIENT = 8         // a call of a library: libraries' calls of the same kind within it are part of it
};

// A span that is open: a number in disguise, never an address. Every call refuses a span that is over.
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

// Begin a span on the calling coroutine: the parent of spans begun there, and on coroutines spawned there, until it
// ends. A root sets the coroutine's trace, and gives the former one back when it ends.
//   kind: enum prof_span_kind.
//   name: of the operation, as "GET /servers": few different ones. Copied; 255 bytes of it are kept.
//   options: NULL = defaults.
// Returns the span; NULL where nothing records it, or no room is left (counted: "spans lost"). The functions below take
// NULL and do nothing, so that callers need not look. Cost, with the end: ~6 ns where nothing is recorded, 15 ns within
// a request that is not, else ~110 ns; ~1.5 us for a root.
PROF_API prof_span_t *prof_span_begin(prof_span_kind_t kind, const char *name, const prof_span_options_t *options);

// Add a field to a span. An earlier field of the same key stays. Fields beyond the limits are cut or left out (counted:
// "fields cut"): 16 fields, 64 bytes a key, name and fields together 1,000 bytes.
// Calls on the same span must not overlap. Returns 0; -EINVAL for one that is over, no key, or a value of another type
// than PROF_SPAN_FIELDS has; -ENOSPC.
PROF_API int prof_span_set(prof_span_t *span, const char *key, const char *value);

// Give a span another name: a request is called by its route once that is known. Rules and results
// are those of prof_span_set().
PROF_API int prof_span_rename(prof_span_t *span, const char *name);

// Say that the operation failed: sets the fields error.type and error.message. NULL = none of that. As prof_span_set().
PROF_API int prof_span_fail(prof_span_t *span, const char *type, const char *message);

// End a span, on any coroutine and thread. Open spans within it on its coroutine end with it and are marked as
// repaired. Returns 0; -EINVAL for one that is over (counted: "unbalanced ends of spans").
PROF_API int prof_span_end(prof_span_t *span);

// The span's id, which goes with requests to others; 0 for NULL and for one that is over. Signals: safe.
PROF_API uint64_t prof_span_id(const prof_span_t *span);

// The id of the span that is open on the calling coroutine; 0 = none is recorded.
PROF_API uint64_t prof_span_current(void);

// --- context on the wire: in libgreenprof only
//
// Headers that carry a trace from service to service: W3C Trace Context (traceparent, tracestate), OSProfiler's
// (X-Trace-Info, X-Trace-HMAC) and greenprof's own (X-Greenprof-Context), which is signed, has a time and cannot be
// replayed. doc/wire.md has them byte for byte.

typedef struct prof_header {
    const char *name, *value; // the name in any case
} prof_header_t;

enum {                          // prof_context_t.flags
    PROF_CONTEXT_SAMPLED = 1,   // the caller records it (traceparent's flag)
    PROF_CONTEXT_SIGNED = 2,    // by one of the keys: the sender may have this request profiled
    PROF_CONTEXT_PROFILE = 8,   // signed, and the policy is not "never": this request is to be profiled
    PROF_CONTEXT_OSPROFILER = 4 // it came with OSProfiler's headers
};

enum {
    PROF_CONTEXT_TRACESTATE_SIZE = 513,
    PROF_CONTEXT_TEXT_SIZE = 1024 // is enough for what prof_context_write() writes
};

typedef struct prof_context {
    size_t size; // sizeof(prof_context_t)
    prof_trace_id_t trace;
    uint64_t parent_id; // span of the sender; 0 = not known
    uint32_t flags;     // PROF_CONTEXT_SAMPLED, ...
    uint32_t reserved;
    char parent_uuid[PROF_TRACE_UUID_SIZE];        // the same as OSProfiler calls it; "" = not known
    char tracestate[PROF_CONTEXT_TRACESTATE_SIZE]; // of W3C, to be handed on as it is; "" = none
} prof_context_t;

#define PROF_CONTEXT_INIT                                                                                              \
    {                                                                                                                  \
        .size = sizeof(prof_context_t)                                                                                 \
    }

// Read the context of a request from its headers: greenprof's, else OSProfiler's, else W3C's. Without a key, signed
// ones are passed over. tracestate goes with a traceparent of the same trace.
//   headers: prof_header_t[count]; others among them are passed over.
//   context: .size set; filled where 0 is returned.
// Returns 0; -ENOENT: there is none; -EACCES: a signed one was refused (not by a key of this process, malformed, too
// old, seen before; see prof_context_counts()), and the context is as if it were not there: W3C's, or empty; -EINVAL:
// NULL, or another size. Threads: any. Signals: not safe. Cost: ~0.2 us, and ~2 us a key for one that is signed.
PROF_API int prof_context_read(const prof_header_t *headers, size_t count, prof_context_t *context);

// Write the headers of a call to another service, as "Name: value\r\n" lines.
//   format:  "w3c", "osprofiler", "greenprof".
//   context: NULL = of the calling coroutine: its trace, and the span that is open on it.
//   text:    [size], ended by NUL; PROF_CONTEXT_TEXT_SIZE is enough.
// "osprofiler" and "greenprof" are signed with the first key: the other service profiles what it does for this call.
// Returns the length; -ENOENT: there is no trace; -ENOKEY: it is to be signed, and there is no key; -ENOSPC; -EINVAL:
// an unknown format, another size, a tracestate that is none. Threads: any. Signals: not safe. Cost: ~1 us; ~3 us where
// it is signed.
PROF_API ssize_t prof_context_write(const char *format, const prof_context_t *context, char *text, size_t size);

// Set the keys: the first signs, all of them are accepted. They hold for what switches the process from outside
// (GREENPROF_CONTROL), too. Without this call, the keys of GREENPROF_HMAC_KEYS hold, else those in the file
// GREENPROF_HMAC_KEYS_FILE.
//   keys: a list with commas, at most 16 of at most 256 bytes; NULL or "" = none.
// Returns 0; -E2BIG, -ENOMEM, -ENOTSUP (OpenSSL has no such HMAC): nothing has changed. Threads: any. The keys are in
// this process' memory only: in no file, no message, no capture.
PROF_API int prof_hmac_keys(const char *keys);

typedef struct prof_context_counts { // of this process, so far
    size_t size;                     // sizeof(prof_context_counts_t)
    uint64_t accepted;               // contexts, those that are not signed included
    uint64_t is_signed;              // of those, by one of the keys
    // Refused headers:
    uint64_t malformed, oversized;
    uint64_t signature; // of none of the keys
    uint64_t late;      // more than 60 s old, or more than 5 s ahead
    uint64_t replayed;
    uint64_t full; // 65,536 in 60 s are remembered: there was no room to
} prof_context_counts_t;

// Read how many contexts were accepted and refused. Returns 0; -EINVAL: NULL, or another size. Threads: any.
PROF_API int prof_context_counts(prof_context_counts_t *counts);

// Which requests consumers (greenprof/consumer.h) get: "always"; "never"; "signed", those with a signed context, which
// is the default where there are keys; "1/N", one in N, and signed ones; "slower=20ms", those that took longer, and
// signed ones. Without this, GREENPROF_POLICY holds. A capture has all requests. Returns 0; -EINVAL. Threads: any.
PROF_API int prof_policy(const char *policy);

// prof_span_begin() for a request that came with a context: a root in its trace, below the sender's span; profiled
// where the context has PROF_CONTEXT_PROFILE. A parent that is OSProfiler's is in the field osprofiler.parent.
//   context: NULL, or an empty one: a request in the coroutine's trace, or in a new one.
//   options: NULL = defaults; its trace, parent_id and the flag PROF_SPAN_REMOTE_PARENT are set by this.
PROF_API prof_span_t *prof_request_begin(prof_span_kind_t kind, const char *name, const prof_context_t *context,
                                         const prof_span_options_t *options);

#ifdef __cplusplus
}
#endif

#endif
