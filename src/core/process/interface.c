// SPDX-License-Identifier: MIT
#include "interface.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/modules.h"
#include "collect/sampler.h"
#include "control/keys.h"
#include "coro/announce.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "process/aside.h"
#include "process/process.h"
#include "profile/profile.h"
#include "record/census_view.h"
#include "record/follow.h"
#include "record/rotation.h"
#include "record/session.h"
#include "record/span_listen.h"
#include "signal/handler.h"
#include "signal/language.h"
#include "trace/client_switch.h"
#include "trace/span.h"

static int interface_attach_language(void)
{
    int (*attach)(void) = atomic_load_explicit(&gp_language_attach, memory_order_acquire);
    return attach != NULL ? attach() : -ENOTSUP;
}

static bool interface_calls_are_taken(void)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    return language != NULL && language->calls_are_taken();
}

static void interface_detach(void)
{
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro != NULL)
        gp_profile_detach(coro);
}

static void interface_change_native(int change)
{
    atomic_fetch_add_explicit(&gp_handler_native, change, memory_order_relaxed);
}

static gp_coro_view_t *interface_views(size_t *count)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    if (language != NULL)
        language->enter();
    *count = 0;
    return gp_census_views(count);
}

static void interface_views_free(gp_coro_view_t *views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(views[i].frames);
    free(views);
}

static int interface_start_thread(void *(*run)(void *), void *argument, void *pthread_out)
{
    return gp_process_is_open() ? gp_thread_start_staying(run, argument, pthread_out) : -ESRCH;
}

static void interface_set_policy(gp_span_policy_t *chosen)
{
    // Release: partner of the acquire where requests begin.
    atomic_store_explicit(&gp_span_policy, chosen, memory_order_release);
}

static void interface_set_watch(const gp_request_watch_t *watch)
{
    // Release: partner of the acquire in begin_watching().
    atomic_store_explicit(&gp_request_watch, watch, memory_order_release);
}

static uint64_t interface_spans_lost(void)
{
    uint64_t counters[GP_COUNTER_COUNT];
    gp_drain_enter();
    gp_collector_counters(counters);
    gp_drain_leave();
    return counters[GP_COUNTER_LOST_SPANS];
}

static void interface_set_begun(void (*begun)(void))
{
    // Release: partner of the acquire in prof_start().
    atomic_store_explicit(&gp_profile_begun, begun, memory_order_release);
}

static int interface_start_helper(void *(*run)(void *), void *argument, void *pthread_out)
{
    return gp_process_is_open() ? gp_thread_start_own(run, argument, pthread_out) : -ESRCH;
}

static int interface_begin_capture(const char *path, uint64_t part_bytes, unsigned keep)
{
    gp_session_wish_t wish = {.pid = (int)getpid(), .clock = -1, .makes_directory = true};
    if (strlen(path) >= sizeof(wish.path))
        return -ENAMETOOLONG;
    strcpy(wish.path, path);
    gp_rotation_suggest(part_bytes, keep);
    gp_sampler_follow_forks(gp_follow_forks());
    return gp_session_begin(&wish);
}

static void interface_read_capture_path(char path[GP_CAPTURE_PATH_SIZE])
{
    gp_session_latest_t latest;
    gp_session_status(&latest);
    _Static_assert(sizeof(latest.path) <= GP_CAPTURE_PATH_SIZE, "it fits");
    strcpy(path, latest.state == GP_CONTROL_RECORDING ? latest.path : "");
}

static const gp_core_profiles_t profiles = {
    .size = sizeof(profiles),
    .snapshot = gp_profile_snapshot,
    .release = gp_profile_snapshot_free,
    .looked_up = gp_modules_looked_up,
    .latest = gp_profile_latest,
    .on_begin = interface_set_begun,
    .cut = gp_profile_cut,
    .settle = gp_profile_settle,
    .collect = gp_collector_sync_within,
    .has_yielded = gp_sampler_has_yielded,
};

static const gp_core_spans_t spans = {
    .size = sizeof(spans),
    .listen = gp_span_listen,
    .policy = interface_set_policy,
    .watch = interface_set_watch,
    .lost = interface_spans_lost,
    .may_call = gp_client_may_call,
    .client_is_on = gp_client_is_on,
};

static const gp_core_capture_t capture = {
    .size = sizeof(capture),
    .begin = interface_begin_capture,
    .end = gp_session_finish,
    .flush = gp_session_flush,
    .path = interface_read_capture_path,
    .add_counters = gp_collector_add_counters,
    .control_keys = gp_control_keys_set,
};

static const gp_core_language_t language = {
    .size = sizeof(language),
    .attach = interface_attach_language,
    .native = interface_change_native,
    .calls_are_taken = interface_calls_are_taken,
    .views = interface_views,
    .views_free = interface_views_free,
    .detach = interface_detach,
};

static const gp_core_threads_t threads = {
    .size = sizeof(threads),
    .start_staying = interface_start_thread,
    .start = interface_start_helper,
    .may_stay = gp_thread_helper_may_stay,
    .wake_by = gp_aside_wake_by,
    .at_end = gp_process_at_end,
};

static const gp_core_interface_t interface = {
    .size = sizeof(interface),
    .profiles = &profiles,
    .spans = &spans,
    .capture = &capture,
    .language = &language,
    .threads = &threads,
};

const gp_core_interface_t *prof_core_interface(void)
{
    return &interface;
}

const gp_core_interface_t *gp_core_own_interface(void)
{
    return &interface;
}
