#include "symbol/dwarf_unit.h"

typedef struct ranges {
    gp_dwarf_t *dwarf;
    gp_dwarf_range_visit_t visit;
    void *context;
} ranges_t;

// Linkers resolve addresses of discarded code to 0 or 1, or to the highest address.
static int visit_range(const ranges_t *ranges, uint64_t lo, uint64_t hi)
{
    if (lo <= 1 || hi <= lo || lo >= UINT64_MAX - 1)
        return 0;
    return ranges->visit(ranges->context, lo, hi);
}

uint64_t gp_dwarf_low_pc(Dwarf_Die die)
{
    Dwarf_Addr lo = 0;

    return dwarf_lowpc(die, &lo, NULL) == DW_DLV_OK ? lo : 0;
}

static int visit_low_high(const ranges_t *ranges, Dwarf_Die die)
{
    Dwarf_Addr lo = 0, hi = 0;
    Dwarf_Half form = 0;
    enum Dwarf_Form_Class class = DW_FORM_CLASS_UNKNOWN;
    Dwarf_Error error = NULL;

    if (dwarf_lowpc(die, &lo, &error) != DW_DLV_OK ||
        dwarf_highpc_b(die, &hi, &form, &class, &error) != DW_DLV_OK) {
        gp_dwarf_error(ranges->dwarf, error);
        return 0;
    }
    return visit_range(ranges, lo, class == DW_FORM_CLASS_CONSTANT ? lo + hi : hi);
}

// .debug_ranges, DWARF 2-4.
static int visit_old_list(const ranges_t *ranges, Dwarf_Die die, Dwarf_Off offset, uint64_t base)
{
    Dwarf_Debug debug = ranges->dwarf->debug;
    Dwarf_Ranges *list = NULL;
    Dwarf_Signed count = 0;
    Dwarf_Off real = 0;
    Dwarf_Error error = NULL;
    int result = 0;

    if (dwarf_get_ranges_b(debug, offset, die, &real, &list, &count, NULL, &error) != DW_DLV_OK) {
        gp_dwarf_error(ranges->dwarf, error);
        return 0;
    }
    for (Dwarf_Signed i = 0; i < count && result == 0; i++) {
        if (list[i].dwr_type == DW_RANGES_ADDRESS_SELECTION)
            base = list[i].dwr_addr2;
        else if (list[i].dwr_type == DW_RANGES_ENTRY)
            result = visit_range(ranges, base + list[i].dwr_addr1, base + list[i].dwr_addr2);
    }
    dwarf_ranges_dealloc(debug, list, count);
    return result;
}

// .debug_rnglists, DWARF 5. libdwarf has already applied base addresses ("cooked").
static int visit_new_list(const ranges_t *ranges, Dwarf_Attribute attribute, Dwarf_Half form,
                          Dwarf_Unsigned where)
{
    Dwarf_Rnglists_Head head = NULL;
    Dwarf_Unsigned count = 0, global = 0;
    Dwarf_Error error = NULL;
    int result = 0;

    if (dwarf_rnglists_get_rle_head(attribute, form, where, &head, &count, &global, &error) !=
        DW_DLV_OK) {
        gp_dwarf_error(ranges->dwarf, error);
        return 0;
    }
    for (Dwarf_Unsigned i = 0; i < count && result == 0; i++) {
        unsigned len = 0, kind = 0;
        Dwarf_Unsigned raw1, raw2, lo = 0, hi = 0;
        Dwarf_Bool unavailable = 0;
        if (dwarf_get_rnglists_entry_fields_a(head, i, &len, &kind, &raw1, &raw2, &unavailable, &lo,
                                              &hi, &error) != DW_DLV_OK) {
            gp_dwarf_error(ranges->dwarf, error);
            break;
        }
        if (kind == DW_RLE_end_of_list)
            break;
        if (kind != DW_RLE_base_address && kind != DW_RLE_base_addressx && !unavailable)
            result = visit_range(ranges, lo, hi);
    }
    dwarf_dealloc_rnglists_head(head);
    return result;
}

int gp_dwarf_ranges(gp_dwarf_t *dwarf, Dwarf_Die die, uint64_t unit_base,
                    gp_dwarf_range_visit_t visit, void *context)
{
    const ranges_t ranges = {dwarf, visit, context};
    Dwarf_Attribute attribute = NULL;
    Dwarf_Half form = 0, version = 0, offset_size = 0;
    Dwarf_Unsigned where = 0;
    Dwarf_Error error = NULL;
    int result = 0;

    if (dwarf_attr(die, DW_AT_ranges, &attribute, &error) != DW_DLV_OK) {
        gp_dwarf_error(dwarf, error);
        return visit_low_high(&ranges, die);
    }
    dwarf_get_version_of_die(die, &version, &offset_size);
    if (dwarf_whatform(attribute, &form, &error) == DW_DLV_OK) {
        bool indexed = form == DW_FORM_rnglistx;
        int got = indexed ? dwarf_formudata(attribute, &where, &error)
                          : dwarf_global_formref(attribute, &where, &error);
        if (got != DW_DLV_OK)
            gp_dwarf_error(dwarf, error);
        else if (version >= 5)
            result = visit_new_list(&ranges, attribute, form, where);
        else
            result = visit_old_list(&ranges, die, where, unit_base);
    }
    dwarf_dealloc(dwarf->debug, attribute, DW_DLA_ATTR);
    return result;
}
