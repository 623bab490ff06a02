// SPDX-License-Identifier: MIT
// prof_consumer_*(): the only file that knows both the core, which tells of spans, and the consumers, which take them.
//
// The active core calls consume_hear() on its collector's thread; that packs the span and puts it into the queue of
// each open consumer. A forked child has the consumers of its parent, each with an empty queue and a thread that begins
// with the first span.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "consumer/backends.h"
#include "consumer/delivery.h"
#include "consumer/hold.h"
#include "greenprof/consumer.h"
#include "interface.h"
#include "request_files.h"
#include "request_profiles.h"
#include "settings.h"
#include "shipping.h"
#include "wire/policy.h"

enum { OPEN_MAX_COUNT = 8 };

#define MS_NS      1000000ull
#define CLOSE_NS   (3000 * MS_NS)
#define COLLECT_NS (500 * MS_NS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    // opening and closing
static _Atomic(gp_delivery_t *) deliveries[OPEN_MAX_COUNT]; // read without it
static bool is_listening;
static char default_spool[64];

static gp_delivery_t *consume_delivery_at(size_t i)
{
    return atomic_load_explicit(&deliveries[i], memory_order_acquire);
}

// --- the collector's thread

static int consume_start_thread(gp_delivery_t *delivery)
{
    pthread_t thread;
    delivery->may_stay = prof_core_interface()->threads->may_stay;
    int error = prof_core_interface()->threads->start(gp_delivery_run, delivery, &thread);
    if (error == 0)
        pthread_detach(thread);
    delivery->has_thread = error == 0;
    return error;
}

static void consume_give(void *context, const gp_packed_span_t *packed)
{
    (void)context;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++) {
        gp_delivery_t *delivery = consume_delivery_at(i);
        if (delivery == NULL)
            continue;
        gp_delivery_give(delivery, packed);
        if (!delivery->has_thread)
            consume_start_thread(delivery);
    }
}

static gp_hold_t hold; // of the policy slower=; under the drain lock

static void consume_hear(void *context, const prof_span_record_t *span)
{
    static _Alignas(8) char room[GP_PACKED_BYTES_MAX]; // under the drain lock
    gp_packed_span_t *packed = (void *)room;
    gp_packed_make(packed, span);
    hold.least_ns = gp_policy_least_ns();
    if (hold.least_ns != 0) {
        gp_hold_add(&hold, packed, consume_give, context);
        return;
    }
    if (hold.table != NULL) // the policy has changed
        gp_hold_end(&hold);
    consume_give(context, packed);
}

// --- what is counted

static struct {
    _Atomic uint64_t lost, spooled, failed;
} closed; // of consumers that are closed

static void consume_add_to(_Atomic uint64_t *sum, uint64_t more)
{
    atomic_fetch_add_explicit(sum, more, memory_order_relaxed);
}

static void consume_remember(const gp_delivery_t *delivery)
{
    prof_consumer_status_t its = {0};
    gp_delivery_status(delivery, &its);
    consume_add_to(&closed.lost, its.refused + its.lost_queue + its.lost_end);
    consume_add_to(&closed.spooled, its.spooled);
    consume_add_to(&closed.failed, its.failures);
}

// For the capture.
static void consume_add_counters(uint64_t counters[GP_COUNTER_COUNT])
{
    prof_consumer_status_t sum = {0};
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL)
            gp_delivery_status(consume_delivery_at(i), &sum);
    gp_request_profiles_count(&sum.profiles, &sum.profiles_lost);
    gp_shipping_count(&sum.lost_queue, &sum.failures);
    counters[GP_COUNTER_CONSUMERS_LOST] += closed.lost + sum.refused + sum.lost_queue + sum.lost_end;
    counters[GP_COUNTER_CONSUMERS_SPOOLED] += closed.spooled + sum.spooled;
    counters[GP_COUNTER_CONSUMERS_FAILED] += closed.failed + sum.failures;
    counters[GP_COUNTER_PROFILES_LOST] += sum.profiles_lost;
}

// --- fork and end

static void consume_begin_anew(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    closed.lost = closed.spooled = closed.failed = 0;
    gp_hold_begin(&hold, 0); // held spans are left: the allocator is not asked here
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL)
            gp_delivery_after_fork(consume_delivery_at(i), getpid());
    gp_request_files_after_fork(getpid());
    gp_request_profiles_after_fork();
    gp_shipping_after_fork();
}

// The process ends, perhaps in a handler: only atomics and futexes.
static void consume_end_all(void)
{
    uint64_t deadline = gp_now_ns() + CLOSE_NS;
    gp_request_profiles_hasten();
    prof_core_interface()->profiles->collect(CLOSE_NS / 2);
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL && consume_delivery_at(i)->has_thread)
            gp_delivery_close(consume_delivery_at(i), deadline);
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL && consume_delivery_at(i)->has_thread)
            gp_delivery_wait_over(consume_delivery_at(i), deadline);
    gp_request_profiles_wait(deadline);
}

// Wake all waiting threads of this library, to look whether they may stay. Signals: safe.
static void consume_wake_all(void)
{
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL && consume_delivery_at(i)->has_thread)
            gp_queue_ring(&consume_delivery_at(i)->queue);
    gp_request_profiles_wake();
    gp_shipping_wake();
}

static void consume_prepare(void)
{
    pthread_atfork(NULL, NULL, consume_begin_anew);
    prof_core_interface()->threads->at_end(consume_end_all, gp_shipping_at_last);
    prof_core_interface()->capture->add_counters(consume_add_counters);
    prof_core_interface()->threads->wake_by(consume_wake_all);
    snprintf(default_spool, sizeof(default_spool), "/var/tmp/greenprof-%u", (unsigned)geteuid());
}

// --- opening

static void consume_identify(gp_identity_t *identity)
{
    const char *service = gp_setting(GP_SETTING_SERVICE);
    struct utsname names = {.nodename = "unknown"};
    uname(&names);
    gp_identity_name(identity->service, service != NULL ? service : program_invocation_short_name);
    gp_identity_name(identity->host, names.nodename);
    identity->pid = getpid();
}

// Spans for a file or for nothing are kept in the queue: a spool, another file, would be no better.
static const char *consume_spool_for(const prof_consumer_t *backend)
{
    const char *directory = gp_setting(GP_SETTING_SPOOL);
    return backend == &gp_consumer_file || backend == &gp_consumer_null ? NULL
           : directory != NULL                                          ? directory
                                                                        : default_spool;
}

static size_t consume_find(const char *url)
{
    size_t i = 0;
    while (i < OPEN_MAX_COUNT && (consume_delivery_at(i) == NULL || strcmp(consume_delivery_at(i)->url, url) != 0))
        i++;
    return i;
}

static size_t consume_free_place(void)
{
    size_t i = 0;
    while (i < OPEN_MAX_COUNT && consume_delivery_at(i) != NULL)
        i++;
    return i;
}

static int consume_start_listening(void)
{
    if (is_listening)
        return 0;
    int error = prof_core_interface()->spans->listen(consume_hear, NULL);
    is_listening = error == 0;
    return error;
}

// The delivery runs: let it be heard of. Where that fails, its thread may still be using it for a while.
static int consume_put_into_use(gp_delivery_t *delivery, size_t place)
{
    int error = consume_start_listening();
    if (error == 0) {
        // Release: partner of the acquire in consume_delivery_at().
        atomic_store_explicit(&deliveries[place], delivery, memory_order_release);
        return 0;
    }
    uint64_t deadline = gp_now_ns() + CLOSE_NS;
    gp_delivery_close(delivery, deadline);
    return gp_delivery_wait_over(delivery, deadline) == 0 ? error : -ETIMEDOUT;
}

// Profiles of requests are written beside the spans of this consumer, if its URL asks for them.
static int consume_start_profiles(const gp_delivery_t *delivery)
{
    if (delivery->backend != &gp_consumer_file || gp_request_files_asked(delivery->url) == 0)
        return 0;
    int error = gp_request_files_add(delivery->url, &delivery->identity);
    return error == 0 ? gp_request_profiles_start() : error;
}

static void consume_stop_profiles(const gp_delivery_t *delivery, uint64_t deadline)
{
    if (delivery->backend != &gp_consumer_file || gp_request_files_asked(delivery->url) == 0)
        return;
    gp_request_profiles_wait(deadline);
    if (gp_request_files_remove(delivery->url))
        gp_request_profiles_stop();
}

// Returns 0 where it is in use, -ETIMEDOUT where it cannot be freed.
static int consume_begin(gp_delivery_t *delivery, const char *url, size_t place)
{
    gp_identity_t identity;
    const prof_consumer_t *backend = gp_backend_of(url);
    if (backend == NULL)
        return -errno;
    if (backend == &gp_consumer_file && gp_request_files_asked(url) < 0)
        return -EINVAL;
    consume_identify(&identity);
    int error = gp_delivery_begin(delivery, url, backend, consume_spool_for(backend), &identity);
    if (error != 0)
        return error;
    error = consume_start_thread(delivery);
    if (error == 0)
        error = consume_start_profiles(delivery);
    if (error == 0)
        error = consume_put_into_use(delivery, place);
    if (error != 0)
        consume_stop_profiles(delivery, gp_now_ns());
    if (error != 0 && error != -ETIMEDOUT)
        gp_delivery_end(delivery);
    return error;
}

static int consume_open_locked(const char *url)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t place = consume_free_place();
    if (consume_find(url) != OPEN_MAX_COUNT)
        return -EALREADY;
    if (place == OPEN_MAX_COUNT)
        return -ENOSPC;
    pthread_once(&once, consume_prepare);
    if (gp_backend_of(url) == NULL && errno == ENOTSUP)
        return gp_shipping_open(url);
    gp_delivery_t *delivery = calloc(1, sizeof(*delivery));
    if (delivery == NULL)
        return -ENOMEM;
    int error = consume_begin(delivery, url, place);
    // -Wanalyzer-malloc-leak: it is in the list, or its thread has it.
    if (error != 0 && error != -ETIMEDOUT)
        free(delivery);
    return error;
}

PROF_API int prof_consumer_open(const char *url)
{
    int saved = errno;
    if (url == NULL)
        return -EINVAL;
    pthread_mutex_lock(&lock);
    int error = consume_open_locked(url);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return error;
}

PROF_API int prof_consumer_register(const prof_consumer_t *consumer)
{
    return gp_backend_add(consumer);
}

// --- closing

// After a round of the collector none uses what was taken from the list before it.
static int consume_close_at(size_t place)
{
    gp_delivery_t *delivery = consume_delivery_at(place);
    uint64_t deadline = gp_now_ns() + CLOSE_NS;
    consume_stop_profiles(delivery, deadline);
    prof_core_interface()->profiles->collect(COLLECT_NS);
    atomic_store_explicit(&deliveries[place], NULL, memory_order_release);
    bool is_out_of_use = prof_core_interface()->profiles->collect(COLLECT_NS) != -ETIMEDOUT;
    gp_delivery_close(delivery, deadline);
    int error = delivery->has_thread ? gp_delivery_wait_over(delivery, deadline) : 0;
    consume_remember(delivery);
    if (error != 0 || !is_out_of_use)
        return -ETIMEDOUT; // memory that may still be used is left
    if (atomic_load_explicit(&delivery->counts.lost_end, memory_order_relaxed) != 0)
        error = -ETIMEDOUT;
    gp_delivery_end(delivery);
    free(delivery);
    return error;
}

static int consume_close_locked(const char *url)
{
    int result = url != NULL ? -ENOENT : 0;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL && (url == NULL || consume_find(url) == i)) {
            int error = consume_close_at(i);
            result = error != 0 ? error : result == -ENOENT ? 0 : result;
        }
    bool is_last = true;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        is_last = is_last && consume_delivery_at(i) == NULL;
    if (is_last && is_listening) {
        prof_core_interface()->spans->listen(NULL, NULL);
        is_listening = false;
    }
    return result;
}

PROF_API int prof_consumer_close(const char *url)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    int result = consume_close_locked(url), shipped = gp_shipping_close(url);
    if (shipped != -ENOENT && (result == 0 || result == -ENOENT))
        result = shipped;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return result;
}

PROF_API int prof_consumer_flush(unsigned limit_ms)
{
    int saved = errno, result = 0;
    uint64_t deadline = gp_now_ns() + limit_ms * MS_NS;
    pthread_mutex_lock(&lock);
    if (is_listening && prof_core_interface()->profiles->collect(limit_ms * MS_NS) == -ETIMEDOUT)
        result = -ETIMEDOUT;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL && gp_delivery_wait_idle(consume_delivery_at(i), deadline) != 0)
            result = -ETIMEDOUT;
    if (gp_request_profiles_wait(deadline) != 0 || gp_shipping_flush(deadline) != 0)
        result = -ETIMEDOUT;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return result;
}

PROF_API int prof_consumer_status(const char *url, prof_consumer_status_t *status)
{
    prof_consumer_status_t sum = {0};
    if (status == NULL || status->size == 0 || status->size > sizeof(sum))
        return -EINVAL;
    pthread_mutex_lock(&lock);
    size_t only = url != NULL ? consume_find(url) : OPEN_MAX_COUNT;
    bool is_there = url == NULL || only != OPEN_MAX_COUNT;
    for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
        if (consume_delivery_at(i) != NULL && (url == NULL || i == only))
            gp_delivery_status(consume_delivery_at(i), &sum);
    is_there |= gp_shipping_status(url, &sum);
    pthread_mutex_unlock(&lock);
    sum.size = status->size;
    gp_request_profiles_count(&sum.profiles, &sum.profiles_lost);
    sum.unheard = prof_core_interface()->spans->lost();
    if (is_there)
        memcpy(status, &sum, status->size);
    return is_there ? 0 : -ENOENT;
}

// --- what the environment asks for

static bool consume_is_active_library(void)
{
    int (*volatile first)(const char *) = prof_consumer_open;
    return first == &prof_consumer_open;
}

static void consume_say(const char *url, int error)
{
    char text[256];
    const char *library = error == -ELIBACC ? gp_backend_library(url) : NULL;
    int len = snprintf(text, sizeof(text), "greenprof: GREENPROF_CONSUMER: %.*s: %s%s\n", (int)strcspn(url, ":"), url,
                       library != NULL ? library : "",
                       library != NULL     ? " is not there, or lacks a library"
                       : error == -EINVAL  ? "this URL, or an option of it, is wrong"
                       : error == -ENOTSUP ? "there is no such consumer"
                                           : strerrordesc_np(-error));
    (void)!write(STDERR_FILENO, text, (size_t)len);
}

__attribute__((constructor)) static void consume_open_those_of_environment(void)
{
    const char *at = gp_setting(GP_SETTING_CONSUMER);
    char url[GP_URL_MAX];
    if (at == NULL || !consume_is_active_library())
        return;
    for (at += strspn(at, " "); *at != '\0'; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        int error = len < sizeof(url) ? 0 : -EINVAL;
        if (error == 0) {
            memcpy(url, at, len);
            url[len] = '\0';
            error = prof_consumer_open(url);
        }
        if (error != 0)
            consume_say(at, error);
        at += len;
    }
}
