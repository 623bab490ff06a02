// SPDX-License-Identifier: MIT
#include "symbol/eh_functions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"
#include "base/memory.h"

enum {
    EH_SDATA4 = 0x0b,
    EH_UDATA4 = 0x03,
    EH_PCREL = 0x10,
    EH_DATAREL = 0x30,
};

typedef struct eh_header {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frame;
    uint32_t count;
} eh_header_t;

typedef struct frames { // .eh_frame
    const uint8_t *bytes;
    size_t len;
    uint64_t address;
} frames_t;

static int32_t eh_functions_read_i32(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static size_t eh_functions_pointer_size(uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x02:
    case 0x0a:
        return 2;
    case 0x03:
    case 0x0b:
        return 4;
    default:
        return 8;
    }
}

static const uint8_t *eh_functions_skip_leb128(const uint8_t *at, const uint8_t *end)
{
    while (at < end && (*at & 0x80) != 0)
        at++;
    return at < end ? at + 1 : NULL;
}

// Behind the augmentation string of a CIE: alignments, return register, then a datum for each
// letter. Does 'R' say that addresses are sdata4, relative to their place?
static bool eh_functions_letters_say_pcrel(const uint8_t *at, const uint8_t *end, const char *letters)
{
    for (int i = 0; i < 4 && at != NULL; i++) // code and data alignment, return register, length of the data
        at = eh_functions_skip_leb128(at, end);
    for (; at != NULL && *letters != '\0'; letters++) {
        if (*letters == 'S' || *letters == 'B')
            continue;
        if (at >= end)
            return false;
        uint8_t encoding = *at++;
        if (*letters == 'R')
            return encoding == (EH_PCREL | EH_SDATA4);
        if (*letters == 'P')
            at += eh_functions_pointer_size(encoding);
        else if (*letters != 'L')
            return false;
    }
    return false;
}

static bool eh_functions_cie_is_pcrel(const frames_t *frames, size_t offset)
{
    if (offset + 10 > frames->len)
        return false;
    const uint8_t *cie = frames->bytes + offset;
    uint32_t len = (uint32_t)eh_functions_read_i32(cie);
    if (len > frames->len - offset - 4 || eh_functions_read_i32(cie + 4) != 0 || cie[8] != 1)
        return false;
    const uint8_t *end = cie + 4 + len;
    const char *letters = (const char *)cie + 9;
    size_t letters_len = strnlen(letters, (size_t)(end - (cie + 9)));
    if (letters[0] != 'z' || cie + 9 + letters_len >= end)
        return false;
    return eh_functions_letters_say_pcrel(cie + 9 + letters_len + 1, end, letters + 1);
}

// Read the FDE at `offset` of .eh_frame.
static bool eh_functions_read_function(const frames_t *frames, uint64_t offset, gp_eh_function_t *function)
{
    if (offset > frames->len || frames->len - offset < 16)
        return false;
    const uint8_t *fde = frames->bytes + offset;
    uint32_t cie = (uint32_t)eh_functions_read_i32(fde + 4); // back from its own place
    if (cie > offset + 4 || !eh_functions_cie_is_pcrel(frames, (size_t)(offset + 4 - cie)))
        return false;
    function->lo = frames->address + offset + 8 + (uint64_t)(int64_t)eh_functions_read_i32(fde + 8);
    function->hi = function->lo + (uint32_t)eh_functions_read_i32(fde + 12);
    return function->hi > function->lo;
}

static int eh_functions_compare_functions(const void *left, const void *right)
{
    const gp_eh_function_t *a = left, *b = right;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

// Go through the search table: (start, FDE) pairs.
static void eh_functions_read_table(gp_eh_functions_t *functions, const eh_header_t *header, const uint8_t *table,
                                    uint64_t table_base, const frames_t *frames)
{
    functions->items = gp_memory_had(calloc(header->count + 1u, sizeof(*functions->items)));
    for (uint32_t i = 0; i < header->count && functions->items != NULL; i++) {
        int32_t fde = eh_functions_read_i32(table + (size_t)i * 8 + 4);
        uint64_t offset = table_base + (uint64_t)(int64_t)fde - frames->address;
        if (eh_functions_read_function(frames, offset, &functions->items[functions->count]))
            functions->count++;
    }
    gp_sort(functions->items, functions->count, sizeof(*functions->items), eh_functions_compare_functions);
}

void gp_eh_functions_load(gp_eh_functions_t *functions, const gp_elf_t *elf)
{
    const Elf64_Shdr *section = gp_elf_section(elf, ".eh_frame_hdr");
    const Elf64_Shdr *frame = gp_elf_section(elf, ".eh_frame");
    size_t len = 0, frame_len = 0;
    uint8_t *bytes = section ? gp_elf_section_read(elf, section, &len) : NULL;
    uint8_t *frame_bytes = frame ? gp_elf_section_read(elf, frame, &frame_len) : NULL;
    eh_header_t header;
    if (bytes != NULL && frame_bytes != NULL && len >= sizeof(header)) {
        const frames_t frames = {frame_bytes, frame_len, frame->sh_addr};
        memcpy(&header, bytes, sizeof(header));
        if (header.version == 1 && header.frame_encoding == (EH_PCREL | EH_SDATA4) &&
            header.count_encoding == EH_UDATA4 && header.table_encoding == (EH_DATAREL | EH_SDATA4) &&
            header.count <= (len - sizeof(header)) / 8)
            eh_functions_read_table(functions, &header, bytes + sizeof(header), section->sh_addr, &frames);
    }
    free(bytes);
    free(frame_bytes);
}

// The number of functions that start at or below the address.
static size_t eh_functions_count_upto(const gp_eh_functions_t *functions, uint64_t address)
{
    size_t lo = 0, hi = functions->count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (functions->items[middle].lo <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

const gp_eh_function_t *gp_eh_functions_find(const gp_eh_functions_t *functions, uint64_t address)
{
    size_t upto = eh_functions_count_upto(functions, address);
    return upto > 0 && address < functions->items[upto - 1].hi ? &functions->items[upto - 1] : NULL;
}

uint64_t gp_eh_functions_limit(const gp_eh_functions_t *functions, uint64_t address, uint64_t end)
{
    size_t upto = eh_functions_count_upto(functions, address);
    uint64_t limit = end;
    if (upto < functions->count && functions->items[upto].lo < limit)
        limit = functions->items[upto].lo;
    if (upto > 0 && address < functions->items[upto - 1].hi && functions->items[upto - 1].hi < limit)
        limit = functions->items[upto - 1].hi;
    return limit;
}

void gp_eh_functions_free(gp_eh_functions_t *functions)
{
    free(functions->items);
    memset(functions, 0, sizeof(*functions));
}
