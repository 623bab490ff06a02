// SPDX-License-Identifier: MIT
// The active core's offer to the dump half of the library and to the Python package.
//
// libgreenprof-core may be preloaded while the host links libgreenprof: then two copies of the core are in the process
// and only the first in symbol order is active. Others therefore never touch core state directly; they ask whichever
// core is active through the table that prof_core_interface() returns.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "greenprof/consumer.h"
#include "model/clients.h"
#include "model/counters.h"
#include "model/snapshot.h"
#include "signal/language.h"

typedef struct gp_coro_view { // a live coroutine, for a language to show; see capture/census.h
    uint64_t id, parent_id, trace[2];
    uint64_t state_ns;
    uint32_t state; // enum gp_census_state
    bool is_thread;
    char name[48];
    size_t depth;
    struct gp_coro_view_frame {
        const char *function, *file; // kept by the core for good
        uint32_t line;
    } * frames; // [depth], innermost first, of the language
} gp_coro_view_t;

enum { GP_CAPTURE_PATH_SIZE = 4096 };

struct gp_request_watch;

enum gp_cut {         // what ends a profile
    GP_CUT_HERE,      // a thread of the program
    GP_CUT_OUTSIDE,   // one of greenprof's own
    GP_CUT_COLLECTOR, // and it holds the drain lock
};

// Each table begins with its size, and grows at its end.

typedef struct gp_core_profiles {
    size_t size;
    // Take a snapshot; the samples taken so far are in it. Returns it, or NULL and errno.
    gp_snapshot_t *(*snapshot)(prof_t *profile);
    void (*release)(gp_snapshot_t *snapshot);
    // How many locations of samples were looked up so far, and a snapshot with nothing but those after the first
    // `since`: see gp_profile_latest().
    uint32_t (*looked_up)(void);
    gp_snapshot_t *(*latest)(uint32_t since);
    // Called by prof_start() when all is done, no lock held; NULL = no more. A call is quick, mostly.
    void (*on_begin)(void (*begun)(void));
    // prof_stop() in two steps, see profile/profile.h.
    int (*cut)(prof_t *profile, enum gp_cut from);
    void (*settle)(prof_t *profile);
    // Wait until all that happened before was handed on. Returns 0, -ETIMEDOUT, -ESRCH (no collector). Signals: safe.
    int (*collect)(uint64_t limit_ns);
    // Has sampling ended, because the host took every signal that could be used?
    bool (*has_yielded)(void);
} gp_core_profiles_t;

typedef struct gp_core_spans {
    size_t size;
    // See record/span_listen.h: hear of spans on the collector's thread, NULL = no more.
    int (*listen)(void (*listener)(void *context, const prof_span_record_t *span), void *context);
    // Asked where a request begins, on its thread: is it to be heard? NULL = all are.
    void (*policy)(bool (*chosen)(prof_span_kind_t kind, const char *name));
    // See trace/span.h; NULL = no more.
    void (*watch)(const struct gp_request_watch *watch);
    // How many were lost on their way to the listener, and to the capture.
    uint64_t (*lost)(void);
    // See trace/client_switch.h.
    bool (*may_call)(gp_client_t client, prof_span_kind_t kind);
    bool (*client_is_on)(gp_client_t client);
} gp_core_spans_t;

// The capture of this process. Threads: one at a time.
typedef struct gp_core_capture {
    size_t size;
    // Begin one where there is none, in parts of about `part_bytes` of which the latest `keep` that were put aside
    // stay; end it; have all so far written.
    //   path: absolute; children by fork append their process ids, and make its directory again where it is gone.
    // Returns 0, -EALREADY where there is one (or none), or the errors of gp_session_begin() and its like.
    int (*begin)(const char *path, uint64_t part_bytes, unsigned keep);
    int (*end)(uint64_t limit_ns);
    int (*flush)(uint64_t limit_ns);
    // Where it is; "" = there is none.
    void (*path)(char path[GP_CAPTURE_PATH_SIZE]);
    // Counts of others are in it, too: see gp_collector_add_counters().
    void (*add_counters)(void (*add)(uint64_t counters[GP_COUNTER_COUNT]));
    // The keys that the control socket asks for; see control/keys.h.
    void (*control_keys)(const char *text, size_t len);
} gp_core_capture_t;

typedef struct gp_core_language {
    size_t size;
    // Hook the language runtime (CPython) that the caller runs in; it holds the interpreter lock. Idempotent.
    // Returns 0, -ENOTSUP where its version is not supported.
    int (*attach)(void);
    // Show native frames among the language's, in all that is sampled: from +1 until as many -1.
    void (*native)(int change);
    // See gp_language_t; false where there is no language.
    bool (*calls_are_taken)(void);
    // Every live coroutine, to be freed by views_free(); NULL when memory is short. Where the caller holds its
    // language's lock, none of the language's moves meanwhile.
    gp_coro_view_t *(*views)(size_t *count);
    void (*views_free)(gp_coro_view_t *views, size_t count);
    // See gp_profile_detach(): what the calling thread runs.
    void (*detach)(void);
} gp_core_language_t;

// Threads of greenprof's own, and the end of the process.
typedef struct gp_core_threads {
    size_t size;
    // Start one that is never sampled, all signals blocked. Returns 0 or a negative errno value: -ESRCH as prof_start()
    // does.
    int (*start_staying)(void *(*run)(void *), void *argument, void *pthread_out);
    // The same of one that ends soon after may_stay() has become false; it may return GP_THREAD_RETURNS then
    // (base/own_thread.h).
    int (*start)(void *(*run)(void *), void *argument, void *pthread_out);
    bool (*may_stay)(void);
    // Called where waiting threads are to see that they may not stay; NULL = no more. Signals: safe.
    void (*wake_by)(void (*wake)(void));
    // Call the first when the process ends by exit() or _exit(), perhaps in a handler; the other when its capture has
    // ended, too.
    void (*at_end)(void (*call)(void), void (*last)(void));
} gp_core_threads_t;

typedef struct gp_core_interface {
    size_t size;
    const gp_core_profiles_t *profiles;
    const gp_core_spans_t *spans;
    const gp_core_capture_t *capture;
    const gp_core_language_t *language;
    const gp_core_threads_t *threads;
} gp_core_interface_t;

PROF_API const gp_core_interface_t *prof_core_interface(void);

// For `greenprof attach`, in a process that runs already (process/attach.c).
//   settings: lines of ID=VALUE, each for GREENPROF_ID.
// Returns once control's thread is there: 0, or a negative errno value; -EEXIST where another core is the active one.
// Threads: any, also a borrowed one. Signals: not safe.
PROF_API int prof_core_attach(const char *settings);

// This very copy's table, whichever is active.
const gp_core_interface_t *gp_core_own_interface(void);
