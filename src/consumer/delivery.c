// SPDX-License-Identifier: MIT
#include "consumer/delivery.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/own_thread.h"

enum {
    BATCH = 128,
    BUFFER = 128 << 10,
    QUEUE_BYTES = 1 << 20,
    SPOOL_BYTES = 64 << 20,
    NICER = 10, // a tenth of a CPU where the program wants all of it: enough to send what is queued as it ends
};
_Static_assert(BUFFER >= (int)GP_PACKED_BYTES_MAX, "a span fits in");

#define MS_NS            1000000ull
#define BACKOFF_FIRST_NS (50 * MS_NS)
#define BACKOFF_MOST_NS  (5000 * MS_NS)
#define ADOPT_EVERY_NS   (30000 * MS_NS)

static void delivery_add(_Atomic uint64_t *count, uint64_t more)
{
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

// --- beginning and end

static bool delivery_read_options(gp_delivery_t *delivery, const char *spool, uint64_t *queue_bytes,
                                  uint64_t *slower_ns)
{
    char value[GP_URL_MAX];
    *queue_bytes = QUEUE_BYTES;
    *slower_ns = 0;
    delivery->spool_bytes = SPOOL_BYTES;
    delivery->spool_directory[0] = '\0';
    if (gp_url_option(delivery->url, "queue", value) &&
        (!gp_url_size(value, queue_bytes) || *queue_bytes < (16 << 10) || *queue_bytes > (1u << 30)))
        return false;
    if (gp_url_option(delivery->url, "slower", value) && !gp_url_duration(value, slower_ns))
        return false;
    if (gp_url_option(delivery->url, "spool_size", value) && !gp_url_size(value, &delivery->spool_bytes))
        return false;
    if (gp_url_option(delivery->url, "spool", value))
        spool = strcmp(value, "none") != 0 ? value : NULL;
    if (spool != NULL && (spool[0] != '/' || strlen(spool) >= sizeof(delivery->spool_directory)))
        return false;
    if (spool != NULL)
        strcpy(delivery->spool_directory, spool);
    return true;
}

static void delivery_begin_spools(gp_delivery_t *delivery)
{
    const char *directory = delivery->spool_directory[0] != '\0' ? delivery->spool_directory : NULL;
    gp_spool_begin(&delivery->spool, directory, delivery->url, delivery->spool_bytes, &delivery->identity);
    gp_spool_begin(&delivery->adopted, directory, delivery->url, 0, &delivery->identity);
}

int gp_delivery_begin(gp_delivery_t *delivery, const char *url, const prof_consumer_t *backend, const char *spool,
                      const gp_identity_t *identity)
{
    uint64_t queue_bytes, slower_ns;
    *delivery = (gp_delivery_t){.backend = backend, .identity = *identity};
    if (strlen(url) >= sizeof(delivery->url))
        return -EINVAL;
    strcpy(delivery->url, url);
    if (!delivery_read_options(delivery, spool, &queue_bytes, &slower_ns))
        return -EINVAL;
    int error = backend->open(url, &delivery->state);
    if (error != 0)
        return error;
    delivery->buffer = malloc(BUFFER);
    if (delivery->buffer == NULL || gp_queue_begin(&delivery->queue, queue_bytes) != 0) {
        free(delivery->buffer);
        backend->close(delivery->state);
        return -ENOMEM;
    }
    gp_hold_begin(&delivery->hold, slower_ns);
    delivery_begin_spools(delivery);
    return 0;
}

void gp_delivery_end(gp_delivery_t *delivery)
{
    if (delivery->state != NULL)
        delivery->backend->close(delivery->state);
    gp_hold_end(&delivery->hold);
    gp_queue_end(&delivery->queue);
    free(delivery->buffer);
}

void gp_delivery_after_fork(gp_delivery_t *delivery, int32_t pid)
{
    if (delivery->state != NULL && delivery->backend->abandon != NULL)
        delivery->backend->abandon(delivery->state);
    delivery->state = NULL;
    gp_spool_abandon(&delivery->spool);
    gp_spool_abandon(&delivery->adopted);
    delivery->identity.pid = pid;
    delivery_begin_spools(delivery);
    gp_queue_forget(&delivery->queue);
    gp_hold_begin(&delivery->hold, delivery->hold.least_ns); // held spans are left: the allocator is not asked here
    memset(&delivery->counts, 0, sizeof(delivery->counts));
    delivery->retry_ns = delivery->backoff_ns = delivery->adopt_ns = 0;
    delivery->is_spool_stuck = delivery->has_thread = false;
    atomic_store_explicit(&delivery->thread, 0, memory_order_relaxed); // the parent's
    atomic_store_explicit(&delivery->phase, GP_DELIVERY_OPEN, memory_order_relaxed);
}

// --- on the collector's thread

static void delivery_put(void *context, const gp_packed_span_t *packed)
{
    gp_delivery_t *delivery = context;
    if (!gp_queue_put(&delivery->queue, packed))
        delivery_add(&delivery->counts.lost_queue, 1);
}

void gp_delivery_give(gp_delivery_t *delivery, const gp_packed_span_t *packed)
{
    delivery_add(&delivery->counts.given, 1);
    if (delivery->hold.least_ns == 0)
        delivery_put(delivery, packed);
    else
        delivery_add(&delivery->counts.fast, gp_hold_add(&delivery->hold, packed, delivery_put, delivery));
}

// --- on the consumer's thread

typedef struct batch {
    prof_span_record_t spans[BATCH];
    prof_field_t fields[BATCH][GP_PACKED_FIELDS_MAX];
    uint64_t ends[BATCH]; // where the span ends: in the queue, or in the buffer
    size_t count;
} batch_t;

static void delivery_add_to(batch_t *batch, const gp_packed_span_t *packed, uint64_t end, const gp_identity_t *identity)
{
    prof_span_record_t *span = &batch->spans[batch->count];
    gp_packed_read(packed, span, batch->fields[batch->count]);
    span->service = identity->service;
    span->host = identity->host;
    span->pid = identity->pid;
    batch->ends[batch->count++] = end;
}

static void delivery_back_off(gp_delivery_t *delivery, int error)
{
    delivery_add(&delivery->counts.failures, 1);
    atomic_store_explicit(&delivery->counts.last_error, error, memory_order_relaxed);
    delivery->backoff_ns = delivery->backoff_ns == 0 ? BACKOFF_FIRST_NS : 2 * delivery->backoff_ns;
    if (delivery->backoff_ns > BACKOFF_MOST_NS)
        delivery->backoff_ns = BACKOFF_MOST_NS;
    delivery->retry_ns = gp_now_ns() + delivery->backoff_ns;
    delivery->is_spool_stuck = false;
}

// Offer a batch. Returns how many of its spans are dealt with.
static size_t delivery_offer(gp_delivery_t *delivery, const batch_t *batch, _Atomic uint64_t *count)
{
    int taken =
        delivery->state != NULL ? delivery->backend->send(delivery->state, batch->spans, batch->count) : -ENOMEM;
    if (taken == -EBADMSG) {
        delivery_add(&delivery->counts.refused, 1);
        return 1;
    }
    if (taken <= 0) {
        delivery_back_off(delivery, taken < 0 ? taken : -EAGAIN);
        return 0;
    }
    delivery->backoff_ns = delivery->retry_ns = 0;
    atomic_store_explicit(&delivery->counts.last_error, 0, memory_order_relaxed);
    size_t dealt_with = (size_t)taken < batch->count ? (size_t)taken : batch->count;
    delivery_add(count, dealt_with);
    return dealt_with;
}

static bool delivery_send_spool(gp_delivery_t *delivery, gp_spool_t *spool, batch_t *batch, _Atomic uint64_t *count)
{
    size_t len = gp_spool_read(spool, delivery->buffer, BUFFER);
    batch->count = 0;
    for (size_t at = 0; at < len && batch->count < BATCH;) {
        const gp_packed_span_t *packed = (const void *)(delivery->buffer + at);
        at += packed->bytes;
        delivery_add_to(batch, packed, at, &spool->identity);
    }
    size_t dealt_with = batch->count != 0 ? delivery_offer(delivery, batch, count) : 0;
    if (dealt_with != 0)
        gp_spool_take(spool, batch->ends[dealt_with - 1], dealt_with);
    return dealt_with != 0;
}

static bool delivery_send_queue(gp_delivery_t *delivery, batch_t *batch)
{
    uint64_t at = gp_queue_first(&delivery->queue);
    const gp_packed_span_t *packed;
    batch->count = 0;
    while (batch->count < BATCH && (packed = gp_queue_next(&delivery->queue, &at)) != NULL)
        delivery_add_to(batch, packed, at, &delivery->identity);
    size_t dealt_with = batch->count != 0 ? delivery_offer(delivery, batch, &delivery->counts.sent) : 0;
    if (dealt_with != 0)
        gp_queue_take(&delivery->queue, batch->ends[dealt_with - 1], dealt_with);
    return dealt_with != 0;
}

static bool delivery_has_spooled(const gp_spool_t *spool)
{
    return spool->sent_at < spool->end;
}

static void delivery_count_spooled(gp_delivery_t *delivery)
{
    atomic_store_explicit(&delivery->counts.spooled, delivery->spool.spans, memory_order_relaxed);
}

// Move the queue to the spool. Returns whether all of it was.
static bool delivery_spool_queue(gp_delivery_t *delivery)
{
    gp_packed_span_t *copy = (void *)delivery->buffer;
    uint64_t at = gp_queue_first(&delivery->queue);
    const gp_packed_span_t *packed;
    while (!delivery->is_spool_stuck && (packed = gp_queue_next(&delivery->queue, &at)) != NULL) {
        memcpy(copy, packed, packed->bytes);
        if (gp_spool_put(&delivery->spool, copy) != 0) {
            delivery->is_spool_stuck = true;
            break;
        }
        delivery_count_spooled(delivery); // first: a span on its way is counted twice rather than nowhere
        gp_queue_take(&delivery->queue, at, 1);
    }
    return !delivery->is_spool_stuck;
}

// Returns whether it was at its end.
static bool delivery_close_adopted(gp_delivery_t *delivery)
{
    if (delivery->adopted.file.fd < 0 || delivery_has_spooled(&delivery->adopted))
        return false;
    gp_spool_end(&delivery->adopted);
    delivery->adopt_ns = 0; // there may be more of them
    return true;
}

// Send the oldest spans: an earlier process's, then spooled, then queued ones. Returns whether there were any.
static bool delivery_send_some(gp_delivery_t *delivery, batch_t *batch, uint64_t now)
{
    bool was_sent;
    if (delivery->adopted.file.fd < 0 && now >= delivery->adopt_ns) {
        delivery->adopt_ns = now + ADOPT_EVERY_NS;
        gp_spool_adopt(&delivery->adopted);
    }
    if (delivery_has_spooled(&delivery->spool))
        delivery_spool_queue(delivery);
    if (delivery_has_spooled(&delivery->spool))
        was_sent = delivery_send_spool(delivery, &delivery->spool, batch, &delivery->counts.sent);
    else
        was_sent = delivery_send_queue(delivery, batch);
    if (!was_sent && delivery->backoff_ns == 0 && delivery->adopted.file.fd >= 0)
        was_sent = delivery_send_spool(delivery, &delivery->adopted, batch, &delivery->counts.recovered);
    return delivery_close_adopted(delivery) || was_sent;
}

static void delivery_step(gp_delivery_t *delivery, batch_t *batch, bool is_closing, uint32_t bell)
{
    uint64_t now = gp_now_ns();
    bool went_on = now >= delivery->retry_ns && delivery_send_some(delivery, batch, now);
    bool is_waiting = delivery->retry_ns > now;
    bool is_spooled = is_waiting && delivery_spool_queue(delivery);
    delivery_count_spooled(delivery);
    gp_futex_wake_all(&delivery->phase); // threads that wait for it to be idle look
    if (!went_on && !is_closing)
        gp_queue_wait(&delivery->queue, bell, is_waiting ? delivery->retry_ns - now : ADOPT_EVERY_NS,
                      !is_waiting || is_spooled);
}

static uint64_t delivery_queued(const gp_delivery_t *delivery)
{
    return atomic_load_explicit(&delivery->queue.spans, memory_order_acquire);
}

// Is there nothing more to do for a closing consumer? Spooled spans are left for the next process.
static bool delivery_is_done(gp_delivery_t *delivery)
{
    if (delivery_queued(delivery) == 0 && (!delivery_has_spooled(&delivery->spool) || delivery->backoff_ns != 0))
        return true;
    return delivery->backoff_ns != 0 || gp_now_ns() >= delivery->deadline_ns;
}

static void delivery_drop_queue(gp_delivery_t *delivery)
{
    uint64_t at = gp_queue_first(&delivery->queue);
    while (gp_queue_next(&delivery->queue, &at) != NULL) {
        gp_queue_take(&delivery->queue, at, 1);
        delivery_add(&delivery->counts.lost_end, 1);
    }
}

static void delivery_finish(gp_delivery_t *delivery)
{
    delivery->is_spool_stuck = false;
    delivery_spool_queue(delivery);
    delivery_drop_queue(delivery);
    gp_spool_end(&delivery->spool);
    gp_spool_end(&delivery->adopted);
    if (delivery->state != NULL)
        delivery->backend->close(delivery->state);
    delivery->state = NULL;
    atomic_store_explicit(&delivery->thread, 0, memory_order_relaxed);
    atomic_store_explicit(&delivery->phase, GP_DELIVERY_OVER, memory_order_release);
    gp_futex_wake_all(&delivery->phase);
}

// As it wakes up it takes the CPU from none of them.
int32_t gp_delivery_stand_back(void)
{
    const struct sched_param none = {0};
    id_t self = (id_t)syscall(SYS_gettid);
    sched_setscheduler(0, SCHED_BATCH, &none);
    setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + NICER); // Linux: of the thread
    return (int32_t)self;
}

void gp_delivery_come_forward(int32_t thread)
{
    const struct sched_param none = {0};
    int saved = errno;
    if (thread != 0) {
        sched_setscheduler(thread, SCHED_OTHER, &none);
        setpriority(PRIO_PROCESS, (id_t)thread, getpriority(PRIO_PROCESS, 0));
    }
    errno = saved;
}

void *gp_delivery_run(void *argument)
{
    gp_delivery_t *delivery = argument;
    atomic_store_explicit(&delivery->thread, gp_delivery_stand_back(), memory_order_relaxed);
    batch_t *batch = malloc(sizeof(*batch));
    if (delivery->state == NULL && delivery->backend->open(delivery->url, &delivery->state) != 0)
        delivery->state = NULL;
    for (bool is_closing = false; batch != NULL;) {
        uint32_t bell = gp_queue_bell(&delivery->queue);
        if (!is_closing && delivery->may_stay != NULL && !delivery->may_stay()) {
            atomic_store_explicit(&delivery->thread, 0, memory_order_relaxed);
            free(batch);
            return GP_THREAD_RETURNS;
        }
        is_closing = atomic_load_explicit(&delivery->phase, memory_order_acquire) == GP_DELIVERY_CLOSING;
        delivery_step(delivery, batch, is_closing, bell);
        if (is_closing && delivery_is_done(delivery))
            break;
    }
    free(batch);
    delivery_finish(delivery);
    return NULL;
}

// --- on any other

void gp_delivery_close(gp_delivery_t *delivery, uint64_t deadline_ns)
{
    uint32_t open = GP_DELIVERY_OPEN;
    delivery->deadline_ns = deadline_ns;
    // Not told yet to end, the thread still has its number.
    gp_delivery_come_forward(atomic_load_explicit(&delivery->thread, memory_order_relaxed));
    // Release: partner of the acquire in gp_delivery_run().
    atomic_compare_exchange_strong_explicit(&delivery->phase, &open, GP_DELIVERY_CLOSING, memory_order_release,
                                            memory_order_relaxed);
    gp_queue_ring(&delivery->queue);
}

int gp_delivery_wait_over(gp_delivery_t *delivery, uint64_t deadline_ns)
{
    uint32_t phase;
    while ((phase = atomic_load_explicit(&delivery->phase, memory_order_acquire)) != GP_DELIVERY_OVER) {
        uint64_t now = gp_now_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        gp_futex_wait(&delivery->phase, phase, deadline_ns - now);
    }
    return 0;
}

int gp_delivery_wait_idle(gp_delivery_t *delivery, uint64_t deadline_ns)
{
    while (delivery_queued(delivery) != 0) {
        uint64_t now = gp_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
        if (left == 0)
            return -ETIMEDOUT;
        gp_futex_wait(&delivery->phase, GP_DELIVERY_OPEN, left < MS_NS ? left : MS_NS);
    }
    return 0;
}

void gp_delivery_status(const gp_delivery_t *delivery, prof_consumer_status_t *sum)
{
#define ADD(member) sum->member += atomic_load_explicit(&delivery->counts.member, memory_order_relaxed)
    ADD(given), ADD(sent), ADD(refused), ADD(lost_queue), ADD(lost_end), ADD(fast), ADD(spooled), ADD(recovered);
    ADD(failures);
#undef ADD
    sum->queued += delivery_queued(delivery);
    int32_t error = atomic_load_explicit(&delivery->counts.last_error, memory_order_relaxed);
    if (error != 0)
        sum->last_error = error;
}
