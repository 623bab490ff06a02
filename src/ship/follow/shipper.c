// SPDX-License-Identifier: MIT
#include "ship/follow/shipper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "ship/follow/shipment.h"

enum { ONCE_ATTEMPTS = 3, NAP_MS = 10 };
#define MS_NS          UINT64_C(1000000)
#define RETRY_NS       UINT64_C(1000000000) // first pause: it may be back at once
#define RETRY_MOST_NS  UINT64_C(60000000000)
#define RETRY_LATER_NS UINT64_C(10000000000) // the same where somebody has to do something first

static enum gp_ship_order shipper_order_of(const gp_shipper_t *shipper)
{
    return (enum gp_ship_order)atomic_load_explicit(&shipper->options->state_now->order, memory_order_acquire);
}

static bool shipper_is_stopped(const gp_shipper_t *shipper)
{
    return shipper_order_of(shipper) == GP_SHIP_STOP;
}

// Nothing is waited for any more: what fails is left.
static bool shipper_is_final(const gp_shipper_t *shipper)
{
    return shipper->options->once || shipper_order_of(shipper) == GP_SHIP_FINISH;
}

static void shipper_count_failure(const gp_shipper_t *shipper, int result)
{
    atomic_fetch_add_explicit(&shipper->options->state_now->failures, 1, memory_order_relaxed);
    atomic_store_explicit(&shipper->options->state_now->last_error, result, memory_order_relaxed);
}

// Twice as long as after the last failure, from 1 s to 60 s. A receiver that says when to come again is left alone
// until then.
static void shipper_back_off(gp_shipment_t *shipment, bool is_lasting)
{
    uint64_t first_ns = is_lasting ? RETRY_LATER_NS : RETRY_NS, pause_ns = 2 * shipment->backoff.pause_ns;
    pause_ns = pause_ns > first_ns ? pause_ns : first_ns;
    pause_ns = pause_ns < RETRY_MOST_NS ? pause_ns : RETRY_MOST_NS;
    shipment->backoff = (gp_backoff_t){.pause_ns = pause_ns, .until_ns = gp_now_ns() + pause_ns};
    uint64_t not_before_ns =
        shipment->kind->http != NULL ? gp_http_not_before_ns(shipment->kind->http(shipment->destination)) : 0;
    if (not_before_ns > shipment->backoff.until_ns)
        shipment->backoff.until_ns = not_before_ns;
}

static void shipper_failed(gp_shipper_t *shipper, gp_shipment_t *shipment, const char *subject, int result,
                           const char *error)
{
    bool is_lasting = result == -EACCES || result == -EINVAL;
    shipper_count_failure(shipper, result);
    shipper_back_off(shipment, is_lasting);
    shipment->attempts++;
    if ((shipper->options->once && (is_lasting || shipment->attempts >= ONCE_ATTEMPTS)) ||
        shipper_order_of(shipper) == GP_SHIP_FINISH) {
        shipper->options->say(subject, "%s", error);
        shipment->has_failed = shipment->is_over = true;
    } else if (shipment->attempts == 1 || shipment->backoff.pause_ns >= 60 * RETRY_NS) {
        shipper->options->say(subject, "%s; trying again", error);
    }
}

static void shipper_failed_to_make(gp_shipper_t *shipper, gp_shipment_t *shipment, int result)
{
    if (shipment->error[0] != '\0')
        shipper_failed(shipper, shipment, shipment->url.shown, result, shipment->error);
    else
        shipper_failed(shipper, shipment, shipper->options->state, result, strerror(-result));
}

// Send a group. Returns whether there was one, and has arrived.
static bool shipper_step(gp_shipper_t *shipper, gp_shipment_t *shipment)
{
    char error[GP_FLEET_ERROR_SIZE] = "";
    int result;
    if (!gp_shipment_make(shipper, shipment, &result)) {
        if (result < 0)
            shipper_failed_to_make(shipper, shipment, result);
        return false;
    }
    result = shipment->kind->send(shipment->destination, shipment->batches, shipment->count, shipment->in_doubt, error);
    if (result < 0) {
        shipment->in_doubt = true;
        shipper_failed(shipper, shipment, shipment->url.shown, result, error[0] != '\0' ? error : strerror(-result));
        return false;
    }
    result = gp_journal_end(shipper->journal, shipment->id);
    if (result < 0) { // the group has arrived; asked again, the destination says so
        shipment->in_doubt = true;
        shipper_failed(shipper, shipment, shipper->options->state, result, strerror(-result));
        return false;
    }
    if (shipment->attempts > 0 && !shipper->options->once)
        shipper->options->say(shipment->url.shown, "arrives again");
    shipment->attempts = 0;
    shipment->backoff = (gp_backoff_t){0};
    atomic_store_explicit(&shipper->options->state_now->last_error, 0, memory_order_relaxed);
    gp_shipment_go_on(shipper, shipment);
    return true;
}

static uint64_t shipper_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// When it may be sent to: not before.
static uint64_t shipper_free_ns(const gp_shipment_t *shipment)
{
    return shipper_later(shipment->backoff.until_ns, shipper_later(shipment->rows.free_ns, shipment->bytes.free_ns));
}

static bool shipper_may_send(const gp_shipment_t *shipment)
{
    return !shipment->is_over && gp_now_ns() >= shipper_free_ns(shipment);
}

// Wait until then, or the bell rings.
static void shipper_wait_until(const gp_shipper_t *shipper, uint32_t bell, uint64_t until_ns)
{
    uint64_t now = gp_now_ns();
    if (now < until_ns)
        gp_futex_wait(&shipper->options->state_now->bell, bell, until_ns - now);
}

// Send all that is there, or give up. A group that is on its way at the order to finish is tried once more.
static void shipper_ship_once(gp_shipper_t *shipper)
{
    for (bool is_over = false; !is_over && !shipper_is_stopped(shipper);) {
        uint32_t bell = atomic_load_explicit(&shipper->options->state_now->bell, memory_order_acquire);
        uint64_t next_ns = UINT64_MAX, now = gp_now_ns();
        is_over = true;
        for (size_t i = 0; i < shipper->count && !shipper_is_stopped(shipper); i++) {
            gp_shipment_t *shipment = &shipper->shipments[i];
            if (shipper_may_send(shipment))
                shipper_step(shipper, shipment);
            if (gp_shipment_is_empty(shipper, shipment))
                shipment->is_over = true;
            is_over = is_over && shipment->is_over;
            if (!shipment->is_over)
                next_ns = shipper_free_ns(shipment) < next_ns ? shipper_free_ns(shipment) : next_ns;
        }
        if (!is_over && next_ns > now)
            shipper_wait_until(shipper, bell, next_ns < now + NAP_MS * MS_NS ? next_ns : now + NAP_MS * MS_NS);
    }
}

// Note the time of the last look: files written later may not have been seen.
static void shipper_note_last_look(const gp_ship_options_t *options)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now); // as a file's times
    if (options->last_look_ns != NULL)
        *options->last_look_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The last round of one that was told to finish.
static void shipper_finish(gp_shipper_t *shipper)
{
    shipper_note_last_look(shipper->options);
    for (size_t i = 0; i < shipper->count; i++) {
        gp_shipment_t *shipment = &shipper->shipments[i];
        gp_shipment_look_around(shipment);
        shipment->backoff = (gp_backoff_t){0};
        shipment->rows = shipment->bytes = (gp_limit_t){0};
    }
    shipper_ship_once(shipper);
}

// Is nothing left, that a round has seen?
static void shipper_say_heard(gp_shipper_t *shipper, uint32_t bell)
{
    for (size_t i = 0; i < shipper->count; i++)
        if (!gp_shipment_is_empty(shipper, &shipper->shipments[i]))
            return;
    atomic_store_explicit(&shipper->options->state_now->heard, bell, memory_order_release);
    gp_futex_wake_all(&shipper->options->state_now->heard);
}

// Send what is there, then look again when the interval is over, or the bell rings; what failed, when its pause is.
static void shipper_ship_on(gp_shipper_t *shipper)
{
    uint64_t round_ns = gp_now_ns();
    uint32_t heard = 0;
    while (!shipper_is_stopped(shipper) && !shipper_is_final(shipper)) {
        uint32_t bell = atomic_load_explicit(&shipper->options->state_now->bell, memory_order_acquire);
        uint64_t now = gp_now_ns(), next_ns = round_ns + shipper->options->interval_ns;
        bool is_round = now >= round_ns || bell != heard;
        for (size_t i = 0; i < shipper->count; i++) {
            gp_shipment_t *shipment = &shipper->shipments[i];
            if (is_round)
                gp_shipment_look_around(shipment);
            while (!shipper_is_stopped(shipper) && shipper_may_send(shipment) && shipper_step(shipper, shipment))
                ;
            if (shipper_free_ns(shipment) > now && shipper_free_ns(shipment) < next_ns)
                next_ns = shipper_free_ns(shipment);
        }
        if (bell != heard)
            shipper_say_heard(shipper, bell);
        heard = bell;
        if (now >= round_ns)
            round_ns += shipper->options->interval_ns;
        if (round_ns < now)
            round_ns = now;
        shipper_wait_until(shipper, bell, next_ns < round_ns ? next_ns : round_ns);
    }
    if (!shipper_is_stopped(shipper))
        shipper_finish(shipper);
}

// The identity of a destination: its place and the owner of its rows, no password, no way to get there.
uint64_t gp_ship_destination_id(const gp_fleet_url_t *url)
{
    const char *cluster = gp_fleet_url_option(url, "cluster"), *tenant = gp_fleet_url_option(url, "tenant");
    const char *const parts[] = {url->scheme, url->host, url->path, cluster != NULL ? cluster : "",
                                 tenant != NULL ? tenant : ""};
    uint64_t hash = url->port;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = gp_hash_more(hash, gp_hash_bytes(parts[i], strlen(parts[i])));
    return hash;
}

static int shipper_open_shipment(const gp_shipper_t *shipper, gp_shipment_t *shipment, const char *text)
{
    char error[GP_FLEET_ERROR_SIZE] = "", schemes[256];
    int result = gp_fleet_url_parse(&shipment->url, text, error);
    if (result == 0) {
        shipment->kind = gp_destination_find(shipment->url.scheme);
        if (shipment->kind == NULL)
            result = (snprintf(error, sizeof(error), "is no destination; there are: %s",
                               gp_destination_schemes(schemes, sizeof(schemes))),
                      -EINVAL);
    }
    if (result == 0)
        result = shipment->kind->open(&shipment->destination, &shipment->url, error);
    if (result < 0) {
        shipper->options->say(shipment->url.shown != NULL ? shipment->url.shown : "--to", "%s",
                              error[0] != '\0' ? error : strerror(-result));
        return result;
    }
    if (shipment->kind->use != NULL)
        shipment->kind->use(shipment->destination, shipper->options);
    shipment->id = gp_ship_destination_id(&shipment->url);
    shipment->tenant = gp_fleet_url_option(&shipment->url, "tenant");
    shipment->rows.rate = shipper->options->rows_per_s;
    shipment->bytes.rate = shipper->options->bytes_per_s;
    shipment->pieces = calloc(GP_JOURNAL_GROUP_MAX, sizeof(*shipment->pieces));
    shipment->batches = calloc(GP_JOURNAL_GROUP_MAX, sizeof(*shipment->batches));
    shipment->owners = calloc(GP_JOURNAL_GROUP_MAX, sizeof(*shipment->owners));
    // -Wanalyzer-malloc-leak: it is the shipment's, which is freed with the shipper
    return shipment->pieces != NULL && shipment->batches != NULL && shipment->owners != NULL ? 0 : -ENOMEM;
}

static void shipper_close_shipment(gp_shipment_t *shipment)
{
    gp_shipment_free_group(shipment);
    gp_captures_watched_free(&shipment->following);
    if (shipment->destination != NULL)
        shipment->kind->close(shipment->destination);
    gp_fleet_url_free(&shipment->url);
    free(shipment->pieces);
    free(shipment->batches);
    free(shipment->owners);
}

// Returns 0, or what gp_ship() returns.
static int shipper_open_all(gp_shipper_t *shipper)
{
    char error[GP_FLEET_ERROR_SIZE] = "";
    const gp_ship_options_t *options = shipper->options;
    shipper->symbolizer = gp_symbolizer_create();
    shipper->shipments = calloc(options->url_count + 1, sizeof(*shipper->shipments));
    if (shipper->symbolizer == NULL || shipper->shipments == NULL || gp_labels_add_own(&shipper->labels) < 0) {
        options->say("ship", "%s", strerror(ENOMEM));
        return 1;
    }
    for (size_t i = 0; i < options->url_count; i++) {
        shipper->count++;
        int opened = shipper_open_shipment(shipper, &shipper->shipments[i], options->urls[i]);
        if (opened < 0)
            return opened == -EINVAL ? 2 : 1;
    }
    int result = options->dry_run ? 0 : gp_journal_open(&shipper->journal, options->state, error);
    if (result < 0) {
        options->say("--state", "%s", error);
        return result == -EBUSY ? GP_SHIP_BUSY : 1;
    }
    for (size_t i = 0; i < shipper->count; i++)
        shipper->shipments[i].following = (gp_captures_watched_t){.options = options,
                                                                  .journal = shipper->journal,
                                                                  .symbolizer = shipper->symbolizer,
                                                                  .destination = shipper->shipments[i].id};
    return 0;
}

int gp_ship(const gp_ship_options_t *options)
{
    gp_shipper_t shipper = {
        .options = options,
        .piece_options = {.grain_ns = options->grain_ns,
                          .no_traces = options->no_traces,
                          .with_info = options->with_info},
    };
    int status = shipper_open_all(&shipper);
    shipper_note_last_look(options);
    for (size_t i = 0; status == 0 && (options->once || options->dry_run) && i < shipper.count; i++)
        gp_shipment_look_around(&shipper.shipments[i]);
    if (status == 0 && options->dry_run)
        gp_ship_dry(&shipper);
    else if (status == 0 && options->once)
        shipper_ship_once(&shipper);
    else if (status == 0)
        shipper_ship_on(&shipper);
    for (size_t i = 0; i < shipper.count; i++) {
        shipper.has_failed |= shipper.shipments[i].following.has_failed;
        status = status == 0 && (shipper.shipments[i].has_failed || (shipper_is_final(&shipper) && shipper.has_failed))
                     ? 1
                     : status;
        shipper_close_shipment(&shipper.shipments[i]);
    }
    free(shipper.shipments);
    gp_labels_free(&shipper.labels);
    gp_journal_close(shipper.journal);
    if (shipper.symbolizer != NULL)
        gp_symbolizer_destroy(shipper.symbolizer);
    return status;
}
