// SPDX-License-Identifier: MIT
#include <inttypes.h>

#include "ship/follow/shipment.h"

static void ship_dry_capture(gp_shipper_t *shipper, gp_shipment_t *shipment, gp_one_capture_t *followed)
{
    FILE *out = shipper->options->out;
    size_t pieces = 0, rows = 0;
    uint64_t samples = 0, weight_ns = 0;
    for (uint64_t from = 0; gp_shipment_take(shipper, shipment, followed, from, 0) > 0; pieces++) {
        const gp_batch_t *batch = &shipment->batches[0];
        if (pieces == 0) {
            fprintf(out, "%s -> %s\n", followed->path, shipment->url.shown);
            if (shipment->kind->describe != NULL)
                shipment->kind->describe(shipment->destination, batch, out);
        }
        for (size_t i = 0; i < batch->sample_count; i++)
            weight_ns += batch->samples[i].weight_ns;
        samples += shipment->pieces[0].samples_read;
        rows += gp_shipment_rows(batch);
        from = batch->to;
        gp_shipment_free_group(shipment);
        gp_capture_names_trim(&followed->known, false);
    }
    fprintf(out, "  in all: %zu pieces, %zu rows of %" PRIu64 " samples, %" PRIu64 " ns\n", pieces, rows, samples,
            weight_ns);
}

void gp_ship_dry(gp_shipper_t *shipper)
{
    for (size_t i = 0; i < shipper->count; i++) {
        gp_shipment_t *shipment = &shipper->shipments[i];
        for (size_t j = 0; j < shipment->following.count; j++)
            if (shipment->following.captures[j]->fd >= 0)
                ship_dry_capture(shipper, shipment, shipment->following.captures[j]);
    }
}
