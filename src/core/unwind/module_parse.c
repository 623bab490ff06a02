// SPDX-License-Identifier: MIT
// Decode what a module's own headers say: segments, build id, .eh_frame_hdr.
#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/cursor.h"
#include "unwind/arch.h"
#include "unwind/module.h"

enum {
    FIRST_PAGE = 4096, // where linkers put ELF headers and the build-id note
    TABLE_ENCODING = GP_ENC_DATAREL | GP_ENC_SDATA4,
};

static const ElfW(Phdr) * module_parse_header_of(const gp_image_t *image, size_t i)
{
    return (const ElfW(Phdr) *)image->headers + i;
}

// The first PT_LOAD's page is where the mapping starts.
static uintptr_t module_parse_load_bias(const gp_image_t *image, uintptr_t lo)
{
    for (size_t i = 0; i < image->count; i++)
        if (module_parse_header_of(image, i)->p_type == PT_LOAD)
            return lo - (module_parse_header_of(image, i)->p_vaddr & ~(uintptr_t)(FIRST_PAGE - 1));
    return lo;
}

bool gp_module_image(const gp_location_t *where, gp_image_t *image)
{
    if (where->link_map == gp_program.link_map && where->link_map != NULL) {
        *image = gp_program.image;
        return true;
    }
    const ElfW(Ehdr) *ehdr = (const ElfW(Ehdr) *)where->lo;
    if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 || ehdr->e_phentsize != sizeof(ElfW(Phdr)) ||
        ehdr->e_phoff + ehdr->e_phnum * sizeof(ElfW(Phdr)) > FIRST_PAGE)
        return false;
    *image = (gp_image_t){.headers = (const ElfW(Phdr) *)(where->lo + ehdr->e_phoff), .count = ehdr->e_phnum};
    image->bias = module_parse_load_bias(image, where->lo);
    return true;
}

// End of the readable segment that holds `at`, or 0.
static uintptr_t module_parse_readable_end(const gp_image_t *image, uintptr_t at)
{
    for (size_t i = 0; i < image->count; i++) {
        const ElfW(Phdr) *phdr = module_parse_header_of(image, i);
        uintptr_t start = image->bias + phdr->p_vaddr;
        if (phdr->p_type == PT_LOAD && (phdr->p_flags & PF_R) && at >= start && at - start < phdr->p_memsz)
            return start + phdr->p_memsz;
    }
    return 0;
}

bool gp_module_reads(const gp_location_t *where, uintptr_t at, size_t len)
{
    gp_image_t image;
    uintptr_t end = gp_module_image(where, &image) ? module_parse_readable_end(&image, at) : 0;
    return end != 0 && end - at >= len;
}

static void module_parse_text(gp_unwind_module_t *module, const gp_image_t *image, uintptr_t pc)
{
    for (size_t i = 0; i < image->count; i++) {
        const ElfW(Phdr) *phdr = module_parse_header_of(image, i);
        uintptr_t start = image->bias + phdr->p_vaddr, end = start + phdr->p_memsz;
        // Code that cannot be read cannot be checked for calls: treat it as no code of ours.
        if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) || !(phdr->p_flags & PF_R))
            continue;
        module->has_more_text = module->text_hi != 0;
        if (module->text_hi != 0 && (pc < start || pc >= end))
            continue;
        module->text_lo = start;
        module->text_hi = end;
    }
}

static void module_parse_build_id(gp_unwind_module_t *module, const ElfW(Nhdr) * note, size_t len)
{
    while (len >= sizeof *note) {
        size_t name = (note->n_namesz + 3u) & ~3u, desc = (note->n_descsz + 3u) & ~3u;
        size_t size = sizeof *note + name + desc;
        if (size > len)
            return;
        const uint8_t *body = (const uint8_t *)(note + 1) + name;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz >= GP_MODULE_ID_BYTES) {
            module->id_at = body;
            memcpy(module->id, body, GP_MODULE_ID_BYTES);
            return;
        }
        note = (const ElfW(Nhdr) *)(body + desc);
        len -= size;
    }
}

static void module_parse_notes(gp_unwind_module_t *module, const gp_image_t *image)
{
    for (size_t i = 0; i < image->count && module->id_at == NULL; i++) {
        const ElfW(Phdr) *phdr = module_parse_header_of(image, i);
        uintptr_t start = image->bias + phdr->p_vaddr;
        if (phdr->p_type == PT_NOTE && start >= module->where.lo &&
            start - module->where.lo + phdr->p_filesz <= FIRST_PAGE)
            module_parse_build_id(module, (const ElfW(Nhdr) *)start, phdr->p_filesz);
    }
}

// Source: LSB Core, ".eh_frame_hdr Section".
static bool module_parse_eh_frame_hdr(gp_eh_index_t *eh, const uint8_t *hdr, const uint8_t *end)
{
    gp_cursor_t r = gp_cursor_over(hdr, end);
    uint8_t version = gp_read_u8(&r);
    uint8_t frame_encoding = gp_read_u8(&r);
    uint8_t count_encoding = gp_read_u8(&r);
    uint8_t table_encoding = gp_read_u8(&r);
    if (r.bad || version != 1 || frame_encoding == GP_ENC_OMIT)
        return false;
    eh->hdr = hdr;
    eh->eh_frame = (const uint8_t *)gp_read_encoded(&r, frame_encoding, (uintptr_t)hdr, 0);
    uint64_t count = 0;
    if (count_encoding != GP_ENC_OMIT && table_encoding == TABLE_ENCODING)
        count = gp_read_encoded(&r, count_encoding, (uintptr_t)hdr, 0);
    if (!r.bad && count > 0 && count <= (uint64_t)(r.end - r.pos) / 8) {
        eh->table = r.pos;
        eh->count = (uint32_t)count;
    }
    return true;
}

bool gp_module_parse(const gp_location_t *where, uintptr_t pc, gp_unwind_module_t *module)
{
    gp_image_t image;
    memset(module, 0, sizeof *module);
    module->where = *where;
    if (!gp_module_image(where, &image))
        return false;
    module_parse_text(module, &image, pc);
    module->fixed = gp_module_is_fixed(where->link_map);
    if (!module->fixed)
        module_parse_notes(module, &image);
    uintptr_t hdr_end = module_parse_readable_end(&image, (uintptr_t)where->hdr);
    if (where->hdr != NULL && hdr_end != 0 &&
        module_parse_eh_frame_hdr(&module->eh, where->hdr, (const uint8_t *)hdr_end))
        module->eh.eh_end = (const uint8_t *)module_parse_readable_end(&image, (uintptr_t)module->eh.eh_frame);
    return true;
}
