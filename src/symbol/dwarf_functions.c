#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, ORIGIN_HOPS_MAX = 4 };

typedef struct walk {
    gp_dwarf_t *dwarf;
    const gp_dwarf_files_t *files;
    uint64_t unit_base;
    gp_dwarf_function_t *functions;
    size_t count, capacity;
    gp_dwarf_function_t current; // what the ranges that are visited belong to
} walk_t;

static bool attribute_number(gp_dwarf_t *dwarf, Dwarf_Die die, Dwarf_Half name, uint64_t *number)
{
    Dwarf_Attribute attribute = NULL;
    Dwarf_Unsigned value = 0;
    Dwarf_Signed value_signed = 0;
    Dwarf_Error error = NULL;

    if (dwarf_attr(die, name, &attribute, &error) != DW_DLV_OK) {
        gp_dwarf_error(dwarf, error);
        return false;
    }
    int got = dwarf_formudata(attribute, &value, &error);
    if (got != DW_DLV_OK) { // DW_FORM_implicit_const is signed
        gp_dwarf_error(dwarf, error);
        error = NULL;
        got = dwarf_formsdata(attribute, &value_signed, &error);
        value = (Dwarf_Unsigned)value_signed;
    }
    if (got != DW_DLV_OK)
        gp_dwarf_error(dwarf, error);
    dwarf_dealloc(dwarf->debug, attribute, DW_DLA_ATTR);
    *number = value;
    return got == DW_DLV_OK;
}

// The DIE that an out-of-line instance or a definition refers to for what it does not say itself;
// NULL when none.
static Dwarf_Die origin_of(gp_dwarf_t *dwarf, Dwarf_Die die)
{
    static const Dwarf_Half links[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Die origin = NULL;

    for (size_t i = 0; i < 2 && origin == NULL; i++) {
        Dwarf_Attribute attribute = NULL;
        Dwarf_Off offset = 0;
        Dwarf_Error error = NULL;
        Dwarf_Half form = 0;
        if (dwarf_attr(die, links[i], &attribute, &error) != DW_DLV_OK) {
            gp_dwarf_error(dwarf, error);
            continue;
        }
        // Not into the supplementary file of dwz: its offsets are another file's.
        if (dwarf_whatform(attribute, &form, &error) == DW_DLV_OK && form != DW_FORM_GNU_ref_alt &&
            form != DW_FORM_ref_sup4 && form != DW_FORM_ref_sup8 &&
            dwarf_global_formref(attribute, &offset, &error) == DW_DLV_OK &&
            dwarf_offdie_b(dwarf->debug, offset, 1, &origin, &error) != DW_DLV_OK)
            origin = NULL;
        gp_dwarf_error(dwarf, error);
        dwarf_dealloc(dwarf->debug, attribute, DW_DLA_ATTR);
    }
    return origin;
}

// Where a function is defined: its own attributes, else those of what it refers to.
static void read_declaration(walk_t *walk, Dwarf_Die die)
{
    uint64_t file = 0, line = 0;
    Dwarf_Die at = die;

    walk->current.file = GP_DWARF_NO_FILE;
    walk->current.line = 0;
    for (int hops = 0; at != NULL && hops < ORIGIN_HOPS_MAX; hops++) {
        if (walk->current.line == 0 && attribute_number(walk->dwarf, at, DW_AT_decl_line, &line) &&
            line <= UINT32_MAX)
            walk->current.line = (uint32_t)line;
        if (walk->current.file == GP_DWARF_NO_FILE &&
            attribute_number(walk->dwarf, at, DW_AT_decl_file, &file))
            walk->current.file = gp_dwarf_files_number(walk->files, file);
        Dwarf_Die next = NULL;
        if (walk->current.line == 0 || walk->current.file == GP_DWARF_NO_FILE)
            next = origin_of(walk->dwarf, at);
        if (at != die)
            dwarf_dealloc(walk->dwarf->debug, at, DW_DLA_DIE);
        at = next;
    }
    if (at != NULL && at != die)
        dwarf_dealloc(walk->dwarf->debug, at, DW_DLA_DIE);
}

static int add_function(void *context, uint64_t lo, uint64_t hi)
{
    walk_t *walk = context;

    if (gp_grow(&walk->functions, &walk->capacity, walk->count, sizeof(*walk->functions)) < 0)
        return -ENOMEM;
    walk->functions[walk->count] = walk->current;
    walk->functions[walk->count].lo = lo;
    walk->functions[walk->count++].hi = hi;
    return 0;
}

// Can there be functions with code below a DIE of this kind?
static bool may_hold_functions(Dwarf_Half tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_module ||
           tag == DW_TAG_lexical_block;
}

static int walk_children(walk_t *walk, Dwarf_Die die, uint32_t depth);

static int walk_die(walk_t *walk, Dwarf_Die die, uint32_t depth)
{
    Dwarf_Half tag = 0;
    int result = 0;

    if (dwarf_tag(die, &tag, NULL) != DW_DLV_OK || !may_hold_functions(tag))
        return 0;
    if (tag == DW_TAG_subprogram) {
        size_t before = walk->count;
        walk->current.depth = depth;
        result = gp_dwarf_ranges(walk->dwarf, die, walk->unit_base, add_function, walk);
        if (walk->count > before) { // read only where there is code
            read_declaration(walk, die);
            for (size_t i = before; i < walk->count; i++) {
                walk->functions[i].file = walk->current.file;
                walk->functions[i].line = walk->current.line;
            }
        }
    }
    return result == 0 ? walk_children(walk, die, depth + 1) : result;
}

static int walk_children(walk_t *walk, Dwarf_Die die, uint32_t depth)
{
    Dwarf_Die child = NULL, next = NULL;
    Dwarf_Error error = NULL;
    int result = 0;

    if (depth > DEPTH_MAX || dwarf_child(die, &child, &error) != DW_DLV_OK) {
        gp_dwarf_error(walk->dwarf, error);
        return 0;
    }
    while (child != NULL) {
        if (result == 0)
            result = walk_die(walk, child, depth);
        if (result < 0 ||
            dwarf_siblingof_b(walk->dwarf->debug, child, 1, &next, &error) != DW_DLV_OK) {
            gp_dwarf_error(walk->dwarf, error);
            next = NULL;
        }
        dwarf_dealloc(walk->dwarf->debug, child, DW_DLA_DIE);
        child = next;
        next = NULL;
        error = NULL;
    }
    return result;
}

static int compare_functions(const void *left, const void *right)
{
    const gp_dwarf_function_t *a = left, *b = right;

    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

int gp_dwarf_functions_load(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit, Dwarf_Die die,
                            const gp_dwarf_files_t *files)
{
    walk_t walk = {.dwarf = dwarf, .files = files, .unit_base = gp_dwarf_low_pc(die)};
    int result = walk_children(&walk, die, 0);

    if (walk.count > 0)
        qsort(walk.functions, walk.count, sizeof(*walk.functions), compare_functions);
    unit->functions = walk.functions;
    unit->function_count = walk.count;
    return result;
}
