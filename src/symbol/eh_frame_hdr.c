#include "symbol/eh_frame_hdr.h"

#include <stdlib.h>
#include <string.h>

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

void gp_eh_starts_load(gp_eh_starts_t *starts, const gp_elf_t *elf)
{
    const Elf64_Shdr *section = gp_elf_section(elf, ".eh_frame_hdr");
    size_t len = 0;
    uint8_t *bytes = section ? gp_elf_section_read(elf, section, &len) : NULL;
    eh_header_t header;

    if (bytes == NULL || len < sizeof(header))
        goto out;
    memcpy(&header, bytes, sizeof(header));
    if (header.version != 1 || header.frame_encoding != (EH_PCREL | EH_SDATA4) ||
        header.count_encoding != EH_UDATA4 || header.table_encoding != (EH_DATAREL | EH_SDATA4) ||
        header.count > (len - sizeof(header)) / 8)
        goto out;
    starts->starts = calloc(header.count + 1u, sizeof(*starts->starts));
    if (starts->starts == NULL)
        goto out;
    for (uint32_t i = 0; i < header.count; i++) {
        int32_t relative;
        memcpy(&relative, bytes + sizeof(header) + (size_t)i * 8, sizeof(relative));
        starts->starts[i] = section->sh_addr + (uint64_t)(int64_t)relative;
    }
    starts->count = header.count;
out:
    free(bytes);
}

uint64_t gp_eh_starts_next(const gp_eh_starts_t *starts, uint64_t address, uint64_t end)
{
    size_t lo = 0, hi = starts->count;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (starts->starts[middle] <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < starts->count && starts->starts[lo] < end ? starts->starts[lo] : end;
}

void gp_eh_starts_free(gp_eh_starts_t *starts)
{
    free(starts->starts);
    memset(starts, 0, sizeof(*starts));
}
