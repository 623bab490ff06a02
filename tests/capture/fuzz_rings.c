// SPDX-License-Identifier: MIT
// Fuzz target: a ring file. The input is its header from the notes on, then the first slot's owner, then its ring, then
// the store of the latest note, then what is added to that note's number, and then to the sizes in the header.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/killed/recovery_rings.h"
#include "fuzz.h"

enum {
    RING_BYTES = 4096,
    SLOT_BYTES = sizeof(gp_ring_owner_t) + RING_BYTES,
    STORE_BYTES = 2048,
    PID = 7,
    START_NS = 1000,
};

static gp_file_header_t capture_header(void)
{
    gp_file_header_t header = {
        .version = GP_FILE_VERSION, .header_bytes = sizeof(header), .start_realtime_ns = START_NS, .pid = PID};
    memcpy(header.magic, GP_FILE_MAGIC, sizeof(header.magic));
    return header;
}

// Nothing but its header.
static int make_capture(void)
{
    gp_file_header_t header = capture_header();
    int fd = memfd_create("capture", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header))
        abort();
    return fd;
}

static size_t take(void *to, size_t room, const uint8_t *data, size_t size)
{
    size_t taken = size < room ? size : room;
    if (taken > 0)
        memcpy(to, data, taken);
    return taken;
}

static void set_fixed(gp_ring_file_header_t *header)
{
    memcpy(header->magic, GP_RING_FILE_MAGIC, sizeof(header->magic));
    header->version = GP_RING_FILE_VERSION;
    header->header_bytes = sizeof(gp_ring_file_t);
    header->pid = PID;
    header->slots = GP_RING_FILE_SLOTS;
    header->owner_bytes = sizeof(gp_ring_owner_t);
    header->ring_bytes = RING_BYTES;
    header->store_bytes = STORE_BYTES;
    for (int i = 0; i < 2; i++)
        header->notes[i].start_realtime_ns = START_NS;
}

// The file is as long as it was.
static void add_sizes(gp_ring_file_header_t *header, const uint8_t *data, size_t size)
{
    uint32_t sizes[3] = {0};
    take(sizes, sizeof(sizes), data, size);
    header->owner_bytes += sizes[0];
    header->ring_bytes += sizes[1];
    header->store_bytes += sizes[2];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { FILE_BYTES = sizeof(gp_ring_file_t) + GP_RING_FILE_SLOTS * SLOT_BYTES + 2 * STORE_BYTES };
    static gp_ring_file_t *file;
    static int capture = -1;
    gp_recovery_rings_t *rings = NULL;
    gp_file_header_t header = capture_header();
    if (file == NULL) {
        capture = make_capture();
        file = calloc(1, FILE_BYTES);
    }
    unsigned char *slot = (unsigned char *)(file + 1);
    memset(&file->header, 0, sizeof(file->header));
    memset(slot, 0, SLOT_BYTES);
    size_t used = take(&file->header.tick_mult, 3 * sizeof(uint64_t), data, size);
    used += take(slot, SLOT_BYTES, data + used, size - used);
    unsigned char *store = slot + GP_RING_FILE_SLOTS * SLOT_BYTES + STORE_BYTES;
    memset(store, 0, STORE_BYTES);
    used += take(store, STORE_BYTES, data + used, size - used);
    set_fixed(&file->header);
    file->header.latest = 0;
    used += take(&file->header.latest, sizeof(file->header.latest), data + used, size - used);
    file->header.latest++;
    if (size - used > 0)
        add_sizes(&file->header, data + used, size - used);
    int result = gp_recovery_rings_take(&rings, file, FILE_BYTES, capture, &header);
    if (result == 0 &&
        rings->samples + rings->waits + rings->spans > (RING_BYTES + STORE_BYTES) / sizeof(gp_ring_header_t))
        abort();
    if (result == 0)
        gp_recovery_rings_free(rings);
    return 0;
}
