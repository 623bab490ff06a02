// SPDX-License-Identifier: MIT
#include "capture/killed/ring_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// More than any version writes: a hostile file takes no more memory and time than this.
enum { PART_BYTES_MAX = 1 << 22, FILE_BYTES_MAX = 64 << 20 };
enum { VERSION_WITHOUT_GIL = 3, WIDENED_BYTES_MAX = 16384, NEW_BYTES = 2 * sizeof(uint64_t) };

static int ring_walk_read_whole(int fd, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (char *)to + done, bytes - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENOMSG;
        done += (size_t)got;
    }
    return 0;
}

static size_t ring_walk_slot_bytes(const gp_ring_file_header_t *header)
{
    return (size_t)header->owner_bytes + header->ring_bytes;
}

static size_t ring_walk_bytes_of(const gp_ring_file_header_t *header)
{
    return header->header_bytes + header->slots * ring_walk_slot_bytes(header) + 2 * (size_t)header->store_bytes;
}

static bool ring_walk_is_known(const gp_ring_file_header_t *header)
{
    uint32_t ring = header->ring_bytes, owner = header->owner_bytes;
    return memcmp(header->magic, GP_RING_FILE_MAGIC, sizeof(header->magic)) == 0 &&
           (header->version == GP_RING_FILE_VERSION || header->version == VERSION_WITHOUT_GIL) &&
           header->header_bytes == sizeof(gp_ring_file_t) && header->slots == GP_RING_FILE_SLOTS && ring >= 4096 &&
           ring <= PART_BYTES_MAX && (ring & (ring - 1)) == 0 && owner >= sizeof(gp_ring_owner_t) &&
           owner <= PART_BYTES_MAX && owner % 8 == 0 && header->store_bytes >= sizeof(gp_ring_file_store_t) &&
           header->store_bytes <= PART_BYTES_MAX && header->store_bytes % 8 == 0 &&
           ring_walk_bytes_of(header) <= FILE_BYTES_MAX;
}

int gp_ring_walk_load(int fd, gp_ring_file_t **file, size_t *bytes)
{
    gp_ring_file_header_t header;
    struct stat status;
    *file = NULL;
    int error = ring_walk_read_whole(fd, &header, sizeof(header));
    if (error == 0 && (!ring_walk_is_known(&header) || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
                       (uint64_t)status.st_size < ring_walk_bytes_of(&header)))
        error = -ENOMSG;
    if (error != 0)
        return error;
    *bytes = ring_walk_bytes_of(&header);
    *file = malloc(*bytes);
    return *file != NULL ? ring_walk_read_whole(fd, *file, *bytes) : -ENOMEM;
}

// Where a further part of the recording was about to begin, the capture may still be that of the note before.
int gp_ring_walk_begin(gp_ring_walk_t *walk, const gp_ring_file_t *file, size_t bytes, const gp_file_header_t *capture)
{
    const gp_ring_file_header_t *header = &file->header;
    if (bytes < sizeof(*file) || !ring_walk_is_known(header) || bytes < ring_walk_bytes_of(header))
        return -ENOMSG;
    for (uint64_t back = 0; back < 2 && header->latest > back && header->pid == capture->pid; back++) {
        uint64_t number = header->latest - back;
        *walk = (gp_ring_walk_t){file, &header->notes[number % 2], number};
        if (walk->note->start_realtime_ns == capture->start_realtime_ns)
            return 0;
    }
    return -ESTALE;
}

static const gp_ring_owner_t *ring_walk_owner_of(const gp_ring_walk_t *walk, uint32_t slot)
{
    const unsigned char *slots = (const unsigned char *)walk->file + sizeof(gp_ring_file_t);
    return (const void *)(slots + slot * ring_walk_slot_bytes(&walk->file->header));
}

static const gp_ring_file_store_t *ring_walk_store_of(const gp_ring_walk_t *walk, uint64_t note)
{
    const gp_ring_file_header_t *header = &walk->file->header;
    const unsigned char *stores = (const unsigned char *)ring_walk_owner_of(walk, header->slots);
    return (const void *)(stores + note % 2 * header->store_bytes);
}

static enum gp_chunk_type ring_walk_chunk_of(uint32_t type)
{
    switch (type) {
    case GP_RING_SAMPLE:
    case GP_RING_WAIT:
        return GP_CHUNK_SAMPLES;
    case GP_RING_ACTIVITY:
        return GP_CHUNK_ACTIVITIES;
    case GP_RING_SPAN:
        return GP_CHUNK_SPANS;
    default: // of no use without what the process knew
        return GP_CHUNK_END;
    }
}

static bool ring_walk_fits(const gp_ring_header_t *record)
{
    uint64_t bytes = record->bytes;
    const gp_sample_t *sample = (const void *)record;
    const gp_span_mark_t *mark = (const void *)record;
    switch (atomic_load_explicit(&record->committed, memory_order_relaxed)) {
    case GP_RING_SAMPLE:
    case GP_RING_WAIT:
        return bytes >= sizeof(*sample) && sample->depth <= GP_RING_WALK_DEPTH_MAX &&
               bytes >= sizeof(*sample) + sample->depth * sizeof(sample->frames[0]);
    case GP_RING_ACTIVITY:
        return bytes >= sizeof(gp_activity_mark_t);
    case GP_RING_SPAN:
        return bytes >= sizeof(*mark) &&
               bytes >= offsetof(gp_span_mark_t, text) + (size_t)mark->span.name_len + mark->fields_len;
    default:
        return false;
    }
}

// A record of version 3 as it is now: without waits for locks. Returns NULL where it is too long.
static const gp_ring_header_t *ring_walk_widen(const gp_ring_header_t *record, unsigned char room[WIDENED_BYTES_MAX])
{
    uint32_t type = atomic_load_explicit(&record->committed, memory_order_relaxed);
    size_t at =
        type == GP_RING_ACTIVITY ? offsetof(gp_activity_mark_t, gil_ns) : offsetof(gp_span_mark_t, span.times.gil_ns);
    if (type != GP_RING_ACTIVITY && type != GP_RING_SPAN)
        return record;
    if (record->bytes < at || record->bytes > WIDENED_BYTES_MAX - NEW_BYTES)
        return NULL;
    memcpy(room, record, at);
    memset(room + at, 0, NEW_BYTES);
    memcpy(room + at + NEW_BYTES, (const unsigned char *)record + at, record->bytes - at);
    ((gp_ring_header_t *)(void *)room)->bytes += NEW_BYTES;
    return (const void *)room;
}

typedef struct stretch { // of a ring's records
    const gp_ring_owner_t *owner;
    const unsigned char *data;
    uint64_t from, mask; // the record at position p is data[(p - from) & mask]
    uint64_t at, bytes;  // where it begins; at most so many
    uint64_t lo, hi;     // positions [lo, hi) are of interest
    uint64_t noted;      // the note's hand-over ends here
    const bool *has;
    bool is_narrow; // the file's version is 3
} stretch_t;

// The committed records, the oldest first. A record begun and never completed says how long it is, or is the last.
static void ring_walk_stretch(const stretch_t *stretch, gp_ring_visit_t *visit, void *context)
{
    const gp_ring_owner_t *owner = stretch->owner;
    uint64_t at = stretch->at, end = at + stretch->bytes;
    _Alignas(8) unsigned char room_of_one[WIDENED_BYTES_MAX];
    while (end - at >= sizeof(gp_ring_header_t) && end - at <= stretch->bytes) {
        uint64_t offset = (at - stretch->from) & stretch->mask;
        uint64_t room = stretch->mask - offset < end - at ? stretch->mask - offset + 1 : end - at;
        const gp_ring_header_t *record = (const void *)(stretch->data + offset);
        if (record->bytes < sizeof(*record) || record->bytes % 8 != 0 || record->bytes > room)
            return;
        bool is_new =
            stretch->has == NULL || at >= stretch->noted || !stretch->has[ring_walk_chunk_of(record->committed)];
        int whose = at < owner->since;
        const gp_ring_header_t *whole = stretch->is_narrow ? ring_walk_widen(record, room_of_one) : record;
        gp_ring_taken_t taken = {whole, owner->index[whose], owner->root_id[whose], owner->tids[whose]};
        if (is_new && at >= stretch->lo && at < stretch->hi && taken.thread != 0 && whole != NULL &&
            ring_walk_fits(whole))
            visit(context, &taken);
        at += record->bytes;
    }
}

static void ring_walk_ring(const gp_ring_walk_t *walk, uint32_t slot, const bool *has, gp_ring_visit_t *visit,
                           void *context)
{
    const gp_ring_file_header_t *header = &walk->file->header;
    const gp_ring_owner_t *owner = ring_walk_owner_of(walk, slot);
    const stretch_t stretch = {
        .owner = owner,
        .data = (const unsigned char *)owner + header->owner_bytes,
        .mask = header->ring_bytes - 1,
        .at = owner->tail,
        .bytes = header->ring_bytes,
        .hi = UINT64_MAX,
        .noted = walk->note->positions[slot],
        .has = has,
        .is_narrow = walk->file->header.version == VERSION_WITHOUT_GIL,
    };
    if (owner->tail % 8 == 0)
        ring_walk_stretch(&stretch, visit, context);
}

static void ring_walk_block(const gp_ring_walk_t *walk, const gp_ring_file_block_t *block, bool is_older,
                            const bool *has, gp_ring_visit_t *visit, void *context)
{
    const stretch_t stretch = {
        .owner = &block->owner,
        .data = (const unsigned char *)(block + 1),
        .from = block->from,
        .mask = UINT64_MAX,
        .at = block->from,
        .bytes = block->bytes,
        .lo = is_older ? block->noted : 0, // earlier records went with the note before
        .hi = ring_walk_owner_of(walk, block->slot)->tail,
        .noted = walk->note->positions[block->slot],
        .has = has,
        .is_narrow = walk->file->header.version == VERSION_WITHOUT_GIL,
    };
    ring_walk_stretch(&stretch, visit, context);
}

// Records of a ring in a store.
static void ring_walk_store(const gp_ring_walk_t *walk, uint64_t note, uint32_t slot, const bool *has,
                            gp_ring_visit_t *visit, void *context)
{
    const gp_ring_file_store_t *store = ring_walk_store_of(walk, note);
    uint64_t room = walk->file->header.store_bytes - sizeof(*store), used = store->used < room ? store->used : room;
    const unsigned char *blocks = (const unsigned char *)(store + 1);
    if (store->note != note)
        return;
    for (uint64_t at = 0; used - at >= sizeof(gp_ring_file_block_t);) {
        const gp_ring_file_block_t *block = (const void *)(blocks + at);
        if (block->bytes % 8 != 0 || block->bytes > used - at - sizeof(*block) ||
            block->slot >= walk->file->header.slots)
            return;
        if (block->slot == slot)
            ring_walk_block(walk, block, note == walk->number - 1, has, visit, context);
        at += sizeof(*block) + block->bytes;
    }
}

void gp_ring_walk(const gp_ring_walk_t *walk, const bool has[GP_CHUNK_TYPES], gp_ring_visit_t *visit, void *context)
{
    for (uint32_t slot = 0; slot < walk->file->header.slots; slot++) {
        if (ring_walk_owner_of(walk, slot)->index[0] == 0)
            continue;
        for (int i = -1; i <= 1; i++) // numbers go round, as the file may say any
            ring_walk_store(walk, walk->number + (uint64_t)i, slot, has, visit, context);
        ring_walk_ring(walk, slot, has, visit, context);
    }
}
