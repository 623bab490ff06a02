// What the dump half of the library (symbols, exporters) gets from the core about one profile.
//
// libgreenprof-core may be preloaded while the host links libgreenprof: then two copies of the core are in the process
// and only the first in symbol order is active. The dump half therefore never touches core state directly; it asks
// whichever core is active through the table that prof_core_interface() returns.
#ifndef GP_PROFILE_SNAPSHOT_H
#define GP_PROFILE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/format.h"
#include "greenprof/prof.h"
#include "signal/coro_record.h"
#include "signal/language.h"

typedef struct gp_snapshot_node { // a node of the profile's call tree
    gp_loc_t loc;                 // node 0 is the root and has none
    uint32_t parent;              // index of its parent, always smaller than its own
    uint32_t reserved;
    uint64_t weight_ns; // of samples whose leaf is this node (self)
    uint64_t samples;   // number of those
} gp_snapshot_node_t;

typedef struct gp_snapshot_module {
    uint32_t id; // as in gp_loc_t
    uint32_t build_id_len;
    uint8_t build_id[20];
    uint64_t start, end, bias;
    const char *path; // "[vdso]" for the vDSO
} gp_snapshot_module_t;

typedef struct gp_snapshot_function { // of a language runtime
    uint32_t number, first_line;
    const char *name, *file; // kept by the core for good
} gp_snapshot_function_t;

typedef struct gp_snapshot { // owned by the caller, freed by release()
    const gp_snapshot_node_t *nodes;
    uint32_t node_count;
    uint32_t module_count;
    const gp_snapshot_module_t *modules;
    uint64_t total_ns;   // exact CPU time of the scope
    gp_ledger_t ledger;  // where its time went, exactly
    prof_clock_t clock;  // PROF_CLOCK_WALL: nodes of waits end in GP_PSEUDO_PARKED, ...
    uint64_t sampled_ns; // sum of all nodes' weight_ns
    uint64_t samples;
    uint64_t duration_ns; // wall time while it ran
    uint64_t start_realtime_ns;
    uint32_t frequency_hz;
    uint32_t counter_count;
    const uint64_t *counters; // enum gp_counter
    char name[64];
    const gp_snapshot_function_t *functions; // those that nodes refer to, by number
    uint32_t function_count;
    bool exact;                    // PROF_MODE_EXACT
    const gp_call_record_t *calls; // what was counted
    size_t call_count;
} gp_snapshot_t;

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

// Every live coroutine. Returns gp_coro_view_t[*count], NULL when memory is short. Set by what takes censuses.
typedef gp_coro_view_t *gp_coro_views_t(size_t *count);
extern gp_coro_views_t *gp_coro_views;

typedef struct gp_core_interface {
    size_t size;
    // Take a snapshot; the samples taken so far are in it. Returns it, or NULL and errno.
    gp_snapshot_t *(*snapshot)(prof_t *profile);
    void (*release)(gp_snapshot_t *snapshot);
    // Start a thread that is never sampled, all signals blocked. Returns 0 or a negative errno value.
    int (*thread_start)(void *(*run)(void *), void *argument, void *pthread_out);
    // Hook the language runtime (CPython) that the caller runs in; it holds the interpreter lock. Idempotent.
    // Returns 0, -ENOTSUP where its version is not supported.
    int (*language_attach)(void);
    // Tell `watch` of coroutines, on the calling thread and wherever new ones are made; NULL ends it. To be called on
    // each thread that is of interest. The caller holds the interpreter lock. Returns 0 or -ENOTSUP.
    int (*language_watch)(gp_language_watch_t *watch);
    // Show native frames among the language's, in all that is sampled: from +1 until as many -1.
    void (*language_native)(int change);
    // Has sampling ended, because the host took every signal that it could use?
    bool (*has_yielded)(void);
    // Every live coroutine, to be freed by views_free(); NULL when memory is short. Where the caller holds its
    // language's lock, none of the language's moves meanwhile.
    gp_coro_view_t *(*views)(size_t *count);
    void (*views_free)(gp_coro_view_t *views, size_t count);
    // See gp_profile_detach(): what the calling thread runs.
    void (*detach)(void);
    // See gp_language_t; NULL where there is no language.
    const void *(*language_running)(void);
    gp_language_place_of_running_t (*language_place_of_running)(void);
} gp_core_interface_t;

PROF_API const gp_core_interface_t *prof_core_interface(void);

// This very copy's table, whichever is active.
const gp_core_interface_t *gp_core_own_interface(void);

#endif
