// SPDX-License-Identifier: MIT
#include "capture/read/reader_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

// libzstd calls these where they are defined: it shall not find a definition of the host's.
unsigned long long ZSTD_trace_decompress_begin(const ZSTD_DCtx *context);
void ZSTD_trace_decompress_end(unsigned long long trace, const void *what);

unsigned long long ZSTD_trace_decompress_begin(const ZSTD_DCtx *context)
{
    (void)context;
    return 0;
}

void ZSTD_trace_decompress_end(unsigned long long trace, const void *what)
{
    (void)trace;
    (void)what;
}

void gp_reader_payload_free(gp_reader_payload_t *payload)
{
    ZSTD_freeDCtx(payload->context);
    free(payload->bytes);
    *payload = (gp_reader_payload_t){0};
}

int gp_reader_payload_room(gp_reader_payload_t *payload, size_t len)
{
    if (payload->context == NULL && (payload->context = ZSTD_createDCtx()) == NULL)
        return -ENOMEM;
    if (len <= payload->room)
        return 0;
    uint8_t *bytes = malloc(len);
    if (bytes == NULL)
        return -ENOMEM;
    free(payload->bytes);
    payload->bytes = bytes;
    payload->room = len;
    return 0;
}

size_t gp_reader_content_len(const uint8_t *data, size_t len)
{
    unsigned long long content = ZSTD_getFrameContentSize(data, len); // two error values above any size
    return content <= GP_CHUNK_MAX && ZSTD_findFrameCompressedSize(data, len) == len ? (size_t)content : SIZE_MAX;
}

int gp_reader_decompress_at(gp_reader_payload_t *payload, size_t at, const uint8_t **data, size_t *len)
{
    size_t content = gp_reader_content_len(*data, *len);
    if (content > payload->room || at > payload->room - content)
        return -EBADMSG;
    size_t got = ZSTD_decompressDCtx(payload->context, payload->bytes + at, content, *data, *len);
    if (ZSTD_isError(got) || got != content)
        return -EBADMSG;
    *data = payload->bytes + at;
    *len = got;
    return 0;
}

int gp_reader_decompress(gp_reader_payload_t *payload, uint16_t flags, const uint8_t **data, size_t *len)
{
    if (!(flags & GP_CHUNK_ZSTD))
        return 0;
    size_t content = gp_reader_content_len(*data, *len);
    if (content == SIZE_MAX)
        return -EBADMSG;
    int error = gp_reader_payload_room(payload, content + 8);
    return error < 0 ? error : gp_reader_decompress_at(payload, 0, data, len);
}

static gp_packed_column_t reader_payload_column_at(const gp_unpacker_t *unpacker, size_t word)
{
    gp_packed_column_t column;
    memcpy(&column, unpacker->columns + word * sizeof(column), sizeof(column));
    return column;
}

int gp_unpack_begin(gp_unpacker_t *unpacker, const uint8_t *data, size_t len)
{
    gp_packed_header_t header;
    if (len < sizeof(header))
        return -EBADMSG;
    memcpy(&header, data, sizeof(header));
    *unpacker = (gp_unpacker_t){
        .columns = data + sizeof(header),
        .count = header.count,
        .words = header.record_bytes / 4u,
    };
    uint64_t whole = sizeof(header) + unpacker->words * sizeof(gp_packed_column_t);
    if (header.record_bytes % 4 != 0 || unpacker->words == 0 || unpacker->words > GP_UNPACK_WORDS_MAX || whole > len ||
        (uint64_t)header.count * header.record_bytes > GP_CHUNK_MAX)
        return -EBADMSG;
    unpacker->planes = data + whole;
    for (size_t word = 0; word < unpacker->words; word++) {
        gp_packed_column_t column = reader_payload_column_at(unpacker, word);
        unpacker->previous[word] = column.base;
        if (column.width > 4)
            return -EBADMSG;
        whole += (uint64_t)column.width * header.count;
    }
    return whole == len ? 0 : -EBADMSG;
}

// The kept bytes of the next words of a column, put together. Each width has its own loop, which can be vectorized.
static void reader_payload_gather(unsigned width, const uint8_t *restrict planes, size_t plane_len, size_t count,
                                  uint32_t *restrict kept)
{
#define PLANE(n) ((uint32_t)planes[(n)*plane_len + i] << 8 * (n))
    switch (width) {
    case 1:
        for (size_t i = 0; i < count; i++)
            kept[i] = PLANE(0);
        break;
    case 2:
        for (size_t i = 0; i < count; i++)
            kept[i] = PLANE(0) | PLANE(1);
        break;
    case 3:
        for (size_t i = 0; i < count; i++)
            kept[i] = PLANE(0) | PLANE(1) | PLANE(2);
        break;
    default:
        for (size_t i = 0; i < count; i++)
            kept[i] = PLANE(0) | PLANE(1) | PLANE(2) | PLANE(3);
    }
#undef PLANE
}

static void reader_payload_unpack_column(const gp_packed_column_t *column, const uint32_t *kept, size_t count,
                                         uint32_t *previous, uint32_t *out, size_t stride)
{
    uint32_t word = *previous;
    for (size_t i = 0; i < count && !column->is_delta; i++)
        out[i * stride] = column->base + kept[i];
    for (size_t i = 0; i < count && column->is_delta; i++)
        out[i * stride] = word += GP_UNZIGZAG(kept[i]);
    *previous = word;
}

size_t gp_unpack_next(gp_unpacker_t *unpacker, uint32_t *out, size_t words, uint64_t wanted)
{
    size_t left = unpacker->count - unpacker->done;
    size_t count = left < GP_UNPACK_BLOCK ? left : GP_UNPACK_BLOCK;
    const uint8_t *planes = unpacker->planes;
    uint32_t kept[GP_UNPACK_BLOCK];
    if ((unpacker->words < words || wanted != GP_UNPACK_ALL) && unpacker->done == 0)
        memset(out, 0, count * words * sizeof(*out));
    for (size_t i = 0; i < unpacker->words && i < words; i++) {
        gp_packed_column_t column = reader_payload_column_at(unpacker, i);
        for (size_t record = 0; record < count && column.width == 0 && unpacker->done == 0; record++)
            out[record * words + i] = column.base;
        if (column.width > 0 && (wanted >> i & 1)) {
            reader_payload_gather(column.width, planes + unpacker->done, unpacker->count, count, kept);
            reader_payload_unpack_column(&column, kept, count, &unpacker->previous[i], out + i, words);
        }
        planes += (size_t)column.width * unpacker->count;
    }
    unpacker->done += (uint32_t)count;
    return count;
}
