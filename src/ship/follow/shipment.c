// SPDX-License-Identifier: MIT
#include "ship/follow/shipment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    PIECE_BYTES = 4 << 20, // of a capture, at least one chunk
    CLOCK_MARGIN_S = 600,
    CANDIDATES_MAX_BYTES = 64 << 20,
    GROUP_ROWS = 250000, // no more captures are taken into a group behind that many
};

void gp_shipment_look_around(gp_shipment_t *shipment)
{
    gp_captures_watched_look_around(&shipment->following);
}

void gp_shipment_free_group(gp_shipment_t *shipment)
{
    for (size_t i = 0; i < shipment->count; i++) {
        gp_piece_free(&shipment->pieces[i]);
        shipment->owners[i]->is_in_group = false;
    }
    shipment->count = 0;
}

int gp_shipment_take(gp_shipper_t *shipper, gp_shipment_t *shipment, gp_one_capture_t *followed, uint64_t from,
                     uint64_t to)
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
        result = gp_one_capture_process(followed, &shipper->labels, shipment->tenant, shipper->options->with_info);
    if (result < 0 || piece->batch.to == from) {
        gp_piece_free(piece);
        if (result < 0)
            shipper->options->say(followed->path, "%s", error[0] != '\0' ? error : strerror(-result));
        return result;
    }
    piece->batch.capture = followed->path;
    piece->batch.capture_id = followed->id;
    piece->batch.process = &followed->process;
    piece->batch.id = gp_batch_id(followed->id, piece->batch.from, piece->batch.to);
    shipment->batches[shipment->count] = piece->batch;
    shipment->owners[shipment->count] = followed;
    followed->is_in_group = true;
    shipment->count++;
    return 1;
}

// --- where the journal is new, or was lost: what of a capture has arrived is asked of the store, which has the number
// of each batch. A number is a hash of the capture and of the piece's bytes, so that it can be told which piece it is.

typedef struct place { // in a capture
    uint64_t to;       // up to here all has arrived
    uint64_t doubt_to; // of the piece from there to here some has; 0 = there is none
} place_t;

// Is the store to be asked what it has of a capture? The journal may not know it because the journal is new.
static bool shipment_is_to_ask(const gp_shipper_t *shipper, const gp_shipment_t *shipment,
                               const gp_one_capture_t *followed)
{
    uint64_t start_s = followed->known.facts.header.start_realtime_ns / 1000000000;
    return shipment->kind->arrived != NULL && !shipper->options->never_asks && followed->at == 0 &&
           !followed->is_asked_for && start_s < gp_journal_since_s(shipper->journal) + CLOCK_MARGIN_S;
}

static int shipment_by_place(const void *left, const void *right)
{
    const gp_arrived_piece_t *a = left, *b = right;
    return a->from != b->from ? a->from < b->from ? -1 : 1 : a->to < b->to ? -1 : a->to > b->to;
}

// Pieces of this capture, in their order. Returns whether each begins where the one before ends.
static bool shipment_chain(gp_arrived_t *arrived, uint64_t capture, uint64_t *to)
{
    size_t kept = 0;
    for (size_t i = 0; i < arrived->count; i++)
        if (gp_batch_id(capture, arrived->pieces[i].from, arrived->pieces[i].to) == arrived->pieces[i].batch)
            arrived->pieces[kept++] = arrived->pieces[i];
    arrived->count = kept;
    if (kept > 0)
        qsort(arrived->pieces, kept, sizeof(*arrived->pieces), shipment_by_place);
    *to = 0;
    for (size_t i = 0; i < kept; i++) {
        if (arrived->pieces[i].from != *to)
            return false;
        *to = arrived->pieces[i].to;
    }
    return true;
}

// The end of the piece from `from` on with this number: the end of a chunk, or of the critical paths.
static uint64_t shipment_end_of(const gp_one_capture_t *followed, uint64_t from, uint64_t batch)
{
    static const gp_reader_handlers_t none = {0};
    char error[GP_READER_ERROR_SIZE];
    gp_reader_summary_t summary;
    for (uint64_t at = from; at - from < CANDIDATES_MAX_BYTES;) {
        gp_reader_part_t part = {.from = at, .max = 1};
        if (gp_reader_read_part(followed->fd, &part, &none, NULL, &summary, error) < 0 || part.to == at)
            break;
        at = part.to;
        if (gp_batch_id(followed->id, from, at) == batch)
            return at;
    }
    return gp_batch_id(followed->id, from, from + 1) == batch ? from + 1 : 0;
}

static int shipment_refuse(gp_shipper_t *shipper, gp_one_capture_t *followed, const char *what)
{
    shipper->options->say(followed->path,
                          "the journal does not know it, and the store has %s; not sent, as that could count it twice",
                          what);
    return -ENOTUNIQ;
}

static int shipment_find_place(gp_shipper_t *shipper, gp_one_capture_t *followed, gp_arrived_t *arrived, place_t *place)
{
    *place = (place_t){0};
    if (!shipment_chain(arrived, followed->id, &place->to))
        return shipment_refuse(shipper, followed, "parts of it, but not from the beginning on");
    if (arrived->open_count > 1)
        return shipment_refuse(shipper, followed, "several parts of which it does not say what they are");
    if (arrived->open_count == 1) {
        place->doubt_to = shipment_end_of(followed, place->to, arrived->open[0]);
        if (place->doubt_to == 0)
            return shipment_refuse(shipper, followed, "a part of which it does not say what it is");
    }
    return 0;
}

// Ask it; the last piece of the group is of that capture. Returns 0; -ENOTUNIQ where it cannot be known, which was
// said; else what `error` of the shipment has words for.
static int shipment_ask(gp_shipper_t *shipper, gp_shipment_t *shipment, gp_one_capture_t *followed, place_t *place)
{
    gp_arrived_t arrived = {0};
    const gp_batch_t *batch = &shipment->batches[shipment->count - 1];
    int result = shipment->kind->arrived(shipment->destination, batch, &arrived, shipment->error);
    if (result == 0) {
        followed->is_asked_for = true;
        result = shipment_find_place(shipper, followed, &arrived, place);
    }
    free(arrived.pieces);
    free(arrived.open);
    return result;
}

// --- making a group

// Has a piece of a lost capture arrived? Nothing more can be sent of it.
static int shipment_ask_for_gone(gp_shipper_t *shipper, gp_shipment_t *shipment, const gp_journal_piece_t *piece)
{
    bool has_arrived = false;
    uint64_t id = gp_batch_id(piece->capture, piece->from, piece->to);
    int result = shipment->kind->has_arrived != NULL
                     ? shipment->kind->has_arrived(shipment->destination, id, &has_arrived, shipment->error)
                     : 0;
    if (result == 0 && !has_arrived) {
        shipper->options->say(shipment->url.shown,
                              "a capture of which a part was on its way is gone: that part is missing, or some of it");
        shipment->has_failed = true;
    }
    return result;
}

// The group that was on its way when the process before ended.
static int shipment_take_pending(gp_shipper_t *shipper, gp_shipment_t *shipment, const gp_journal_piece_t *pieces,
                                 size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result >= 0; i++) {
        gp_one_capture_t *followed = gp_captures_watched_find(&shipment->following, pieces[i].capture);
        if (followed == NULL || followed->fd < 0)
            result = shipment_ask_for_gone(shipper, shipment, &pieces[i]);
        else
            result = gp_shipment_take(shipper, shipment, followed, pieces[i].from, pieces[i].to);
    }
    if (result < 0)
        gp_shipment_free_group(shipment);
    return result < 0 ? result : 0;
}

static bool shipment_has_paths(gp_one_capture_t *followed)
{
    if (followed->fd < 0 || followed->is_done)
        return false;
    if (followed->at == followed->size && !followed->known.facts.ended)
        gp_one_capture_look(followed);
    return gp_one_capture_has_paths(followed);
}

static bool shipment_has_more(gp_one_capture_t *followed)
{
    return followed->fd >= 0 && !followed->is_done && (followed->size > followed->at || shipment_has_paths(followed));
}

// Take what is new of one capture. Returns as gp_shipment_take().
static int shipment_take_next(gp_shipper_t *shipper, gp_shipment_t *shipment, gp_one_capture_t *followed)
{
    uint64_t from = followed->at, to = followed->at == followed->size ? followed->at + 1 : 0;
    int result = gp_shipment_take(shipper, shipment, followed, from, to);
    if (result <= 0 || !shipment_is_to_ask(shipper, shipment, followed))
        return result;
    // The process is known by now, and so the store can be asked.
    place_t place = {0};
    result = shipment_ask(shipper, shipment, followed, &place);
    if (result == 0 && place.to == from && place.doubt_to == 0)
        return 1;
    gp_piece_free(&shipment->pieces[--shipment->count]);
    followed->is_in_group = false;
    if (result < 0)
        return result;
    followed->at = place.to;
    shipment->in_doubt |= place.doubt_to != 0;
    return shipment_has_more(followed) ? gp_shipment_take(shipper, shipment, followed, place.to, place.doubt_to) : 0;
}

static void shipment_give_up(gp_shipper_t *shipper, gp_one_capture_t *followed)
{
    shipper->has_failed = true;
    followed->is_done = true;
}

// Pieces of captures that have grown, of each one in turn. Returns 0, or why the store does not say what it has.
static int shipment_take_new(gp_shipper_t *shipper, gp_shipment_t *shipment)
{
    gp_captures_watched_t *following = &shipment->following;
    size_t rows = 0, at = shipment->next;
    for (size_t i = 0; i < following->count && rows < GROUP_ROWS && shipment->count < GP_JOURNAL_GROUP_MAX; i++) {
        gp_one_capture_t *followed = following->captures[(at + i) % following->count];
        if (!shipment_has_more(followed))
            continue;
        int result = shipment_take_next(shipper, shipment, followed);
        if (result < 0 && shipment->error[0] != '\0')
            return result;
        if (result > 0)
            rows += gp_shipment_rows(&shipment->batches[shipment->count - 1]);
        if (result < 0)
            shipper->has_failed = true;
        if (result < 0 && result != -ENOMEM && result != -EIO)
            shipment_give_up(shipper, followed);
        if (result == 0 && followed->at < followed->size)
            followed->size = followed->at; // not whole yet
        shipment->next = (at + i + 1) % following->count;
    }
    return 0;
}

static int shipment_begin_group(gp_shipper_t *shipper, gp_shipment_t *shipment)
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

static int shipment_make_new(gp_shipper_t *shipper, gp_shipment_t *shipment)
{
    shipment->in_doubt = false;
    int result = shipment_take_new(shipper, shipment);
    if (result == 0 && shipment->count > 0)
        result = shipment_begin_group(shipper, shipment);
    if (result < 0)
        gp_shipment_free_group(shipment);
    return result;
}

bool gp_shipment_make(gp_shipper_t *shipper, gp_shipment_t *shipment, int *result)
{
    size_t count = 0;
    const gp_journal_piece_t *pending = gp_journal_pending(shipper->journal, shipment->id, &count);
    *result = 0;
    shipment->error[0] = '\0';
    if (shipment->count > 0)
        return true;
    if (pending == NULL) {
        *result = shipment_make_new(shipper, shipment);
        return shipment->count > 0;
    }
    shipment->in_doubt = true;
    *result = shipment_take_pending(shipper, shipment, pending, count);
    if (*result == 0 && shipment->count == 0)
        *result = gp_journal_end(shipper->journal, shipment->id);
    return shipment->count > 0;
}

static void shipment_count_spans(const gp_shipper_t *shipper, const gp_batch_t *batch)
{
    gp_ship_state_t *state = shipper->options->state_now;
    atomic_fetch_add_explicit(batch->process->pid == (uint32_t)getpid() ? &state->spans : &state->others,
                              batch->spans_read, memory_order_relaxed);
}

// Let a capture have grown since the last look; but a shipment that is to come to an end does not follow it for ever.
static void shipment_look_at_size(const gp_shipper_t *shipper, gp_one_capture_t *followed)
{
    const gp_ship_state_t *state = shipper->options->state_now;
    struct stat status;
    if (atomic_load_explicit(&state->order, memory_order_acquire) == GP_SHIP_ON && fstat(followed->fd, &status) == 0 &&
        followed->at <= (uint64_t)status.st_size)
        followed->size = (uint64_t)status.st_size;
}

static void shipment_finish_capture(const gp_shipper_t *shipper, gp_one_capture_t *followed)
{
    shipment_look_at_size(shipper, followed);
    bool is_done = followed->known.facts.ended && followed->at >= followed->size && !shipment_has_paths(followed);
    gp_capture_names_trim(&followed->known, false);
    if (is_done) {
        gp_one_capture_close(followed);
        followed->is_done = true;
    }
}

// A symbolizer that has become large makes room for a new one, unless a group has names of it.
static void shipment_renew_symbolizer(gp_shipper_t *shipper)
{
    for (size_t i = 0; i < shipper->count; i++)
        if (shipper->shipments[i].count > 0)
            return;
    gp_symbolizer_t *fresh = gp_symbolizer_create();
    if (fresh == NULL)
        return;
    for (size_t i = 0; i < shipper->count; i++) {
        gp_captures_watched_t *following = &shipper->shipments[i].following;
        for (size_t j = 0; j < following->count; j++) {
            gp_capture_names_trim(&following->captures[j]->known, true);
            following->captures[j]->known.names.symbolizer = fresh;
        }
        following->symbolizer = fresh;
    }
    gp_symbolizer_destroy(shipper->symbolizer);
    shipper->symbolizer = fresh;
}

// Take units. They are paid for before the next are taken.
static void shipment_take_units(gp_limit_t *limit, uint64_t units)
{
    uint64_t now = gp_now_ns(), from = limit->free_ns > now ? limit->free_ns : now;
    if (limit->rate != 0)
        limit->free_ns = from + (uint64_t)((double)units * 1e9 / (double)limit->rate);
}

void gp_shipment_go_on(gp_shipper_t *shipper, gp_shipment_t *shipment)
{
    for (size_t i = 0; i < shipment->count; i++) {
        shipment->owners[i]->at = shipment->batches[i].to;
        gp_piece_keep_sums(&shipment->pieces[i]);
        shipment_take_units(&shipment->rows, gp_shipment_rows(&shipment->batches[i]));
        shipment_count_spans(shipper, &shipment->batches[i]);
    }
    for (size_t i = 0; i < shipment->count; i++)
        shipment_finish_capture(shipper, shipment->owners[i]);
    gp_shipment_free_group(shipment);
    if (shipment->kind->http != NULL) {
        uint64_t bytes = gp_http_bytes(shipment->kind->http(shipment->destination));
        shipment_take_units(&shipment->bytes, bytes - shipment->bytes_seen);
        shipment->bytes_seen = bytes;
    }
    if (gp_symbolizer_is_crowded(shipper->symbolizer))
        shipment_renew_symbolizer(shipper);
}

bool gp_shipment_is_empty(gp_shipper_t *shipper, gp_shipment_t *shipment)
{
    size_t count = 0;
    if (shipment->count > 0 || gp_journal_pending(shipper->journal, shipment->id, &count) != NULL)
        return false;
    for (size_t i = 0; i < shipment->following.count; i++)
        if (shipment_has_more(shipment->following.captures[i]))
            return false;
    return true;
}
