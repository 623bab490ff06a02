// SPDX-License-Identifier: MIT
#include "control/requests.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collect/cost.h"
#include "collect/cpu_time.h"
#include "collect/sampler.h"
#include "collect/thread_timers.h"
#include "control/control.h"
#include "control/coroutine_rows.h"
#include "control/output_at_asker.h"
#include "coro/threads.h"
#include "model/budget.h"
#include "record/budget.h"
#include "record/budget_share.h"
#include "record/session.h"
#include "record/session_flush.h"
#include "signal/language.h"
#include "signal/ticks.h"
#include "trace/client_switch.h"

enum {
    LOOK_HZ = 100,         // while nothing else samples: what computes without a switch is settled as often
    LEASE_MAX_MS = 120000, // that a request can ask for
    FLUSH_LEAST_MS = 5,
    FLUSH_MOST_MS = 60000,
    DUMP_TRIES = 50,
};

#define LIMIT_NS 8000000000ull // for what waits for the disk

static uint64_t lease_until_ns; // 0 = there is none

static int requests_take_lease(uint32_t ms)
{
    int error = lease_until_ns == 0 ? gp_sampler_acquire_patiently(LOOK_HZ) : 0;
    if (error == 0)
        lease_until_ns = gp_clock_ns(CLOCK_MONOTONIC) + (uint64_t)(ms < LEASE_MAX_MS ? ms : LEASE_MAX_MS) * 1000000;
    return error;
}

int gp_control_lease_ms(void)
{
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    if (lease_until_ns == 0)
        return -1;
    return lease_until_ns > now ? (int)((lease_until_ns - now) / 1000000 + 1) : 0;
}

void gp_control_lease_look(void)
{
    if (gp_control_lease_ms() != 0)
        return;
    lease_until_ns = 0;
    gp_sampler_release_patiently(LOOK_HZ);
}

static uint32_t requests_count_threads(void)
{
    uint32_t count = 0;
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        count += atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE;
    return count;
}

static uint64_t refused;

void gp_control_count_refused(void)
{
    refused++;
}

static void requests_describe(gp_control_reply_t *reply)
{
    static gp_session_latest_t latest;
    gp_session_status(&latest);
    reply->state = latest.state;
    reply->frequency_hz = latest.frequency_hz;
    reply->clock = latest.clock;
    reply->rings_error = gp_session_rings_error();
    reply->engine = (uint32_t)gp_timers_engine();
    reply->threads = requests_count_threads();
    reply->budget_ppm = gp_budget_ppm();
    reply->lowered_hz = gp_budget_lowered_to();
    reply->slowed_percent = gp_budget_slowness();
    reply->budget_processes = gp_budget_share_count();
    reply->delivery_ns = (uint32_t)gp_cost_delivery_ns();
    reply->now_ns = gp_clock_ns(CLOCK_MONOTONIC);
    reply->start_realtime_ns = latest.start_realtime_ns;
    reply->start_ns = latest.start_ns;
    reply->bytes = latest.bytes;
    reply->process_cpu_ns = gp_cpu_time_process();
    reply->own_cpu_ns = gp_thread_helper_cpu_ns();
    reply->clients = gp_clients_on();
    reply->refused = refused;
    memcpy(reply->counters, latest.counters, sizeof(reply->counters));
    memcpy(reply->path, latest.path, sizeof(reply->path));
    gp_control_place_show(reply->path);
}

// Coroutines and pools of an interpreter's that were there before are not waited for until it makes a new one.
static void requests_look_soon(void)
{
    void (*attach_soon)(void) = atomic_load_explicit(&gp_language_attach_soon, memory_order_acquire);
    if (attach_soon != NULL)
        attach_soon();
}

// given: of the path's file, -1 = the path is the process' own.
static int requests_start(const gp_control_request_t *request, int given)
{
    static gp_session_wish_t wish;
    wish = (gp_session_wish_t){
        .is_asked = true,
        .pid = getpid(),
        .frequency_hz = request->frequency_hz,
        .flush_ms = request->flush_ms,
        .clock = request->clock,
    };
    memcpy(wish.path, request->path, sizeof(wish.path));
    if (given > 0 && request->path[0] != '\0') {
        wish.lent = given;
        gp_control_place_name(given, wish.path);
    }
    gp_budget_set(request->budget_ppm);
    int error = gp_session_begin(&wish);
    if (error != 0)
        return error;
    gp_control_place_keep(wish.path, request->path);
    requests_look_soon();
    return 0;
}

static bool requests_is_recording(void)
{
    static gp_session_latest_t latest;
    gp_session_status(&latest);
    return latest.state == GP_CONTROL_RECORDING;
}

// Clients are switched also where it records already; then nothing else of the request holds. A request that is refused
// switches none.
static int requests_switch(const gp_control_request_t *request, int given)
{
    bool is_all = request->spans[0] != '\0' && request->path[0] == '\0' && requests_is_recording();
    uint64_t bits = gp_clients_on();
    size_t len;
    if (request->spans[0] != '\0' && gp_clients_obey(request->spans, &bits, &len) != NULL)
        return -EINVAL;
    int error = is_all ? 0 : requests_start(request, given);
    if (error == 0 && request->spans[0] != '\0')
        error = gp_clients_switch(request->spans);
    if (error == 0 && is_all)
        requests_look_soon();
    return error;
}

static bool requests_is_valid(const gp_control_request_t *request)
{
    const char *path = request->path;
    return memchr(path, '\0', sizeof(request->path)) != NULL && (path[0] == '\0' || path[0] == '/') &&
           request->frequency_hz <= PROF_FREQUENCY_MAX_HZ && request->budget_ppm <= GP_BUDGET_MOST_PPM &&
           memchr(request->spans, '\0', sizeof(request->spans)) != NULL &&
           (request->flush_ms == 0 || (request->flush_ms >= FLUSH_LEAST_MS && request->flush_ms <= FLUSH_MOST_MS)) &&
           request->clock >= -1 && request->clock <= PROF_CLOCK_WALL;
}

static int requests_look(const gp_control_request_t *request, gp_control_reply_t *reply, int *fd)
{
    int error = requests_take_lease(request->lease_ms);
    if (error == 0)
        *fd = gp_control_rows(&reply->rows, &reply->coroutines);
    return error == 0 && *fd < 0 ? *fd : error;
}

static int requests_finish(void)
{
    return gp_session_finish(LIMIT_NS);
}

// The asker may have no other way to the file than this, and trusts no name that it is told.
static int requests_dump(int *fd)
{
    int error = 0;
    for (int i = 0; error == 0 && *fd < 0 && i < DUMP_TRIES; i++) {
        error = gp_session_flush(LIMIT_NS);
        *fd = error == 0 ? gp_session_descriptor() : -1; // none where more is being written already
    }
    return error;
}

static bool is_to_detach;

bool gp_control_is_to_detach(void)
{
    return is_to_detach;
}

void gp_control_detached(void)
{
    is_to_detach = false;
}

int gp_control_detach(void)
{
    if (!gp_control_is_attached())
        return -EPERM;
    int error = requests_finish();
    if (error != 0 && error != -EALREADY)
        return error;
    if (lease_until_ns != 0)
        gp_sampler_release_patiently(LOOK_HZ);
    lease_until_ns = 0;
    gp_control_end_attachment();
    is_to_detach = true;
    return 0;
}

static int requests_obey(const gp_control_request_t *request, int given, gp_control_reply_t *reply, int *fd)
{
    if (!requests_is_valid(request))
        return -EINVAL;
    switch (request->command) {
    case GP_CONTROL_STATUS:
        return 0;
    case GP_CONTROL_START:
        return requests_switch(request, given);
    case GP_CONTROL_STOP:
        return requests_finish();
    case GP_CONTROL_DUMP:
        return requests_dump(fd);
    case GP_CONTROL_DETACH:
        return gp_control_detach();
    case GP_CONTROL_TOP:
        return requests_look(request, reply, fd);
    default:
        return -EINVAL;
    }
}

static void requests_begin_reply(gp_control_reply_t *reply, int error)
{
    memset(reply, 0, sizeof(*reply));
    reply->magic = GP_CONTROL_MAGIC;
    reply->version = GP_CONTROL_VERSION;
    reply->error = error;
}

void gp_control_answer_briefly(int error, const uint8_t nonce[GP_CONTROL_NONCE_BYTES], gp_control_reply_t *reply)
{
    requests_begin_reply(reply, error);
    if (error != 0)
        gp_control_count_refused();
    else
        memcpy(reply->nonce, nonce, sizeof(reply->nonce));
}

void gp_control_answer(const gp_control_request_t *request, int given, gp_control_reply_t *reply, int *fd)
{
    requests_begin_reply(reply, 0);
    *fd = -1;
    reply->error = requests_obey(request, given, reply, fd);
    if (given >= 0)
        close(given);
    requests_describe(reply);
}

void gp_control_switch(void)
{
    static const gp_control_request_t as_environment = {.clock = -1};
    if (requests_finish() == -EALREADY)
        requests_start(&as_environment, -1);
}
