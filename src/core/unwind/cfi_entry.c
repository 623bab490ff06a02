// SPDX-License-Identifier: MIT
// Decode CIEs and FDEs.
#include <string.h>

#include "base/cursor.h"
#include "unwind/cfi.h"

// Read the initial length. Returns the entry's end, or NULL. `*wide` tells 64-bit DWARF.
static const uint8_t *cfi_entry_read_length(gp_cursor_t *r, bool *wide)
{
    uint64_t len = gp_read_uint(r, 4);
    *wide = len == 0xffffffffu;
    if (*wide)
        len = gp_read_uint(r, 8);
    if (r->bad || len == 0 || len > (uint64_t)(r->end - r->pos))
        return NULL;
    return r->pos + len;
}

static bool cfi_entry_read_augmentation(gp_cursor_t *r, const char *letters, gp_cie_t *cie)
{
    uint64_t len = gp_read_uleb(r);
    if (r->bad || len > (uint64_t)(r->end - r->pos))
        return false;
    gp_cursor_t data = gp_cursor_over(r->pos, r->pos + len);
    for (const char *letter = letters; *letter != '\0'; letter++) {
        switch (*letter) {
        case 'R':
            cie->fde_encoding = gp_read_u8(&data);
            break;
        case 'P':
            (void)gp_read_format(&data, gp_read_u8(&data));
            break;
        case 'L':
            (void)gp_read_u8(&data);
            break;
        case 'S':
            cie->signal_frame = true;
            break;
        case 'B': // aarch64: signed with the B key; stripped all the same
        case 'G': // aarch64: memory tagging
            break;
        default: // unknown: 'z' tells how much to skip, but 'R' may follow
            return false;
        }
    }
    gp_cursor_skip(r, len);
    return !data.bad;
}

static bool cfi_entry_read_cie_body(gp_cursor_t *r, gp_cie_t *cie)
{
    uint8_t version = gp_read_u8(r);
    const char *augmentation = (const char *)r->pos;
    while (gp_read_u8(r) != 0) {
    }
    if (r->bad || (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4 && (gp_read_u8(r) != sizeof(uintptr_t) || gp_read_u8(r) != 0))
        return false;
    cie->fde_encoding = GP_ENC_ABSPTR;
    cie->code_align = gp_read_uleb(r);
    cie->data_align = gp_read_sleb(r);
    uint64_t ra = version == 1 ? gp_read_u8(r) : gp_read_uleb(r);
    if (r->bad || ra >= GP_REG_COUNT)
        return false;
    cie->ra_reg = (uint8_t)ra;
    cie->augmented = augmentation[0] == 'z';
    if (cie->augmented)
        return cfi_entry_read_augmentation(r, augmentation + 1, cie);
    return augmentation[0] == '\0'; // without 'z' nothing tells how long the rest is
}

static bool cfi_entry_decode_cie(const gp_cfi_section_t *section, const uint8_t *at, gp_cie_t *cie)
{
    gp_cursor_t r = gp_cursor_over(at, section->end);
    bool wide;
    const uint8_t *end = cfi_entry_read_length(&r, &wide);
    if (at < section->start || end == NULL)
        return false;
    r.end = end;
    uint64_t id = gp_read_uint(&r, wide ? 8 : 4);
    uint64_t want = !section->debug_frame ? 0 : wide ? ~(uint64_t)0 : 0xffffffffu;
    memset(cie, 0, sizeof *cie);
    if (id != want || !cfi_entry_read_cie_body(&r, cie) || r.bad)
        return false;
    cie->insns = r.pos;
    cie->insns_end = end;
    return true;
}

// The CIE of the entry with its CIE pointer at `field`, or NULL when the entry is a CIE itself.
static const uint8_t *cfi_entry_cie_of(const gp_cfi_section_t *section, const uint8_t *field, uint64_t value, bool wide)
{
    if (section->debug_frame) {
        uint64_t none = wide ? ~(uint64_t)0 : 0xffffffffu;
        uint64_t len = (uint64_t)(section->end - section->start);
        return value == none || value >= len ? NULL : section->start + value;
    }
    return value == 0 || value > (uint64_t)(field - section->start) ? NULL : field - value;
}

static bool cfi_entry_read_fde_body(const gp_cfi_section_t *section, gp_cursor_t *r, gp_fde_t *fde)
{
    uint8_t encoding = fde->cie.fde_encoding;
    fde->start = (uintptr_t)gp_read_encoded(r, encoding, section->data_base, section->bias);
    uintptr_t len = (uintptr_t)gp_read_format(r, encoding & 0x0f);
    fde->end = fde->start + len;
    if (fde->cie.augmented)
        gp_cursor_skip(r, gp_read_uleb(r));
    fde->insns = r->pos;
    fde->insns_end = r->end;
    return !r->bad && fde->end > fde->start;
}

bool gp_cfi_decode(const gp_cfi_section_t *section, const uint8_t *at, gp_fde_t *fde, const uint8_t **next)
{
    *next = NULL;
    if (at < section->start || at >= section->end)
        return false;
    gp_cursor_t r = gp_cursor_over(at, section->end);
    bool wide;
    const uint8_t *end = cfi_entry_read_length(&r, &wide);
    if (end == NULL)
        return false;
    *next = end;
    r.end = end;
    const uint8_t *field = r.pos;
    uint64_t id = gp_read_uint(&r, wide ? 8 : 4);
    const uint8_t *cie = cfi_entry_cie_of(section, field, id, wide);
    fde->base = at;
    return !r.bad && cie != NULL && cfi_entry_decode_cie(section, cie, &fde->cie) &&
           cfi_entry_read_fde_body(section, &r, fde);
}
