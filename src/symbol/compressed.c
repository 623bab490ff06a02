// SPDX-License-Identifier: MIT
#include "symbol/compressed.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h> // unpacks what zlib packed, in half of zlib's time
#include <lzma.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"

#ifndef ELFCOMPRESS_ZSTD // glibc 2.37
#define ELFCOMPRESS_ZSTD 2
#endif

enum {
    RATIO_MAX = 1 << 15,               // more than either packer reaches on anything but zeros
    XZ_MEMORY_MAX = 128 * 1024 * 1024, // for the dictionary
    XZ_BYTES_MAX = 256 * 1024 * 1024,  // of symbols only
};

static bool compressed_inflate_all(uint8_t *to, size_t to_len, const uint8_t *from, size_t from_len)
{
    struct libdeflate_decompressor *decompressor = gp_memory_had(libdeflate_alloc_decompressor());
    enum libdeflate_result result = LIBDEFLATE_BAD_DATA;
    if (decompressor != NULL) // without room for a length only that many bytes are right
        result = libdeflate_zlib_decompress(decompressor, from, from_len, to, to_len, NULL);
    libdeflate_free_decompressor(decompressor);
    return result == LIBDEFLATE_SUCCESS;
}

static bool compressed_unzstd_all(uint8_t *to, size_t to_len, const uint8_t *from, size_t from_len)
{
    size_t length = ZSTD_decompress(to, to_len, from, from_len);
    if (ZSTD_getErrorCode(length) == ZSTD_error_memory_allocation)
        gp_memory_had(NULL);
    return length == to_len;
}

// Unpack into memory of a size that the section claims.
static void *compressed_unpack_section(uint32_t type, uint64_t size, const uint8_t *packed, size_t packed_len)
{
    bool done = false;
    errno = ENOEXEC;
    if (size / RATIO_MAX > packed_len)
        return NULL;
    uint8_t *unpacked = gp_memory_whole(size + 1);
    if (unpacked == NULL)
        return NULL;
    if (type == ELFCOMPRESS_ZLIB)
        done = compressed_inflate_all(unpacked, size, packed, packed_len);
    else if (type == ELFCOMPRESS_ZSTD)
        done = compressed_unzstd_all(unpacked, size, packed, packed_len);
    if (done) {
        unpacked[size] = '\0';
        return unpacked;
    }
    free(unpacked);
    errno = ENOEXEC;
    return NULL;
}

void *gp_compressed_section(const void *bytes, size_t len, size_t *unpacked_len)
{
    Elf64_Chdr header;
    errno = ENOEXEC;
    if (len < sizeof(header))
        return NULL;
    memcpy(&header, bytes, sizeof(header));
    *unpacked_len = header.ch_size;
    return compressed_unpack_section(header.ch_type, header.ch_size, (const uint8_t *)bytes + sizeof(header),
                                     len - sizeof(header));
}

void *gp_compressed_old_section(const void *bytes, size_t len, size_t *unpacked_len)
{
    static const char magic[4] = "ZLIB";
    uint64_t size;
    errno = ENOEXEC;
    if (len < sizeof(magic) + sizeof(size) || memcmp(bytes, magic, sizeof(magic)) != 0)
        return NULL;
    memcpy(&size, (const char *)bytes + sizeof(magic), sizeof(size));
    *unpacked_len = be64toh(size);
    return compressed_unpack_section(ELFCOMPRESS_ZLIB, be64toh(size),
                                     (const uint8_t *)bytes + sizeof(magic) + sizeof(size),
                                     len - sizeof(magic) - sizeof(size));
}

// Unpack until the end of the stream; the buffer grows.
static bool compressed_unpack(lzma_stream *stream, uint8_t **buffer)
{
    size_t capacity = 0;
    lzma_ret state = LZMA_OK;
    while (state == LZMA_OK) {
        size_t larger = capacity ? capacity * 2 : 1 << 20;
        uint8_t *grown = larger <= XZ_BYTES_MAX ? gp_memory_had(realloc(*buffer, larger)) : NULL;
        if (grown == NULL)
            return false;
        *buffer = grown;
        stream->next_out = grown + stream->total_out;
        stream->avail_out = larger - (size_t)stream->total_out;
        capacity = larger;
        state = lzma_code(stream, LZMA_FINISH);
    }
    if (state == LZMA_MEM_ERROR)
        gp_memory_had(NULL);
    return state == LZMA_STREAM_END && stream->avail_out > 0;
}

void *gp_compressed_xz(const void *bytes, size_t len, size_t *unpacked_len)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    uint8_t *buffer = NULL;
    if (lzma_stream_decoder(&stream, XZ_MEMORY_MAX, 0) != LZMA_OK) {
        gp_memory_had(NULL);
        errno = ENOMEM;
        return NULL;
    }
    stream.next_in = bytes;
    stream.avail_in = len;
    if (compressed_unpack(&stream, &buffer)) {
        *unpacked_len = (size_t)stream.total_out;
        buffer[*unpacked_len] = '\0';
    } else {
        free(buffer);
        buffer = NULL;
        errno = ENOEXEC;
    }
    lzma_end(&stream);
    return buffer;
}
