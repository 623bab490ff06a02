// SPDX-License-Identifier: MIT
// Where the journal is new, or was lost: what of a capture has arrived is asked of the store, which has the number of
// each batch. A number is a hash of the capture and of the piece's bytes, so that it can be told which piece it is.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "ship/follow/shipment.h"

enum { CLOCK_MARGIN_S = 600, CANDIDATES_MAX_BYTES = 64 << 20 };

bool gp_shipment_is_to_ask(const gp_shipper_t *shipper, const gp_shipment_t *shipment, const gp_followed_t *followed)
{
    uint64_t start_s = followed->known.facts.header.start_realtime_ns / 1000000000;
    return shipment->kind->arrived != NULL && !shipper->options->never_asks && followed->at == 0 &&
           !followed->is_asked_for && start_s < gp_journal_since_s(shipper->journal) + CLOCK_MARGIN_S;
}

static int by_place(const void *left, const void *right)
{
    const gp_arrived_piece_t *a = left, *b = right;
    return a->from != b->from ? a->from < b->from ? -1 : 1 : a->to < b->to ? -1 : a->to > b->to;
}

// Those of this capture, in their order. Returns whether each begins where the one before ends.
static bool chain(gp_arrived_t *arrived, uint64_t capture, uint64_t *to)
{
    size_t kept = 0;
    for (size_t i = 0; i < arrived->count; i++)
        if (gp_batch_id(capture, arrived->pieces[i].from, arrived->pieces[i].to) == arrived->pieces[i].batch)
            arrived->pieces[kept++] = arrived->pieces[i];
    arrived->count = kept;
    if (kept > 0)
        qsort(arrived->pieces, kept, sizeof(*arrived->pieces), by_place);
    *to = 0;
    for (size_t i = 0; i < kept; i++) {
        if (arrived->pieces[i].from != *to)
            return false;
        *to = arrived->pieces[i].to;
    }
    return true;
}

// The end of the piece from `from` on that has this number: that of a chunk, or of the critical paths.
static uint64_t end_of(const gp_followed_t *followed, uint64_t from, uint64_t batch)
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

static int refuse(gp_shipper_t *shipper, gp_followed_t *followed, const char *what)
{
    shipper->options->say(followed->path,
                          "the journal does not know it, and the store has %s; not sent, as that could count it twice",
                          what);
    return -ENOTUNIQ;
}

static int find_place(gp_shipper_t *shipper, gp_followed_t *followed, gp_arrived_t *arrived, gp_place_t *place)
{
    *place = (gp_place_t){0};
    if (!chain(arrived, followed->id, &place->to))
        return refuse(shipper, followed, "parts of it, but not from the beginning on");
    if (arrived->open_count > 1)
        return refuse(shipper, followed, "several parts of which it does not say what they are");
    if (arrived->open_count == 1) {
        place->doubt_to = end_of(followed, place->to, arrived->open[0]);
        if (place->doubt_to == 0)
            return refuse(shipper, followed, "a part of which it does not say what it is");
    }
    return 0;
}

int gp_shipment_ask(gp_shipper_t *shipper, gp_shipment_t *shipment, gp_followed_t *followed, gp_place_t *place)
{
    gp_arrived_t arrived = {0};
    const gp_batch_t *batch = &shipment->batches[shipment->count - 1];
    int result = shipment->kind->arrived(shipment->destination, batch, &arrived, shipment->error);
    if (result == 0) {
        followed->is_asked_for = true;
        result = find_place(shipper, followed, &arrived, place);
    }
    free(arrived.pieces);
    free(arrived.open);
    return result;
}
