// SPDX-License-Identifier: MIT
#include "request_profiles.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/futex.h"
#include "base/own_thread.h"
#include "consumer/delivery.h"
#include "interface.h"
#include "request_files.h"
#include "settings.h"
#include "trace/span.h"

enum { PLACES = 64, REST = 9 };

enum place_state {
    FREE,
    TAKEN,   // by the thread on which the request begins
    RUNNING, // the request's
    ENDED,   // to be written; from here on the writing thread's
    WRITING,
    ORPHAN, // of the process that forked: to be freed
};

typedef struct place {
    _Atomic uint32_t state; // enum place_state
    uint32_t turn;          // of those that have ended, the oldest first
    prof_t *profile;
    bool is_cut, is_wanted;
    gp_request_file_t request;
} place_t;

static place_t places[PLACES];
static _Atomic uint32_t turns;
static _Atomic uint32_t bell;    // raised for the thread: there is something, or it is to hurry
static _Atomic uint32_t waiting; // how many callers wait for it
static _Atomic bool has_thread;
static _Atomic int32_t thread_number; // never ends; 0: has not run yet
static _Atomic uint64_t written_count, lost_count;

static void request_profiles_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void request_profiles_ring(void)
{
    atomic_fetch_add_explicit(&bell, 1, memory_order_release);
    gp_futex_wake_all(&bell);
}

static uint64_t request_profiles_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// --- on the program's threads

static place_t *request_profiles_take_place(void)
{
    for (size_t i = 0; i < PLACES; i++) {
        uint32_t free_state = FREE;
        if (atomic_load_explicit(&places[i].state, memory_order_relaxed) == FREE &&
            atomic_compare_exchange_strong_explicit(&places[i].state, &free_state, TAKEN, memory_order_acquire,
                                                    memory_order_relaxed))
            return &places[i];
    }
    return NULL;
}

static void *request_profiles_run(void *argument);

static int request_profiles_start_thread(void)
{
    pthread_t thread;
    bool had_thread = false;
    if (!atomic_compare_exchange_strong(&has_thread, &had_thread, true))
        return 0;
    int error = prof_core_interface()->threads->start(request_profiles_run, NULL, &thread);
    if (error == 0)
        pthread_detach(thread);
    else
        atomic_store(&has_thread, false);
    return error;
}

static void *request_profiles_begins(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    place_t *place = request_profiles_take_place();
    if (place == NULL || request_profiles_start_thread() != 0) {
        if (place != NULL)
            atomic_store_explicit(&place->state, FREE, memory_order_release);
        request_profiles_count(&lost_count);
        return NULL;
    }
    options.name = "request";
    options.clock = PROF_CLOCK_WALL;
    options.frequency_hz = (unsigned)gp_setting_number(GP_SETTING_FREQUENCY);
    int saved = errno;
    place->profile = prof_start(&options);
    errno = saved;
    if (place->profile == NULL)
        request_profiles_count(&lost_count);
    atomic_store_explicit(&place->state, place->profile != NULL ? RUNNING : FREE, memory_order_release);
    return place->profile != NULL ? place : NULL;
}

static void request_profiles_ends(void *token, const gp_request_end_t *end)
{
    place_t *place = token;
    enum gp_cut from = end->is_collector ? GP_CUT_COLLECTOR : GP_CUT_HERE;
    place->is_cut = prof_core_interface()->profiles->cut(place->profile, from) == 0;
    place->is_wanted = true;
    place->request = (gp_request_file_t){.span = end->id, .duration_ns = end->duration_ns, .is_asked = end->is_asked};
    memcpy(place->request.trace.bytes, end->trace, sizeof(end->trace));
    place->turn = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
    // Release: partner of the acquire in request_profiles_next_place().
    atomic_store_explicit(&place->state, ENDED, memory_order_release);
    request_profiles_ring();
}

static const gp_request_watch_t watch = {.begins = request_profiles_begins, .ends = request_profiles_ends};

// --- on a thread of greenprof's own

static place_t *request_profiles_next_place(void)
{
    place_t *next = NULL;
    for (size_t i = 0; i < PLACES; i++) {
        uint32_t state = atomic_load_explicit(&places[i].state, memory_order_acquire);
        if (state == ORPHAN)
            return &places[i];
        if (state == ENDED && (next == NULL || (int32_t)(places[i].turn - next->turn) < 0))
            next = &places[i];
    }
    return next;
}

static void request_profiles_write_profile(const place_t *place)
{
    int result = gp_request_files_write(place->profile, &place->request);
    if (result < 0)
        request_profiles_count(&lost_count);
    else if (result > 0)
        request_profiles_count(&written_count);
}

static void request_profiles_deal_with(place_t *place)
{
    const gp_core_interface_t *core = prof_core_interface();
    atomic_store_explicit(&place->state, WRITING, memory_order_relaxed);
    if (!place->is_cut)
        place->is_cut = core->profiles->cut(place->profile, GP_CUT_OUTSIDE) == 0;
    if (place->is_cut)
        core->profiles->settle(place->profile);
    if (place->is_wanted)
        request_profiles_write_profile(place);
    prof_free(place->profile);
    // Release: partner of the acquire in request_profiles_take_place().
    atomic_store_explicit(&place->state, FREE, memory_order_release);
}

// Rest for the program's sake: profiles to be written pile up meanwhile, and then fewer are taken.
static void request_profiles_rest(uint64_t used_ns)
{
    uint64_t until = request_profiles_clock_ns(CLOCK_MONOTONIC) + REST * used_ns, now;
    while (atomic_load_explicit(&waiting, memory_order_acquire) == 0 && prof_core_interface()->threads->may_stay() &&
           (now = request_profiles_clock_ns(CLOCK_MONOTONIC)) < until) {
        uint32_t heard = atomic_load_explicit(&bell, memory_order_acquire);
        if (atomic_load_explicit(&waiting, memory_order_acquire) == 0)
            gp_futex_wait(&bell, heard, until - now);
    }
}

static void *request_profiles_run(void *argument)
{
    atomic_store_explicit(&thread_number, gp_delivery_stand_back(), memory_order_relaxed);
    for (;;) {
        uint32_t heard = atomic_load_explicit(&bell, memory_order_acquire);
        if (!prof_core_interface()->threads->may_stay()) {
            atomic_store_explicit(&thread_number, 0, memory_order_relaxed);
            return GP_THREAD_RETURNS;
        }
        place_t *place = request_profiles_next_place();
        if (place == NULL) {
            gp_futex_wait(&bell, heard, UINT64_MAX);
            continue;
        }
        uint64_t before_ns = request_profiles_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        request_profiles_deal_with(place);
        gp_futex_wake_all(&place->state);
        request_profiles_rest(request_profiles_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns);
    }
    return argument;
}

// --- on any other

void gp_request_profiles_wake(void)
{
    if (atomic_load(&has_thread))
        request_profiles_ring();
}

int gp_request_profiles_start(void)
{
    int error = request_profiles_start_thread();
    if (error == 0)
        prof_core_interface()->spans->watch(&watch);
    return error;
}

void gp_request_profiles_stop(void)
{
    prof_core_interface()->spans->watch(NULL);
}

static int request_profiles_wait_for(place_t *place, uint64_t deadline_ns)
{
    for (;;) {
        uint32_t state = atomic_load_explicit(&place->state, memory_order_acquire);
        if (state != ENDED && state != WRITING)
            return 0;
        uint64_t now = request_profiles_clock_ns(CLOCK_MONOTONIC);
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        gp_futex_wait(&place->state, state, deadline_ns - now);
    }
}

int gp_request_profiles_wait(uint64_t deadline_ns)
{
    int result = 0;
    if (!atomic_load(&has_thread))
        return 0;
    atomic_fetch_add_explicit(&waiting, 1, memory_order_release);
    request_profiles_ring();
    for (size_t i = 0; i < PLACES && result == 0; i++)
        result = request_profiles_wait_for(&places[i], deadline_ns);
    atomic_fetch_sub_explicit(&waiting, 1, memory_order_release);
    return result;
}

void gp_request_profiles_hasten(void)
{
    gp_delivery_come_forward(atomic_load_explicit(&thread_number, memory_order_relaxed));
}

void gp_request_profiles_after_fork(void)
{
    atomic_store_explicit(&thread_number, 0, memory_order_relaxed); // the parent's
    for (size_t i = 0; i < PLACES; i++) {
        uint32_t state = atomic_load_explicit(&places[i].state, memory_order_relaxed);
        bool is_whole = state == RUNNING || state == ENDED;
        places[i].is_wanted = false;
        // A profile that was being begun or written may be in any state: it is left.
        atomic_store_explicit(&places[i].state, is_whole ? ORPHAN : FREE, memory_order_relaxed);
    }
    atomic_store(&has_thread, false);
    atomic_store(&waiting, 0);
    atomic_store(&written_count, 0);
    atomic_store(&lost_count, 0);
}

void gp_request_profiles_count(uint64_t *written, uint64_t *lost)
{
    *written = atomic_load_explicit(&written_count, memory_order_relaxed);
    *lost = atomic_load_explicit(&lost_count, memory_order_relaxed);
}
