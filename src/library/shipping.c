// SPDX-License-Identifier: MIT
#include "shipping.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/own_thread.h"
#include "consumer/beside.h"
#include "consumer/delivery.h"
#include "consumer/directory.h"
#include "consumer/url.h"
#include "interface.h"
#include "settings.h"
#include "ship/follow/in_process.h"

enum { OPEN_MAX_COUNT = 8, PARTS_KEPT = 3, TAKE_OVER_S = 5, FOLDER_SIZE = 512 };
enum { NONE, RUNS, OVER }; // its thread

#define MS_NS      1000000ull
#define CLOSE_NS   (3000 * MS_NS)
#define DISK_BYTES (64ull << 20)

typedef struct shipping {
    char url[GP_URL_MAX];
    gp_ship_state_t state;
    gp_in_process_t here;
    _Atomic uint32_t phase;
    _Atomic int32_t thread; // its number
    _Atomic bool is_open;
    int result; // of its thread
} shipping_t;

static shipping_t shippings[OPEN_MAX_COUNT];
static char spool[256], folder[FOLDER_SIZE], capture[GP_CAPTURE_PATH_SIZE];
static bool is_own_capture;          // begun for shipping
static _Atomic pid_t shipper;        // the process that sends; 0 = none has begun
static _Atomic uint64_t take_over_s; // when to look next whether the shipper is gone
static prof_ship_check_t *check_url;
static prof_ship_run_t *run_shipper;

static bool shipping_is_open(size_t i)
{
    return atomic_load_explicit(&shippings[i].is_open, memory_order_acquire);
}

static size_t shipping_find(const char *url)
{
    size_t i = 0;
    while (i < OPEN_MAX_COUNT && (!shipping_is_open(i) || strcmp(shippings[i].url, url) != 0))
        i++;
    return i;
}

static bool shipping_any_open(void)
{
    bool any = false;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        any |= shipping_is_open(i);
    return any;
}

// --- its thread

static void *shipping_run(void *argument)
{
    shipping_t *shipping = argument;
    atomic_store_explicit(&shipping->thread, gp_delivery_stand_back(), memory_order_relaxed);
    uint32_t stopped = GP_SHIP_STOP;
    shipping->result = run_shipper(&shipping->here);
    atomic_store_explicit(&shipping->thread, 0, memory_order_relaxed);
    if (atomic_compare_exchange_strong(&shipping->state.order, &stopped, GP_SHIP_ON)) // by gp_shipping_wake()
        return GP_THREAD_RETURNS;
    // A shipper that another process makes needless (-EBUSY) may begin again.
    atomic_store_explicit(&shipping->phase, shipping->result == -EBUSY ? NONE : OVER, memory_order_release);
    gp_futex_wake_all(&shipping->phase);
    return NULL;
}

static int shipping_start_thread(shipping_t *shipping)
{
    pthread_t thread;
    atomic_store_explicit(&shipping->phase, RUNS, memory_order_relaxed);
    int error = prof_core_interface()->threads->start(shipping_run, shipping, &thread);
    if (error == 0)
        pthread_detach(thread);
    else
        atomic_store_explicit(&shipping->phase, NONE, memory_order_relaxed);
    return error;
}

static void shipping_ring(shipping_t *shipping)
{
    atomic_fetch_add_explicit(&shipping->state.bell, 1, memory_order_release);
    gp_futex_wake_all(&shipping->state.bell);
}

// Let the shipper send the rest, and end. Signals: safe.
static void shipping_tell_to_finish(shipping_t *shipping)
{
    gp_delivery_come_forward(atomic_load_explicit(&shipping->thread, memory_order_relaxed));
    atomic_store_explicit(&shipping->state.order, GP_SHIP_FINISH, memory_order_release);
    shipping_ring(shipping);
}

static bool shipping_runs(const shipping_t *shipping)
{
    return atomic_load_explicit(&shipping->phase, memory_order_acquire) == RUNS;
}

void gp_shipping_wake(void)
{
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++) {
        uint32_t on = GP_SHIP_ON;
        if (!shipping_runs(&shippings[i]) || atomic_load_explicit(&shippings[i].thread, memory_order_relaxed) == 0)
            continue;
        atomic_compare_exchange_strong(&shippings[i].state.order, &on, GP_SHIP_STOP);
        shipping_ring(&shippings[i]);
    }
}

static int shipping_wait_over(shipping_t *shipping, uint64_t deadline_ns)
{
    while (atomic_load_explicit(&shipping->phase, memory_order_acquire) == RUNS) {
        uint64_t now = gp_now_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        gp_futex_wait(&shipping->phase, RUNS, deadline_ns - now);
    }
    return 0;
}

// Called twice where it is exit() that ends the program: both have one limit.
void gp_shipping_at_last(void)
{
    static _Atomic uint64_t limit_ns;
    uint64_t none = 0, deadline_ns = gp_now_ns() + CLOSE_NS;
    if (!atomic_compare_exchange_strong(&limit_ns, &none, deadline_ns))
        deadline_ns = none;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (shipping_is_open(i) && shipping_runs(&shippings[i]))
            shipping_tell_to_finish(&shippings[i]);
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (shipping_is_open(i))
            shipping_wait_over(&shippings[i], deadline_ns);
}

// Before OpenSSL, which was begun before, is taken down: both are exit handlers.
static void shipping_at_exit(void)
{
    bool is_here = false;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        is_here |= shipping_is_open(i) && shipping_runs(&shippings[i]);
    if (!is_here || !is_own_capture) // a capture recorded anyway ends later
        return;
    prof_core_interface()->capture->end(CLOSE_NS);
    gp_shipping_at_last();
}

// --- forks

void gp_shipping_after_fork(void)
{
    static const gp_ship_state_t none;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++) {
        atomic_store_explicit(&shippings[i].phase, NONE, memory_order_relaxed);
        atomic_store_explicit(&shippings[i].thread, 0, memory_order_relaxed);
        memcpy(&shippings[i].state, &none, sizeof(none));
    }
    if (!is_own_capture)
        atomic_store_explicit(&take_over_s, UINT64_MAX, memory_order_relaxed); // its capture is elsewhere
}

// The parent sends what its children do, and a child goes on where the parent is gone. Another child may be before it.
static void shipping_take_over(void)
{
    pid_t before = atomic_load_explicit(&shipper, memory_order_relaxed);
    uint64_t now_s = gp_now_ns() / 1000000000, at_s = atomic_load_explicit(&take_over_s, memory_order_relaxed);
    if (before == 0 || before == getpid() || now_s < at_s || getppid() == before)
        return;
    atomic_store_explicit(&take_over_s, now_s + TAKE_OVER_S, memory_order_relaxed);
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (shipping_is_open(i) && atomic_load_explicit(&shippings[i].phase, memory_order_acquire) == NONE)
            shipping_start_thread(&shippings[i]);
}

void gp_shipping_count(uint64_t *lost, uint64_t *failed)
{
    shipping_take_over();
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++) {
        *lost += atomic_load_explicit(&shippings[i].state.lost, memory_order_relaxed);
        *failed += atomic_load_explicit(&shippings[i].state.failures, memory_order_relaxed);
    }
}

// --- opening

static bool shipping_load(void)
{
    void *library = run_shipper == NULL ? gp_beside_load(GP_SHIP_LIBRARY) : NULL;
    if (library == NULL)
        return run_shipper != NULL;
    check_url = (prof_ship_check_t *)(uintptr_t)dlsym(library, "prof_ship_check");
    run_shipper = (prof_ship_run_t *)(uintptr_t)dlsym(library, "prof_ship_run");
    return check_url != NULL && run_shipper != NULL;
}

static int shipping_choose_spool(const char *url)
{
    char value[GP_URL_MAX];
    const char *directory = gp_setting(GP_SETTING_SPOOL);
    if (gp_url_option(url, "spool", value))
        directory = value;
    int len = directory != NULL ? snprintf(spool, sizeof(spool), "%s", directory)
                                : snprintf(spool, sizeof(spool), "/var/tmp/greenprof-%u", (unsigned)geteuid());
    if (spool[0] != '/' || len >= (int)sizeof(spool))
        return -EINVAL;
    int fd = gp_directory_open(AT_FDCWD, spool);
    int error = fd < 0 ? fd : gp_directory_is_private(fd) ? 0 : -EACCES;
    if (fd >= 0)
        close(fd);
    return error;
}

// A folder for this process and its children.
static int shipping_make_folder(const char *url)
{
    struct timespec now;
    if (folder[0] != '\0')
        return 0;
    int error = shipping_choose_spool(url);
    if (error != 0)
        return error;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(folder, sizeof(folder), "%s/ship-%d-%llx", spool, (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
    if (mkdir(folder, 0700) == 0)
        return 0;
    folder[0] = '\0';
    return -errno;
}

// The process' capture, begun where there is none.
static int shipping_have_capture(const char *url)
{
    char value[GP_URL_MAX], path[FOLDER_SIZE + 32];
    uint64_t disk_bytes = DISK_BYTES;
    if (gp_url_option(url, "spool_size", value) && (!gp_url_size(value, &disk_bytes) || disk_bytes < (1u << 20)))
        return -EINVAL;
    prof_core_interface()->capture->path(capture);
    if (capture[0] != '\0')
        return 0;
    snprintf(path, sizeof(path), "%s/process.greenprof", folder);
    int error = prof_core_interface()->capture->begin(path, disk_bytes / (PARTS_KEPT + 1), PARTS_KEPT);
    is_own_capture = error == 0;
    return error;
}

static int shipping_begin(shipping_t *shipping, const char *url)
{
    static const gp_ship_state_t none;
    int error = shipping_any_open() ? 0 : shipping_make_folder(url);
    if (error == 0 && !shipping_any_open())
        error = shipping_have_capture(url);
    if (error != 0)
        return error;
    strcpy(shipping->url, url);
    memcpy(&shipping->state, &none, sizeof(none));
    shipping->here = (gp_in_process_t){.size = sizeof(shipping->here),
                                       .url = shipping->url,
                                       .spool = spool,
                                       .folder = folder,
                                       .capture = is_own_capture ? NULL : capture,
                                       .state = &shipping->state};
    atomic_store_explicit(&shipper, getpid(), memory_order_relaxed);
    error = shipping_start_thread(shipping);
    if (error == 0)
        atomic_store_explicit(&shipping->is_open, true, memory_order_release);
    return error;
}

int gp_shipping_open(const char *url)
{
    static bool is_registered;
    char error[GP_HERE_ERROR_SIZE];
    uint64_t id;
    size_t place = 0;
    if (strlen(url) >= GP_URL_MAX)
        return -EINVAL;
    if (shipping_find(url) != OPEN_MAX_COUNT)
        return -EALREADY;
    while (place < OPEN_MAX_COUNT && (shipping_is_open(place) || shipping_runs(&shippings[place])))
        place++;
    if (place == OPEN_MAX_COUNT)
        return -ENOSPC;
    if (!shipping_load())
        return -ENOTSUP;
    int result = check_url(url, &id, error);
    if (result != 0)
        return result;
    if (!is_registered)
        is_registered = atexit(shipping_at_exit) == 0;
    return shipping_begin(&shippings[place], url);
}

// --- closing, flushing, counting

static int shipping_close_at(shipping_t *shipping, uint64_t deadline_ns)
{
    shipping_tell_to_finish(shipping);
    int error = shipping_wait_over(shipping, deadline_ns);
    return error == 0 && shipping->result != 0 ? -ETIMEDOUT : error;
}

int gp_shipping_close(const char *url)
{
    uint64_t deadline_ns = gp_now_ns() + CLOSE_NS;
    int result = url != NULL ? -ENOENT : 0;
    size_t count = 0;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        count += shipping_is_open(i) && url != NULL && strcmp(shippings[i].url, url) != 0;
    bool ends = count == 0 && is_own_capture;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++) {
        if (!shipping_is_open(i) || (url != NULL && strcmp(shippings[i].url, url) != 0))
            continue;
        if (ends && shipping_runs(&shippings[i]))
            prof_core_interface()->capture->end(CLOSE_NS);
        int error = shipping_close_at(&shippings[i], deadline_ns);
        atomic_store_explicit(&shippings[i].is_open, false, memory_order_release);
        result = error != 0 ? error : result == -ENOENT ? 0 : result;
    }
    if (!shipping_any_open()) {
        folder[0] = '\0';
        is_own_capture = false;
    }
    return result;
}

static int shipping_wait_heard(shipping_t *shipping, uint64_t deadline_ns)
{
    shipping_ring(shipping);
    uint32_t bell = atomic_load_explicit(&shipping->state.bell, memory_order_relaxed), heard;
    while ((heard = atomic_load_explicit(&shipping->state.heard, memory_order_acquire)) != bell) {
        uint64_t now = gp_now_ns();
        if (now >= deadline_ns || !shipping_runs(shipping))
            return -ETIMEDOUT;
        gp_futex_wait(&shipping->state.heard, heard, deadline_ns - now < 100 * MS_NS ? deadline_ns - now : 100 * MS_NS);
    }
    return 0;
}

int gp_shipping_flush(uint64_t deadline_ns)
{
    int result = 0;
    uint64_t now = gp_now_ns();
    if (shipping_any_open() && deadline_ns > now)
        result = prof_core_interface()->capture->flush(deadline_ns - now);
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (shipping_is_open(i) && shipping_wait_heard(&shippings[i], deadline_ns) != 0)
            result = -ETIMEDOUT;
    return result == -EALREADY ? 0 : result;
}

bool gp_shipping_status(const char *url, prof_consumer_status_t *sum)
{
    bool found = false;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++) {
        const gp_ship_state_t *state = &shippings[i].state;
        if (!shipping_is_open(i) || (url != NULL && strcmp(shippings[i].url, url) != 0))
            continue;
        uint64_t spans = atomic_load_explicit(&state->spans, memory_order_relaxed);
        uint64_t lost = atomic_load_explicit(&state->lost, memory_order_relaxed);
        int32_t error = atomic_load_explicit(&state->last_error, memory_order_relaxed);
        sum->given += spans + lost;
        sum->sent += spans;
        sum->lost_queue += lost;
        sum->recovered += atomic_load_explicit(&state->others, memory_order_relaxed);
        sum->failures += atomic_load_explicit(&state->failures, memory_order_relaxed);
        sum->last_error = error != 0 ? error : sum->last_error;
        found = true;
    }
    return found;
}
