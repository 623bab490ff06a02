// SPDX-License-Identifier: MIT
// Trace ids: which request a coroutine works for.
//
// Model: every coroutine carries one 128-bit trace id, or none (all zero). Coroutines it spawns inherit it. Every
// sample carries the id that was set on its coroutine at that moment, also when coroutines migrate between threads.
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

// Set the calling coroutine's trace id. Returns 0; -EINVAL for NULL or the all-zero id. Cost: ~50 ns.
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

#ifdef __cplusplus
}
#endif

#endif
