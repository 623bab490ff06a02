// SPDX-License-Identifier: MIT
#include "capture/read/reader.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "capture/read/reader_ahead.h"
#include "capture/read/reader_kept.h"
#include "capture/read/reader_payload.h"
#include "capture/read/reader_records.h"
#include "capture/read/reader_window.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the capture reader takes records as they are in the file: little-endian"
#endif

// A file made to mislead could claim a 16 MiB chunk every 8 bytes. Wrong candidates may cost this many checksummed
// bytes for each byte of the file; beyond that they are passed over unchecked.
enum { WASTE_FACTOR = 16, WASTE_FREE = 4 * (int)GP_CHUNK_MAX };

// Such a file could also claim millions of equal records in a few bytes. Records may take up this many times the file
// in memory, in all; beyond that chunks count as bad.
enum { GROWTH_FACTOR = 2000, GROWTH_FREE = 16 * (int)GP_CHUNK_MAX };

enum { HEADER_SEARCH = 4096, AHEAD_FROM = 1 << 20 }; // bytes; a smaller capture is not worth a thread

typedef struct reader {
    gp_reader_window_t window;
    const gp_taker_t *takers;
    gp_reader_summary_t *summary;
    char *error;
    uint64_t next_sequence;
    uint64_t wasted; // bytes checksummed for nothing
    uint64_t grown;  // bytes of records in compressed or packed chunks
    gp_reader_payload_t payload;
    bool is_large;
    gp_reader_ahead_t *ahead; // of a large one, where there are threads
    bool searching;           // the bytes before here were no chunk
    bool cut;                 // the search began with a chunk that would reach beyond the end of the file
    gp_reader_part_t *part;   // NULL = all of the file
    uint64_t base;            // where in the file the window's first byte was
    bool first_of_part;       // no chunk was read yet
} reader_t;

static int reader_fail(reader_t *reader, int result, const char *what)
{
    snprintf(reader->error, GP_READER_ERROR_SIZE, "%s", what);
    return result;
}

static int reader_check_header(reader_t *reader, const gp_file_header_t *header)
{
    uint64_t unknown = header->features & ~GP_FEATURES_KNOWN & 0xffffffffull;
    if (memcmp(header->magic, GP_FILE_MAGIC, sizeof(header->magic)) != 0)
        return reader_fail(reader, -EINVAL, "is not a greenprof capture");
    if (header->version != GP_FILE_VERSION) {
        snprintf(reader->error, GP_READER_ERROR_SIZE,
                 "is a capture of version %" PRIu32 ", this greenprof reads version %u", header->version,
                 GP_FILE_VERSION);
        return -EINVAL;
    }
    if (unknown != 0) {
        snprintf(reader->error, GP_READER_ERROR_SIZE,
                 "was written by a newer greenprof: it needs features that this one does not know "
                 "(0x%" PRIx64 ")",
                 unknown);
        return -EINVAL;
    }
    bool is_machine_known = header->elf_machine == EM_X86_64 || header->elf_machine == EM_AARCH64;
    if (!is_machine_known && header->elf_machine != EM_NONE) {
        snprintf(reader->error, GP_READER_ERROR_SIZE,
                 "is of a machine that this greenprof does not know: ELF's number for it is %" PRIu32,
                 header->elf_machine);
        return -EINVAL;
    }
    if (header->header_bytes < sizeof(*header) || header->header_bytes > 65536 || header->header_bytes % 8 != 0)
        return reader_fail(reader, -EINVAL, "has a damaged file header");
    return 0;
}

static bool reader_is_intact(const gp_file_header_t *header)
{
    return memcmp(header->magic, GP_FILE_MAGIC, sizeof(header->magic)) == 0 &&
           (header->checksum == 0 || header->checksum == XXH64(header, offsetof(gp_file_header_t, checksum), 0));
}

// The file header stands in the first chunk as well; look for it, as far as the window goes.
static bool reader_find_copy(reader_t *reader, gp_file_header_t *header)
{
    gp_chunk_header_t chunk;
    size_t have = gp_reader_window_fill(&reader->window, HEADER_SEARCH);
    const uint8_t *data = gp_reader_window_data(&reader->window);
    for (size_t at = 0; at + sizeof(chunk) + sizeof(*header) <= have; at += 8) {
        memcpy(&chunk, data + at, sizeof(chunk));
        if (chunk.magic != GP_CHUNK_MAGIC || chunk.type != GP_CHUNK_HEADER || chunk.payload_len != sizeof(*header))
            continue;
        memcpy(header, data + at + sizeof(chunk), sizeof(*header));
        if (chunk.checksum == XXH64(header, sizeof(*header), GP_CHUNK_SEED(chunk.type, chunk.flags, chunk.sequence)))
            return reader_is_intact(header);
    }
    return false;
}

static int reader_read_header(reader_t *reader)
{
    gp_file_header_t header;
    size_t have = gp_reader_window_fill(&reader->window, sizeof(header));
    if (reader->window.error < 0)
        return reader_fail(reader, reader->window.error, strerror(-reader->window.error));
    if (have == 0)
        return reader_fail(reader, -EINVAL, "is empty");
    size_t magic = have < sizeof(header.magic) ? have : sizeof(header.magic);
    bool is_ours = memcmp(gp_reader_window_data(&reader->window), GP_FILE_MAGIC, magic) == 0;
    if (have < sizeof(header))
        return reader_fail(reader, -EINVAL,
                           is_ours ? "is a capture cut off inside its file header" : "is not a greenprof capture");
    memcpy(&header, gp_reader_window_data(&reader->window), sizeof(header));
    gp_file_header_t copy;
    if (!reader_is_intact(&header) && reader_find_copy(reader, &copy)) {
        header = copy;
        reader->summary->header_damaged = true;
    }
    int result = reader_check_header(reader, &header);
    for (const gp_taker_t *taker = reader->takers; taker != NULL && result == 0; taker = taker->next)
        result = taker->handlers->header != NULL ? taker->handlers->header(taker->context, &header) : 0;
    if (result == 0)
        gp_reader_window_skip(&reader->window, header.header_bytes);
    return result;
}

static void reader_count_sequence(reader_t *reader, uint32_t sequence)
{
    if (reader->first_of_part) // earlier chunks were read another time
        reader->next_sequence = sequence;
    reader->first_of_part = false;
    if (sequence > reader->next_sequence)
        reader->summary->chunks_missing += sequence - reader->next_sequence;
    if (sequence >= reader->next_sequence)
        reader->next_sequence = (uint64_t)sequence + 1;
}

// The size of all records of a packed payload, as it says.
static uint64_t reader_unpacked_len(const uint8_t *payload, size_t len)
{
    gp_packed_header_t header = {0};
    if (len >= sizeof(header))
        memcpy(&header, payload, sizeof(header));
    return (uint64_t)header.count * header.record_bytes;
}

// Where in the file the next unconsumed byte is.
static uint64_t reader_position(const reader_t *reader)
{
    return reader->base + reader->window.total - (reader->window.end - reader->window.start);
}

static int reader_handle_records(reader_t *reader, const gp_reader_chunk_t *chunk, bool *known)
{
    uint16_t flags = chunk->header.flags, type = chunk->header.type;
    bool is_packed = flags & GP_CHUNK_PACKED;
    if (chunk->error < 0)
        return chunk->error;
    reader->grown += flags & GP_CHUNK_ZSTD ? chunk->len : 0;
    reader->grown += is_packed ? reader_unpacked_len(chunk->payload, chunk->len) : 0;
    if (reader->grown > GROWTH_FACTOR * chunk->read + GROWTH_FREE)
        return -EBADMSG;
    int result = (is_packed ? gp_reader_packed_records : gp_reader_records)(type, chunk->payload, chunk->len,
                                                                            reader->takers, known);
    for (const gp_taker_t *taker = reader->takers; taker != NULL && result == 0 && type == GP_CHUNK_SAMPLES;
         taker = taker->next)
        if (taker->handlers->kept != NULL)
            gp_reader_keep(taker->handlers->kept, is_packed ? chunk->payload : NULL, chunk->at);
    return result;
}

static bool reader_has_known_flags(const gp_chunk_header_t *chunk)
{
    return !(chunk->flags & ~(GP_CHUNK_ZSTD | GP_CHUNK_PACKED));
}

static int reader_handle_chunk(void *context, const gp_reader_chunk_t *chunk)
{
    reader_t *reader = context;
    bool known = reader_has_known_flags(&chunk->header);
    int result = 0;
    reader->summary->chunks++;
    reader_count_sequence(reader, chunk->header.sequence);
    for (const gp_taker_t *taker = reader->takers; taker != NULL && result == 0; taker = taker->next)
        result = taker->handlers->chunk != NULL ? taker->handlers->chunk(taker->context, &chunk->header) : 0;
    if (result == 0 && chunk->is_wanted)
        result = reader_handle_records(reader, chunk, &known);
    if (!known)
        reader->summary->chunks_unknown++;
    if (known && chunk->header.type == GP_CHUNK_END)
        reader->summary->ended = true;
    if (result == -EBADMSG) {
        reader->summary->records_bad++;
        result = 0;
    }
    return result;
}

// Handle a chunk that is at the window's start, here or, of a large capture, ahead of it what comes behind.
static int reader_take_chunk(reader_t *reader, const gp_chunk_header_t *header)
{
    gp_reader_chunk_t chunk = {
        .header = *header,
        .at = reader_position(reader),
        .read = reader->window.total,
        .is_wanted = reader_has_known_flags(header) && gp_reader_is_wanted(header->type, reader->takers),
        .payload = gp_reader_window_data(&reader->window) + sizeof(*header),
        .len = header->payload_len,
    };
    if (!reader->is_large && reader->part == NULL && chunk.at >= AHEAD_FROM) {
        reader->is_large = true;
        reader->ahead = gp_reader_ahead_open(reader_handle_chunk, reader);
    }
    if (reader->ahead != NULL)
        return gp_reader_ahead_give(reader->ahead, &chunk);
    gp_reader_chunk_decompress(&reader->payload, &chunk);
    return reader_handle_chunk(reader, &chunk);
}

enum candidate { CANDIDATE_NONE, CANDIDATE_CUT, CANDIDATE_GOOD };

// Is there a whole, intact chunk at the window's start? CANDIDATE_CUT: it would reach beyond the end of the file.
static enum candidate reader_try_chunk(reader_t *reader, gp_chunk_header_t *chunk)
{
    gp_reader_window_t *window = &reader->window;
    if (gp_reader_window_fill(window, sizeof(*chunk)) < sizeof(*chunk))
        return CANDIDATE_CUT;
    memcpy(chunk, gp_reader_window_data(window), sizeof(*chunk));
    if (chunk->magic != GP_CHUNK_MAGIC || chunk->payload_len > GP_CHUNK_MAX)
        return CANDIDATE_NONE;
    if (reader->wasted > WASTE_FACTOR * window->total + WASTE_FREE)
        return CANDIDATE_NONE;

    size_t whole = sizeof(*chunk) + chunk->payload_len;
    if (gp_reader_window_fill(window, whole) < whole)
        return CANDIDATE_CUT;
    const uint8_t *payload = gp_reader_window_data(window) + sizeof(*chunk);
    if (XXH64(payload, chunk->payload_len, GP_CHUNK_SEED(chunk->type, chunk->flags, chunk->sequence)) ==
        chunk->checksum)
        return CANDIDATE_GOOD;
    reader->wasted += whole;
    return CANDIDATE_NONE;
}

// Go 8 bytes on, at least, to the next place where a chunk may start.
static void reader_search_on(reader_t *reader, enum candidate candidate)
{
    const uint32_t magic = GP_CHUNK_MAGIC;
    if (!reader->searching)
        reader->cut = candidate == CANDIDATE_CUT;
    reader->searching = true;
    do {
        reader->summary->bytes_skipped += gp_reader_window_skip(&reader->window, 8);
    } while (gp_reader_window_fill(&reader->window, 8) >= 4 &&
             memcmp(gp_reader_window_data(&reader->window), &magic, 4) != 0);
}

// Whether a chunk was cut off by the end of the file or its length is damaged shows only when the search is over.
static void reader_search_over(reader_t *reader, bool at_end)
{
    if (reader->searching && reader->cut && at_end)
        reader->summary->truncated = true;
    else if (reader->searching)
        reader->summary->chunks_damaged++;
    reader->searching = false;
}

// Has all of the part been read that was asked for?
static bool reader_is_part_over(const reader_t *reader)
{
    const gp_reader_part_t *part = reader->part;
    return part != NULL && part->max > 0 && !reader->searching && reader_position(reader) - part->from >= part->max;
}

static int reader_read_chunks(reader_t *reader)
{
    int result = 0;
    while (result == 0 && !reader_is_part_over(reader) && gp_reader_window_fill(&reader->window, 1) > 0) {
        gp_chunk_header_t chunk;
        enum candidate candidate = reader_try_chunk(reader, &chunk);
        if (reader->window.error < 0)
            break;
        if (candidate != CANDIDATE_GOOD) {
            reader_search_on(reader, candidate);
            continue;
        }
        reader_search_over(reader, false);
        result = reader_take_chunk(reader, &chunk);
        gp_reader_window_skip(&reader->window, (sizeof(chunk) + chunk.payload_len + 7) & ~(size_t)7);
        if (reader->part != NULL) {
            reader->part->to = reader_position(reader);
            reader->part->sequence = (uint32_t)reader->next_sequence;
        }
    }
    if (result == 0 && reader->ahead != NULL)
        result = gp_reader_ahead_end(reader->ahead);
    if (result == 0 && reader->part == NULL)
        reader_search_over(reader, true);
    return result;
}

// Go on where the part begins: a window that is on an 8-byte boundary of the file, as chunks are.
static int reader_go_to_part(reader_t *reader)
{
    gp_reader_window_t *window = &reader->window;
    uint64_t header_end = reader_position(reader);
    if (reader->part->from <= header_end) {
        reader->part->to = header_end;
        return 0;
    }
    reader->part->to = reader->part->from;
    gp_reader_window_free(window);
    *window = (gp_reader_window_t){.fd = window->fd};
    reader->base = reader->part->from;
    reader->first_of_part = true;
    return lseek(window->fd, (off_t)reader->part->from, SEEK_SET) < 0 ? reader_fail(reader, -errno, strerror(errno))
                                                                      : 0;
}

static int reader_read_all(int fd, gp_reader_part_t *part, const gp_taker_t *takers, gp_reader_summary_t *summary,
                           char *error)
{
    reader_t reader = {
        .window = {.fd = fd},
        .part = part,
        .takers = takers,
        .summary = summary,
        .error = error,
    };
    memset(summary, 0, sizeof(*summary));
    error[0] = '\0';
    int result = reader_read_header(&reader);
    if (result == 0 && part != NULL)
        result = reader_go_to_part(&reader);
    if (result == 0)
        result = reader_read_chunks(&reader);
    if (result == 0)
        result = reader.window.error;
    if (result < 0 && error[0] == '\0')
        reader_fail(&reader, result, strerror(-result));
    summary->bytes = reader.window.total;
    gp_reader_window_free(&reader.window);
    gp_reader_ahead_close(reader.ahead);
    gp_reader_payload_free(&reader.payload);
    return result;
}

int gp_reader_read(int fd, const gp_reader_handlers_t *handlers, void *context, gp_reader_summary_t *summary,
                   char error[GP_READER_ERROR_SIZE])
{
    const gp_taker_t taker = {handlers, context, NULL};
    return reader_read_all(fd, NULL, &taker, summary, error);
}

int gp_reader_take(int fd, const gp_taker_t *takers, gp_reader_summary_t *summary, char error[GP_READER_ERROR_SIZE])
{
    return reader_read_all(fd, NULL, takers, summary, error);
}

int gp_reader_take_part(int fd, gp_reader_part_t *part, const gp_taker_t *takers, gp_reader_summary_t *summary,
                        char error[GP_READER_ERROR_SIZE])
{
    part->to = part->from;
    if (lseek(fd, 0, SEEK_SET) < 0) {
        int reason = errno;
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(reason));
        return -reason;
    }
    return reader_read_all(fd, part, takers, summary, error);
}

int gp_reader_read_part(int fd, gp_reader_part_t *part, const gp_reader_handlers_t *handlers, void *context,
                        gp_reader_summary_t *summary, char error[GP_READER_ERROR_SIZE])
{
    const gp_taker_t taker = {handlers, context, NULL};
    return gp_reader_take_part(fd, part, &taker, summary, error);
}
