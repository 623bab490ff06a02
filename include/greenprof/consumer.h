// SPDX-License-Identifier: MIT
// Consumers: where the spans of requests go while the program runs, beside a capture or without one.
//
// Model: a span that is over (greenprof/trace.h) is handed to every open consumer. Each has a bounded queue and a
// thread of its own, with all signals blocked, that gives the spans to a *backend*: files, Redis, or a plug-in. The
// threads that do the program's work never wait for one: what a slow, stopped or lying backend does not take is kept in
// a bounded spool file and sent later, also by the next process; what finds no room is counted. A span may be sent
// twice where an answer was lost; it has an id.
//
// Order of calls: any. Unless a declaration says otherwise: any thread; not from a signal handler. All of it is in
// libgreenprof, and nothing of it in libgreenprof-core.
#ifndef GREENPROF_CONSUMER_H
#define GREENPROF_CONSUMER_H

#include <greenprof/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

enum prof_span_record_flag {
    PROF_SPAN_RECORD_REMOTE_PARENT = 1, // parent_id is a span of another process, or 0: a request of this one
    PROF_SPAN_RECORD_OPEN = 2,          // it had not ended
    PROF_SPAN_RECORD_REPAIRED = 4,      // ended with the one around it
    PROF_SPAN_RECORD_IMPLICIT = 8,      // of prof_trace_set()
    PROF_SPAN_RECORD_FAILED = 16,       // prof_span_fail()
    PROF_SPAN_RECORD_NO_TIMES = 32,     // cpu_ns to switches are not known, and 0
    PROF_SPAN_RECORD_ASKED = 64,        // a request with PROF_SPAN_PROFILE
    PROF_SPAN_RECORD_RESTED = 128 // recording rested during a part of it, by budget: cpu_ns to switches lack that part
};

// A span that is over. Pointers in it are valid until the call with the record returns.
typedef struct prof_span_record {
    size_t size; // sizeof(prof_span_record_t)
    prof_trace_id_t trace;
    uint64_t id, parent_id; // parent_id 0: none
    uint64_t coroutine_id;  // on which it began
    uint64_t start_unix_ns, end_unix_ns;
    // Where the time of that coroutine went between the two, ns; see prof_ledger_t.
    uint64_t cpu_ns, blocked_ns, preempted_ns, ready_ns, parked_ns, waiting_ns, switches;
    uint32_t kind;  // prof_span_kind_t
    uint32_t flags; // enum prof_span_record_flag
    const char *name;
    const prof_field_t *fields; // [field_count]
    size_t field_count;
    const char *service, *host; // of the process
    int32_t pid;
    uint32_t reserved;
    // Where it began, if PROF_SPAN_STACK was set: functions from the outermost, a line each; of C, which is not looked
    // up here, FILE+0xADDRESS. NULL = not kept.
    const char *stack;
} prof_span_record_t;

// A backend. All members but `version` and those said to be optional must be set. Calls for an opened consumer come
// from its own thread, one after the other, and may block: only the consumer's queue waits.
typedef struct prof_consumer {
    size_t size;        // sizeof(prof_consumer_t)
    unsigned version;   // PROF_CONSUMER_VERSION
    const char *scheme; // of the URLs it is for: lower-case letters, digits, '+', '-' and '.'
    // Read a URL; connect to nothing yet. Comes from the thread that calls prof_consumer_open(), and, in a forked
    // child, from the consumer's thread.
    //   state: set to what the other calls are given.
    // Returns 0, or a negative errno value: -EINVAL for a URL that is wrong.
    int (*open)(const char *url, void **state);
    // Take spans, the oldest first, within seconds.
    //   spans: prof_span_record_t[count], each of `size` bytes: walk by spans->size. count: 1 to 128.
    // Returns how many were taken, from the front on; -EBADMSG where the first one can never be: it is counted as
    // refused, and the next call begins behind it; else a negative errno value: they are offered again, later.
    int (*send)(void *state, const prof_span_record_t *spans, size_t count);
    void (*close)(void *state);
    // Optional. In a child of fork(), where the consumer's thread may have been anywhere: close descriptors, and
    // nothing else (no lock, no memory, no word to the other side). The state is never used again.
    void (*abandon)(void *state);
} prof_consumer_t;

#define PROF_CONSUMER_VERSION 1

// Make a backend known. The table must live as long as the process.
// Returns 0; -EINVAL (not whole, another version, a scheme that is no scheme); -EEXIST; -ENOSPC (8 of them).
PROF_API int prof_consumer_register(const prof_consumer_t *consumer);

// Open a consumer: from now on it gets the spans of all requests that begin.
//   url: file:///DIR, redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], redis+sentinel://HOST[:PORT][,...]/NAME[/DB], null:,
//        plugin:/PATH.so (a shared object with a function `const prof_consumer_t *prof_consumer_plugin(void)`), a
//        registered scheme, or a destination of `greenprof ship` (clickhouse://..., otlp+http://...): the process then
//        sends its own capture, samples and all; options behind '?'. doc/consumers.md lists them.
// GREENPROF_CONSUMER names those to open when the library is loaded, with spaces between.
// Returns 0; -EINVAL (no URL, or unknown options); -ENOTSUP (no such scheme); -ELIBACC (Redis, and
// libgreenprof-redis.so.0 is not beside libgreenprof); -EALREADY (this very URL is open); -ENOSPC (8 are open);
// -ENOMEM; -EAGAIN (no thread to be had); else the errors of prof_start(). That a backend is not there now is no error.
PROF_API int prof_consumer_open(const char *url);

// Close a consumer, or all of them (NULL): what is queued is sent or spooled, within 3 s. Returns 0; -ENOENT;
// -ETIMEDOUT where spans were left over (counted as lost).
PROF_API int prof_consumer_close(const char *url);

// Wait until every span that is over now was sent or spooled, at most `limit_ms`. Returns 0 or -ETIMEDOUT.
PROF_API int prof_consumer_flush(unsigned limit_ms);

// The fate of all spans so far. given = sent + refused + lost_queue + lost_end + fast + queued + spooled, but for spans
// on their way at this moment.
typedef struct prof_consumer_status {
    size_t size;              // sizeof(prof_consumer_status_t), set by the caller
    uint64_t given;           // to the consumer
    uint64_t sent;            // taken by the backend
    uint64_t refused;         // by the backend, for good
    uint64_t lost_queue;      // no room in the queue
    uint64_t lost_end;        // left over when it was closed, or the process ended
    uint64_t fast;            // left out by the option slower=
    uint64_t queued, spooled; // now
    uint64_t recovered;       // sent for an earlier process: not in `given` and `sent`
    uint64_t unheard;         // ended, but never given: the program was faster than the collector. Over all consumers
    uint64_t failures;        // times that the backend did not take any
    int32_t last_error;       // of the last failure, negative errno value; 0 = the last attempt was none
    uint32_t reserved;
    uint64_t profiles;      // written for requests (file consumer's option profile=). Over all consumers, as the next
    uint64_t profiles_lost; // requests without one: too many at a time, or it could not be written
} prof_consumer_status_t;

// Read a consumer's counters; NULL = the sums over all that are open. Returns 0; -ENOENT; -EINVAL (size).
PROF_API int prof_consumer_status(const char *url, prof_consumer_status_t *status);

#ifdef __cplusplus
}
#endif

#endif
