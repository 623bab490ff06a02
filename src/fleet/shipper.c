// SPDX-License-Identifier: MIT
#include "fleet/shipper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fleet/destination.h"
#include "fleet/followed.h"
#include "fleet/following.h"
#include "fleet/journal.h"
#include "fleet/limits.h"
#include "fleet/piece.h"

enum {
    PIECE_BYTES = 4 << 20, // of a capture, at least one chunk
    GROUP_ROWS = 250000,   // no more captures are taken into a group behind that many
    ONCE_ATTEMPTS = 3,
    NAP_MS = 100,
};
#define RETRY_NS       UINT64_C(1000000000)  // first pause: it may be back at once
#define RETRY_LATER_NS UINT64_C(10000000000) // the same where somebody has to do something first

typedef struct shipment { // to one destination
    const gp_destination_kind_t *kind;
    void *destination;
    gp_fleet_url_t url;
    uint64_t id;
    const char *tenant; // NULL = the label's
    gp_following_t following;
    size_t next; // capture that a group begins with
    gp_piece_t *pieces;
    gp_batch_t *batches;
    gp_followed_t **owners;
    size_t count; // of the group
    gp_backoff_t backoff;
    gp_limit_t rows, bytes;
    uint64_t bytes_seen;
    unsigned attempts; // that failed in a row
    bool in_doubt;     // the group may have arrived
    bool is_over;      // once: nothing is left, or it is given up
    bool has_failed;
    uint64_t rows_sent;
} shipment_t;

typedef struct shipper {
    const gp_ship_options_t *options;
    gp_piece_options_t piece_options;
    gp_journal_t *journal; // NULL in a dry run
    gp_symbolizer_t *symbolizer;
    gp_labels_t labels; // of this process
    shipment_t *shipments;
    size_t count;
    bool has_failed;
} shipper_t;

static bool is_stopped(const shipper_t *shipper)
{
    return shipper->options->stop != NULL && *shipper->options->stop != 0;
}

// Not while a group waits: it has names of its captures.
static void look_around(shipment_t *shipment)
{
    if (shipment->count == 0)
        gp_following_look_around(&shipment->following);
}

static void free_group(shipment_t *shipment)
{
    for (size_t i = 0; i < shipment->count; i++)
        gp_piece_free(&shipment->pieces[i]);
    shipment->count = 0;
}

// Take a piece of a capture into the group. Returns 1 when there was something, 0, or a negative errno value.
static int take_piece(shipper_t *shipper, shipment_t *shipment, gp_followed_t *followed, uint64_t from, uint64_t to)
{
    char error[GP_READER_ERROR_SIZE] = "";
    gp_piece_t *piece = &shipment->pieces[shipment->count];
    struct stat status;
    bool is_paths = to == from + 1 && fstat(followed->fd, &status) == 0 && from == (uint64_t)status.st_size;
    int result = is_paths
                     ? gp_piece_make_paths(piece, &followed->known, followed->fd, from, &shipper->piece_options, error)
                     : gp_piece_make(piece, &followed->known, followed->fd, from, to, PIECE_BYTES,
                                     &shipper->piece_options, error);
    if (result == 0)
        result = gp_followed_process(followed, &shipper->labels, shipment->tenant, shipper->options->with_info);
    if (result < 0 || piece->batch.to == from) {
        gp_piece_free(piece);
        if (result < 0)
            shipper->options->say(followed->path, "%s", error[0] != '\0' ? error : strerror(-result));
        return result;
    }
    piece->batch.capture = followed->path;
    piece->batch.capture_id = followed->id;
    piece->batch.process = &followed->process;
    piece->batch.id = gp_hash_more(gp_hash_more(gp_hash_u64(followed->id), piece->batch.from), piece->batch.to);
    shipment->batches[shipment->count] = piece->batch;
    shipment->owners[shipment->count] = followed;
    shipment->count++;
    return 1;
}

// The group that was on its way when the process before ended.
static int take_pending(shipper_t *shipper, shipment_t *shipment, const gp_journal_piece_t *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gp_followed_t *followed = gp_following_find(&shipment->following, pieces[i].capture);
        if (followed == NULL || followed->fd < 0) {
            shipper->options->say(shipment->url.shown,
                                  "a capture of which a part was on its way is gone: that part may be missing");
            continue;
        }
        int result = take_piece(shipper, shipment, followed, pieces[i].from, pieces[i].to);
        if (result < 0)
            return result;
    }
    return 0;
}

static bool has_paths(const shipment_t *shipment, gp_followed_t *followed)
{
    if (shipment->kind->takes != GP_TAKES_ROWS || followed->fd < 0 || followed->is_done)
        return false;
    if (followed->at == followed->size && !followed->known.ended)
        gp_followed_look(followed);
    return gp_followed_has_paths(followed);
}

static bool has_more(const shipment_t *shipment, gp_followed_t *followed)
{
    return followed->fd >= 0 && !followed->is_done && (followed->size > followed->at || has_paths(shipment, followed));
}

static size_t rows_of(const gp_batch_t *batch)
{
    return batch->sample_count + batch->span_count + batch->request_count;
}

// Pieces of captures that have grown, of each one in turn.
static void take_new(shipper_t *shipper, shipment_t *shipment)
{
    size_t rows = 0, at = shipment->next;
    for (size_t i = 0; i < shipment->following.count && rows < GROUP_ROWS && shipment->count < GP_JOURNAL_GROUP_MAX;
         i++) {
        gp_followed_t *followed = shipment->following.captures[(at + i) % shipment->following.count];
        if (!has_more(shipment, followed))
            continue;
        bool is_paths = followed->at == followed->size;
        int result = take_piece(shipper, shipment, followed, followed->at, is_paths ? followed->at + 1 : 0);
        if (result > 0)
            rows += rows_of(&shipment->batches[shipment->count - 1]);
        if (result < 0)
            shipper->has_failed = true;
        if (result < 0 && result != -ENOMEM && result != -EIO)
            followed->is_done = true;
        if (result == 0)
            followed->size = followed->at; // not whole yet
        shipment->next = (at + i + 1) % shipment->following.count;
    }
}

static int begin_group(shipper_t *shipper, shipment_t *shipment)
{
    gp_journal_piece_t *pieces = malloc((shipment->count + 1) * sizeof(*pieces));
    if (pieces == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < shipment->count; i++)
        pieces[i] =
            (gp_journal_piece_t){shipment->batches[i].capture_id, shipment->batches[i].from, shipment->batches[i].to};
    int result = gp_journal_begin(shipper->journal, shipment->id, pieces, shipment->count);
    free(pieces);
    return result;
}

// Whether there is a group to send.
static bool have_group(shipper_t *shipper, shipment_t *shipment, int *result)
{
    size_t count = 0;
    const gp_journal_piece_t *pending = gp_journal_pending(shipper->journal, shipment->id, &count);
    *result = 0;
    if (shipment->count > 0)
        return true;
    if (pending != NULL) {
        shipment->in_doubt = true;
        *result = take_pending(shipper, shipment, pending, count);
        if (*result == 0 && shipment->count == 0)
            *result = gp_journal_end(shipper->journal, shipment->id);
        return shipment->count > 0;
    }
    shipment->in_doubt = false;
    take_new(shipper, shipment);
    if (shipment->count > 0)
        *result = begin_group(shipper, shipment);
    if (*result < 0)
        free_group(shipment);
    return shipment->count > 0;
}

static void go_on_behind(shipper_t *shipper, shipment_t *shipment)
{
    for (size_t i = 0; i < shipment->count; i++) {
        gp_followed_t *followed = shipment->owners[i];
        followed->at = shipment->batches[i].to;
        shipment->rows_sent += rows_of(&shipment->batches[i]);
        gp_limit_take(&shipment->rows, rows_of(&shipment->batches[i]), gp_now_ns());
    }
    for (size_t i = 0; i < shipment->count; i++) {
        gp_followed_t *followed = shipment->owners[i];
        struct stat status;
        if (fstat(followed->fd, &status) == 0 && followed->at <= (uint64_t)status.st_size)
            followed->size = (uint64_t)status.st_size; // it may have grown since it was looked at
        bool is_done = followed->known.ended && followed->at >= followed->size && !has_paths(shipment, followed);
        gp_known_trim(&followed->known, false);
        if (is_done) {
            gp_followed_close(followed);
            followed->is_done = true;
        }
    }
    free_group(shipment);
    if (shipment->kind->sent_bytes != NULL) {
        uint64_t bytes = shipment->kind->sent_bytes(shipment->destination);
        gp_limit_take(&shipment->bytes, bytes - shipment->bytes_seen, gp_now_ns());
        shipment->bytes_seen = bytes;
    }
    if (gp_symbolizer_is_crowded(shipper->symbolizer)) {
        gp_symbolizer_t *fresh = gp_symbolizer_create();
        for (size_t i = 0; i < shipper->count && fresh != NULL; i++) {
            if (shipper->shipments[i].count > 0) { // a group waits, which has names of the old one
                gp_symbolizer_destroy(fresh);
                return;
            }
        }
        if (fresh == NULL)
            return;
        for (size_t i = 0; i < shipper->count; i++) {
            gp_following_t *following = &shipper->shipments[i].following;
            for (size_t j = 0; j < following->count; j++) {
                gp_known_trim(&following->captures[j]->known, true);
                following->captures[j]->known.symbolizer = fresh;
            }
            following->symbolizer = fresh;
        }
        gp_symbolizer_destroy(shipper->symbolizer);
        shipper->symbolizer = fresh;
    }
}

static void failed(shipper_t *shipper, shipment_t *shipment, const char *subject, int result, const char *error)
{
    bool is_lasting = result == -EACCES || result == -EINVAL;
    gp_backoff_more(&shipment->backoff, is_lasting ? RETRY_LATER_NS : RETRY_NS, gp_now_ns());
    shipment->attempts++;
    if (shipper->options->once && (is_lasting || shipment->attempts >= ONCE_ATTEMPTS)) {
        shipper->options->say(subject, "%s", error);
        shipment->has_failed = shipment->is_over = true;
    } else if (shipment->attempts == 1 || shipment->backoff.pause_ns >= 60 * RETRY_NS) {
        shipper->options->say(subject, "%s; trying again", error);
    }
}

// Send one group. Returns whether there was one, and it has arrived.
static bool step(shipper_t *shipper, shipment_t *shipment)
{
    char error[GP_FLEET_ERROR_SIZE] = "";
    int result;
    if (!have_group(shipper, shipment, &result)) {
        if (result < 0)
            failed(shipper, shipment, shipper->options->state, result, strerror(-result));
        return false;
    }
    result = shipment->kind->send(shipment->destination, shipment->batches, shipment->count, shipment->in_doubt, error);
    if (result < 0) {
        shipment->in_doubt = true;
        failed(shipper, shipment, shipment->url.shown, result, error[0] != '\0' ? error : strerror(-result));
        return false;
    }
    result = gp_journal_end(shipper->journal, shipment->id);
    if (result < 0) { // it has arrived; asked again, the destination says so
        shipment->in_doubt = true;
        failed(shipper, shipment, shipper->options->state, result, strerror(-result));
        return false;
    }
    if (shipment->attempts > 0 && !shipper->options->once)
        shipper->options->say(shipment->url.shown, "arrives again");
    shipment->attempts = 0;
    shipment->backoff = (gp_backoff_t){0};
    go_on_behind(shipper, shipment);
    return true;
}

static bool may_send(const shipment_t *shipment)
{
    uint64_t now = gp_now_ns();
    return !shipment->is_over && now >= shipment->backoff.until_ns && now >= shipment->rows.free_ns &&
           now >= shipment->bytes.free_ns;
}

static void nap(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

// Has all that is there arrived?
static bool is_empty(shipper_t *shipper, shipment_t *shipment)
{
    size_t count = 0;
    if (shipment->count > 0 || gp_journal_pending(shipper->journal, shipment->id, &count) != NULL)
        return false;
    for (size_t i = 0; i < shipment->following.count; i++)
        if (has_more(shipment, shipment->following.captures[i]))
            return false;
    return true;
}

static void ship_once(shipper_t *shipper)
{
    for (bool is_over = false; !is_over && !is_stopped(shipper);) {
        is_over = true;
        for (size_t i = 0; i < shipper->count && !is_stopped(shipper); i++) {
            shipment_t *shipment = &shipper->shipments[i];
            if (may_send(shipment))
                step(shipper, shipment);
            if (is_empty(shipper, shipment))
                shipment->is_over = true;
            is_over = is_over && shipment->is_over;
        }
        if (!is_over && !may_send(&shipper->shipments[0]))
            nap(NAP_MS * UINT64_C(1000000) / 10);
    }
}

static void wait_until(const shipper_t *shipper, uint64_t until_ns)
{
    for (uint64_t now; !is_stopped(shipper) && (now = gp_now_ns()) < until_ns;)
        nap(until_ns - now < RETRY_NS ? until_ns - now : RETRY_NS);
}

// Send what is there, then look again when the interval is over; what failed, when its pause is.
static void ship_on(shipper_t *shipper)
{
    uint64_t round_ns = gp_now_ns();
    while (!is_stopped(shipper)) {
        uint64_t now = gp_now_ns(), next_ns = round_ns + shipper->options->interval_ns;
        bool is_round = now >= round_ns;
        for (size_t i = 0; i < shipper->count; i++) {
            shipment_t *shipment = &shipper->shipments[i];
            if (is_round)
                look_around(shipment);
            while (!is_stopped(shipper) && may_send(shipment) && step(shipper, shipment))
                ;
            uint64_t free_ns =
                shipment->rows.free_ns > shipment->bytes.free_ns ? shipment->rows.free_ns : shipment->bytes.free_ns;
            free_ns = shipment->backoff.until_ns > free_ns ? shipment->backoff.until_ns : free_ns;
            if (free_ns > now && free_ns < next_ns)
                next_ns = free_ns;
        }
        if (is_round)
            round_ns += shipper->options->interval_ns;
        if (round_ns < now)
            round_ns = now;
        wait_until(shipper, next_ns < round_ns ? next_ns : round_ns);
    }
}

static void dry_capture(shipper_t *shipper, shipment_t *shipment, gp_followed_t *followed)
{
    FILE *out = shipper->options->out;
    size_t pieces = 0, rows = 0;
    uint64_t samples = 0, weight_ns = 0;
    for (uint64_t from = 0; take_piece(shipper, shipment, followed, from, 0) > 0; pieces++) {
        const gp_batch_t *batch = &shipment->batches[0];
        if (pieces == 0) {
            fprintf(out, "%s -> %s\n", followed->path, shipment->url.shown);
            if (shipment->kind->describe != NULL)
                shipment->kind->describe(shipment->destination, batch, out);
        }
        for (size_t i = 0; i < batch->sample_count; i++)
            weight_ns += batch->samples[i].weight_ns;
        samples += shipment->pieces[0].samples_read;
        rows += rows_of(batch);
        from = batch->to;
        free_group(shipment);
        gp_known_trim(&followed->known, false);
    }
    fprintf(out, "  in all: %zu pieces, %zu rows of %" PRIu64 " samples, %" PRIu64 " ns\n", pieces, rows, samples,
            weight_ns);
}

static void dry_run(shipper_t *shipper)
{
    for (size_t i = 0; i < shipper->count; i++) {
        shipment_t *shipment = &shipper->shipments[i];
        for (size_t j = 0; j < shipment->following.count; j++)
            if (shipment->following.captures[j]->fd >= 0)
                dry_capture(shipper, shipment, shipment->following.captures[j]);
    }
}

// What makes a destination another one: where it is and whose rows they are, no password, no way to get there.
static uint64_t destination_id(const gp_fleet_url_t *url)
{
    const char *cluster = gp_fleet_url_option(url, "cluster"), *tenant = gp_fleet_url_option(url, "tenant");
    const char *const parts[] = {url->scheme, url->host, url->path, cluster != NULL ? cluster : "",
                                 tenant != NULL ? tenant : ""};
    uint64_t hash = url->port;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = gp_hash_more(hash, gp_hash_bytes(parts[i], strlen(parts[i])));
    return hash;
}

static int open_shipment(const shipper_t *shipper, shipment_t *shipment, const char *text)
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
    shipment->id = destination_id(&shipment->url);
    shipment->tenant = gp_fleet_url_option(&shipment->url, "tenant");
    shipment->rows.rate = shipper->options->rows_per_s;
    shipment->bytes.rate = shipper->options->bytes_per_s;
    shipment->pieces = calloc(GP_JOURNAL_GROUP_MAX, sizeof(*shipment->pieces));
    shipment->batches = calloc(GP_JOURNAL_GROUP_MAX, sizeof(*shipment->batches));
    shipment->owners = calloc(GP_JOURNAL_GROUP_MAX, sizeof(*shipment->owners));
    // -Wanalyzer-malloc-leak: it is the shipment's, which is freed with the shipper
    return shipment->pieces != NULL && shipment->batches != NULL && shipment->owners != NULL ? 0 : -ENOMEM;
}

static void close_shipment(shipment_t *shipment)
{
    free_group(shipment);
    gp_following_free(&shipment->following);
    if (shipment->destination != NULL)
        shipment->kind->close(shipment->destination);
    gp_fleet_url_free(&shipment->url);
    free(shipment->pieces);
    free(shipment->batches);
    free(shipment->owners);
}

// Returns 0, or what gp_ship() returns.
static int open_all(shipper_t *shipper)
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
        int result = open_shipment(shipper, &shipper->shipments[i], options->urls[i]);
        if (result < 0)
            return result == -EINVAL ? 2 : 1;
    }
    if (!options->dry_run && gp_journal_open(&shipper->journal, options->state, error) < 0) {
        options->say("--state", "%s", error);
        return 1;
    }
    for (size_t i = 0; i < shipper->count; i++)
        shipper->shipments[i].following = (gp_following_t){.options = options,
                                                           .journal = shipper->journal,
                                                           .symbolizer = shipper->symbolizer,
                                                           .destination = shipper->shipments[i].id};
    return 0;
}

int gp_ship(const gp_ship_options_t *options)
{
    shipper_t shipper = {
        .options = options,
        .piece_options = {.grain_ns = options->grain_ns,
                          .no_traces = options->no_traces,
                          .with_info = options->with_info},
    };
    int status = open_all(&shipper);
    for (size_t i = 0; status == 0 && (options->once || options->dry_run) && i < shipper.count; i++)
        look_around(&shipper.shipments[i]);
    if (status == 0 && options->dry_run)
        dry_run(&shipper);
    else if (status == 0 && options->once)
        ship_once(&shipper);
    else if (status == 0)
        ship_on(&shipper);
    for (size_t i = 0; i < shipper.count; i++) {
        shipper.has_failed |= shipper.shipments[i].following.has_failed;
        status = status == 0 && (shipper.shipments[i].has_failed || (options->once && shipper.has_failed)) ? 1 : status;
        close_shipment(&shipper.shipments[i]);
    }
    free(shipper.shipments);
    gp_labels_free(&shipper.labels);
    gp_journal_close(shipper.journal);
    if (shipper.symbolizer != NULL)
        gp_symbolizer_destroy(shipper.symbolizer);
    return status;
}
