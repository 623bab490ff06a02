// SPDX-License-Identifier: MIT
#include "libdwarf_reader.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libdwarf/dwarf.h>
#include <libdwarf/libdwarf.h>

enum { HOPS_MAX = 8 };

typedef struct unit {
    Dwarf_Off die; // of the unit itself
    const char **files;
    size_t file_count;
    unsigned first_file; // its number
} unit_t;

typedef struct title { // of a function, by its DIE
    Dwarf_Off die;
    const char *name, *file;
    uint32_t line;
} title_t;

typedef struct reading {
    Dwarf_Debug dbg;
    oracle_t *oracle;
    unit_t *units;
    size_t unit_count;
    const unit_t *unit; // that is read
    uint64_t base;      // its lowest address: ranges count from there
    size_t function_count;
    void *titles; // of tsearch()
} reading_t;

static void *grown(void *items, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) // room is always a power of two
        return items;
    items = realloc(items, (count > 0 ? count * 2 : 1) * size);
    if (items == NULL)
        abort();
    return items;
}

// --- attributes

static bool attribute(Dwarf_Die die, Dwarf_Half name, Dwarf_Attribute *found)
{
    Dwarf_Error error;
    return dwarf_attr(die, name, found, &error) == DW_DLV_OK;
}

static uint64_t number_of(Dwarf_Die die, Dwarf_Half name, uint64_t otherwise)
{
    Dwarf_Attribute found;
    Dwarf_Unsigned number = 0;
    Dwarf_Signed implicit = 0; // DW_FORM_implicit_const counts as signed
    Dwarf_Error error;
    if (!attribute(die, name, &found))
        return otherwise;
    bool is_unsigned = dwarf_formudata(found, &number, &error) == DW_DLV_OK;
    bool is_signed = !is_unsigned && dwarf_formsdata(found, &implicit, &error) == DW_DLV_OK;
    dwarf_dealloc_attribute(found);
    return is_unsigned ? number : is_signed ? (uint64_t)implicit : otherwise;
}

static const char *text_of(Dwarf_Die die, Dwarf_Half name)
{
    Dwarf_Attribute found;
    Dwarf_Error error;
    char *text = NULL;
    if (!attribute(die, name, &found))
        return NULL;
    int result = dwarf_formstring(found, &text, &error);
    dwarf_dealloc_attribute(found);
    return result == DW_DLV_OK ? text : NULL;
}

static bool reference_of(Dwarf_Die die, Dwarf_Half name, Dwarf_Off *offset)
{
    Dwarf_Attribute found;
    Dwarf_Error error;
    if (!attribute(die, name, &found))
        return false;
    int result = dwarf_global_formref(found, offset, &error);
    dwarf_dealloc_attribute(found);
    return result == DW_DLV_OK;
}

// --- files

// Take ".", "x/.." and "//" out of a path: the reader does, so that one file has one name.
static char *normal(const char *path)
{
    char *copy = strdup(path), *result = calloc(1, strlen(path) + 2), *save = NULL;
    size_t len = 0;
    if (path[0] == '/')
        result[len++] = '/';
    size_t root = len;
    for (char *part = strtok_r(copy, "/", &save); part != NULL; part = strtok_r(NULL, "/", &save)) {
        char *slash = strrchr(result + root, '/'), *last = slash ? slash + 1 : result + root;
        if (strcmp(part, ".") == 0 || (strcmp(part, "..") == 0 && len == root && root == 1))
            continue;
        if (strcmp(part, "..") == 0 && len > root && strcmp(last, "..") != 0)
            len = (size_t)(last - result) - (last > result + root);
        else
            len += (size_t)sprintf(result + len, "%s%s", len > root ? "/" : "", part);
        result[len] = '\0';
    }
    free(copy);
    return result;
}

// In DWARF 5 directory 0 is where the compiler ran, before it is the unit's; other directories start from there.
static const char *directory(const unit_t *unit, Dwarf_Line_Context context, Dwarf_Unsigned number, const char **start)
{
    const char *name = NULL;
    Dwarf_Error error;
    if (dwarf_srclines_comp_dir(context, start, &error) != DW_DLV_OK)
        *start = NULL;
    if (unit->first_file == 0)
        dwarf_srclines_include_dir_data(context, 0, start, &error);
    if (number > 0)
        dwarf_srclines_include_dir_data(context, (Dwarf_Signed)number, &name, &error);
    return name;
}

static const char *whole_name(const unit_t *unit, Dwarf_Line_Context context, const char *name, Dwarf_Unsigned number)
{
    const char *start, *inner = directory(unit, context, number, &start);
    char *path;
    if (name[0] == '/')
        return normal(name);
    if (start == NULL || (inner != NULL && inner[0] == '/'))
        start = "";
    if (asprintf(&path, "%s%s%s%s%s", start, start[0] ? "/" : "", inner ? inner : "", inner ? "/" : "", name) < 0)
        abort();
    char *result = normal(path);
    free(path);
    return result;
}

static void read_files(unit_t *unit, Dwarf_Line_Context context, unsigned version)
{
    Dwarf_Signed first, count, end;
    Dwarf_Unsigned number, changed, len;
    const char *name;
    Dwarf_Error error;
    if (dwarf_srclines_files_indexes(context, &first, &count, &end, &error) != DW_DLV_OK)
        return;
    unit->files = calloc((size_t)count + 1, sizeof(*unit->files));
    unit->file_count = (size_t)count;
    unit->first_file = version >= 5 ? 0 : 1;
    for (Dwarf_Signed i = first; i < end; i++)
        if (dwarf_srclines_files_data_b(context, i, &name, &number, &changed, &len, NULL, &error) == DW_DLV_OK)
            unit->files[i - first] = whole_name(unit, context, name, number);
}

static const char *file_name(const unit_t *unit, uint64_t number)
{
    return number - unit->first_file < unit->file_count ? unit->files[number - unit->first_file] : NULL;
}

// --- lines

static oracle_row_t read_row(const unit_t *unit, Dwarf_Line line, bool *ends)
{
    Dwarf_Addr address = 0;
    Dwarf_Unsigned number = 0, file = 0;
    Dwarf_Bool end = 0;
    Dwarf_Error error;
    if (dwarf_lineaddr(line, &address, &error) != DW_DLV_OK || dwarf_lineno(line, &number, &error) != DW_DLV_OK ||
        dwarf_line_srcfileno(line, &file, &error) != DW_DLV_OK ||
        dwarf_lineendsequence(line, &end, &error) != DW_DLV_OK)
        abort();
    *ends = end;
    if (end)
        return (oracle_row_t){.address = address};
    return (oracle_row_t){address, file_name(unit, file), file == 0 ? file_name(unit, 1) : NULL, (uint32_t)number};
}

// The last of several rows at one address is in force. Code thrown away by the linker lies at address 0 or 1.
static void read_rows(oracle_t *oracle, const unit_t *unit, Dwarf_Line *lines, Dwarf_Signed count)
{
    size_t sequence = oracle->row_count, read = 0;
    bool ends;
    for (Dwarf_Signed i = 0; i < count; i++, read += !ends) {
        oracle_row_t row = read_row(unit, lines[i], &ends);
        if (oracle->row_count > sequence && oracle->rows[oracle->row_count - 1].address == row.address) {
            oracle->row_count--;
            oracle->rows_empty++;
        }
        oracle->rows = grown(oracle->rows, oracle->row_count, sizeof(*oracle->rows));
        oracle->rows[oracle->row_count++] = row;
        if (ends && oracle->rows[sequence].address <= 1) {
            oracle->rows_discarded += oracle->row_count - sequence - 1;
            oracle->row_count = sequence;
        }
        if (ends)
            sequence = oracle->row_count;
    }
    oracle->rows_read += read;
}

static void read_lines(reading_t *reading, unit_t *unit, Dwarf_Die die)
{
    Dwarf_Unsigned version;
    Dwarf_Small tables;
    Dwarf_Line_Context context;
    Dwarf_Line *lines;
    Dwarf_Signed count;
    Dwarf_Error error;
    if (dwarf_srclines_b(die, &version, &tables, &context, &error) != DW_DLV_OK)
        return;
    read_files(unit, context, (unsigned)version);
    if (dwarf_srclines_from_linecontext(context, &lines, &count, &error) == DW_DLV_OK)
        read_rows(reading->oracle, unit, lines, count);
    dwarf_srclines_dealloc_b(context);
}

// --- functions

static int compare_titles(const void *left, const void *right)
{
    Dwarf_Off a = ((const title_t *)left)->die, b = ((const title_t *)right)->die;
    return a < b ? -1 : a > b;
}

static const unit_t *unit_of(const reading_t *reading, Dwarf_Die die)
{
    Dwarf_Off offset;
    Dwarf_Error error;
    if (dwarf_CU_dieoffset_given_die(die, &offset, &error) != DW_DLV_OK)
        abort();
    size_t low = 0, high = reading->unit_count;
    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        *(reading->units[middle].die <= offset ? &low : &high) = middle;
    }
    return &reading->units[low];
}

// The DIE's own attributes, then those of DIEs it refers to: its abstract instance, its declaration.
static void read_title(const reading_t *reading, title_t *title)
{
    const char *linkage = NULL, *plain = NULL;
    Dwarf_Off at = title->die;
    Dwarf_Die die;
    Dwarf_Error error;
    bool more = true;
    for (int hops = 0; more && hops < HOPS_MAX && dwarf_offdie_b(reading->dbg, at, 1, &die, &error) == DW_DLV_OK;
         hops++) {
        linkage = linkage ? linkage : text_of(die, DW_AT_linkage_name);
        plain = plain ? plain : text_of(die, DW_AT_name);
        uint64_t file = number_of(die, DW_AT_decl_file, UINT64_MAX);
        if (title->file == NULL && file != UINT64_MAX)
            title->file = file_name(unit_of(reading, die), file);
        title->line = title->line ? title->line : (uint32_t)number_of(die, DW_AT_decl_line, 0);
        more = reference_of(die, DW_AT_abstract_origin, &at) || reference_of(die, DW_AT_specification, &at);
        dwarf_dealloc_die(die);
    }
    title->name = linkage ? linkage : plain;
}

static const title_t *title_of(reading_t *reading, Dwarf_Off die)
{
    title_t key = {.die = die};
    title_t **found = tfind(&key, &reading->titles, compare_titles);
    if (found != NULL)
        return *found;
    title_t *title = calloc(1, sizeof(*title));
    title->die = die;
    read_title(reading, title);
    tsearch(title, &reading->titles, compare_titles);
    return title;
}

static void append(oracle_range_t **ranges, size_t *count, oracle_range_t range)
{
    *ranges = grown(*ranges, *count, sizeof(**ranges));
    (*ranges)[(*count)++] = range;
}

// A range of a function, or of the unit where `function` is NULL.
static void add_range(oracle_t *oracle, uint64_t lo, uint64_t hi, const oracle_function_t *function)
{
    if (lo >= hi || lo <= 1)
        return;
    if (function == NULL)
        append(&oracle->units, &oracle->unit_count, (oracle_range_t){lo, hi, NULL});
    else
        append(&oracle->ranges, &oracle->range_count, (oracle_range_t){lo, hi, function});
    oracle->inlined_count += function != NULL && function->outer != NULL;
}

static void add_ranges_5(const reading_t *reading, Dwarf_Attribute list, const oracle_function_t *function)
{
    Dwarf_Half form;
    Dwarf_Unsigned at = 0, count, global, raw1, raw2, lo, hi;
    Dwarf_Rnglists_Head head;
    Dwarf_Bool unavailable;
    Dwarf_Error error;
    unsigned len, kind;
    if (dwarf_whatform(list, &form, &error) != DW_DLV_OK ||
        (form == DW_FORM_rnglistx ? dwarf_formudata(list, &at, &error) : dwarf_global_formref(list, &at, &error)) !=
            DW_DLV_OK ||
        dwarf_rnglists_get_rle_head(list, form, at, &head, &count, &global, &error) != DW_DLV_OK)
        return;
    for (Dwarf_Unsigned i = 0; i < count; i++)
        if (dwarf_get_rnglists_entry_fields_a(head, i, &len, &kind, &raw1, &raw2, &unavailable, &lo, &hi, &error) ==
                DW_DLV_OK &&
            kind != DW_RLE_end_of_list && kind != DW_RLE_base_address && kind != DW_RLE_base_addressx)
            add_range(reading->oracle, lo, hi, function);
    dwarf_dealloc_rnglists_head(head);
}

static void add_ranges_4(const reading_t *reading, Dwarf_Die die, Dwarf_Attribute list,
                         const oracle_function_t *function)
{
    Dwarf_Ranges *ranges;
    Dwarf_Signed count;
    Dwarf_Unsigned bytes;
    Dwarf_Off at, real;
    Dwarf_Error error;
    uint64_t base = reading->base;
    if (dwarf_global_formref(list, &at, &error) != DW_DLV_OK ||
        dwarf_get_ranges_b(reading->dbg, at, die, &real, &ranges, &count, &bytes, &error) != DW_DLV_OK)
        return;
    for (Dwarf_Signed i = 0; i < count && ranges[i].dwr_type != DW_RANGES_END; i++)
        if (ranges[i].dwr_type == DW_RANGES_ADDRESS_SELECTION)
            base = ranges[i].dwr_addr2;
        else
            add_range(reading->oracle, base + ranges[i].dwr_addr1, base + ranges[i].dwr_addr2, function);
#ifdef DW_LIBDWARF_VERSION_MAJOR
    dwarf_dealloc_ranges(reading->dbg, ranges, count);
#else
    dwarf_ranges_dealloc(reading->dbg, ranges, count);
#endif
}

static void read_ranges(const reading_t *reading, Dwarf_Die die, const oracle_function_t *function)
{
    Dwarf_Attribute list;
    Dwarf_Addr lo, hi;
    Dwarf_Half form, version, offset_size;
    enum Dwarf_Form_Class kind;
    Dwarf_Error error;
    if (attribute(die, DW_AT_ranges, &list)) {
        if (dwarf_get_version_of_die(die, &version, &offset_size) == DW_DLV_OK && version >= 5)
            add_ranges_5(reading, list, function);
        else
            add_ranges_4(reading, die, list, function);
        dwarf_dealloc_attribute(list);
    } else if (dwarf_lowpc(die, &lo, &error) == DW_DLV_OK &&
               dwarf_highpc_b(die, &hi, &form, &kind, &error) == DW_DLV_OK)
        add_range(reading->oracle, lo, kind == DW_FORM_CLASS_CONSTANT ? lo + hi : hi, function);
}

static const oracle_function_t *add_function(reading_t *reading, Dwarf_Die die, const oracle_function_t *outer)
{
    oracle_function_t *function = calloc(1, sizeof(*function));
    Dwarf_Off at;
    Dwarf_Error error;
    if (!(outer != NULL && reference_of(die, DW_AT_abstract_origin, &at)) &&
        dwarf_dieoffset(die, &at, &error) != DW_DLV_OK)
        abort();
    const title_t *title = title_of(reading, at);
    *function = (oracle_function_t){
        .name = title->name,
        .file = title->file,
        .line = title->line,
        .call_file = file_name(reading->unit, number_of(die, DW_AT_call_file, UINT32_MAX)),
        .call_line = (uint32_t)number_of(die, DW_AT_call_line, 0),
        .outer = outer,
        .depth = outer ? outer->depth + 1 : 0,
        .number = reading->function_count++,
    };
    read_ranges(reading, die, function);
    return function;
}

// Go through all DIEs below one.
static void read_below(reading_t *reading, Dwarf_Die above, const oracle_function_t *outer)
{
    Dwarf_Die die, next;
    Dwarf_Half tag;
    Dwarf_Error error;
    int result = dwarf_child(above, &die, &error);
    while (result == DW_DLV_OK && dwarf_tag(die, &tag, &error) == DW_DLV_OK) {
        const oracle_function_t *function = outer;
        if (tag == DW_TAG_subprogram)
            function = add_function(reading, die, NULL);
        else if (tag == DW_TAG_inlined_subroutine && outer != NULL)
            function = add_function(reading, die, outer);
        read_below(reading, die, function);
        result = dwarf_siblingof_b(reading->dbg, die, 1, &next, &error);
        dwarf_dealloc_die(die);
        die = next;
    }
}

// --- units

static bool next_unit(Dwarf_Debug dbg, Dwarf_Die *die)
{
    Dwarf_Unsigned length, type_offset, next;
    Dwarf_Half version, address_size, length_size, extension_size, kind;
    Dwarf_Off abbrev;
    Dwarf_Sig8 signature;
    Dwarf_Error error;
    return dwarf_next_cu_header_d(dbg, 1, &length, &version, &abbrev, &address_size, &length_size, &extension_size,
                                  &signature, &type_offset, &next, &kind, &error) == DW_DLV_OK &&
           dwarf_siblingof_b(dbg, NULL, 1, die, &error) == DW_DLV_OK;
}

// First all line tables and files: a function may be declared in another unit.
static void read_units(reading_t *reading)
{
    Dwarf_Die die;
    Dwarf_Error error;
    while (next_unit(reading->dbg, &die)) {
        reading->units = grown(reading->units, reading->unit_count, sizeof(*reading->units));
        unit_t *unit = &reading->units[reading->unit_count++];
        *unit = (unit_t){0};
        if (dwarf_dieoffset(die, &unit->die, &error) != DW_DLV_OK)
            abort();
        read_lines(reading, unit, die);
        dwarf_dealloc_die(die);
    }
    for (size_t i = 0; i < reading->unit_count; i++) {
        Dwarf_Addr base = 0;
        if (dwarf_offdie_b(reading->dbg, reading->units[i].die, 1, &die, &error) != DW_DLV_OK)
            abort();
        reading->unit = &reading->units[i];
        reading->base = dwarf_lowpc(die, &base, &error) == DW_DLV_OK ? base : 0;
        read_ranges(reading, die, NULL);
        read_below(reading, die, NULL);
        dwarf_dealloc_die(die);
    }
}

// --- order

// Sequences follow each other in the order of their addresses; the end of one gives way to the start of the next.
static int compare_rows(const void *left, const void *right)
{
    const oracle_row_t *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->file != NULL) - (b->file != NULL);
}

static int compare_ranges(const void *left, const void *right)
{
    const oracle_range_t *a = left, *b = right;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// Does a range win over another around the same address? The deeper one does, else the smaller one; of functions with
// the same range (assembler code with several names) the last one in the file.
static bool wins(const oracle_range_t *one, const oracle_range_t *other)
{
    if (one->function->depth != other->function->depth)
        return one->function->depth > other->function->depth;
    if (one->hi - one->lo != other->hi - other->lo)
        return one->hi - one->lo < other->hi - other->lo;
    return one->function->number > other->function->number;
}

static const oracle_range_t *innermost(const oracle_range_t **open, size_t count)
{
    const oracle_range_t *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (best == NULL || wins(open[i], best))
            best = open[i];
    return best;
}

static size_t drop_closed(const oracle_range_t **open, size_t count, uint64_t upto)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (open[i]->hi > upto)
            open[kept++] = open[i];
    return kept;
}

static uint64_t *bounds_of(const oracle_t *oracle)
{
    uint64_t *bounds = calloc(oracle->range_count * 2 + 1, sizeof(*bounds));
    for (size_t i = 0; i < oracle->range_count; i++) {
        bounds[2 * i] = oracle->ranges[i].lo;
        bounds[2 * i + 1] = oracle->ranges[i].hi;
    }
    qsort(bounds, oracle->range_count * 2, sizeof(*bounds), compare_addresses);
    return bounds;
}

// Between two bounds the open ranges are the same ones.
static void make_pieces(oracle_t *oracle)
{
    uint64_t *bounds = bounds_of(oracle);
    const oracle_range_t **open = calloc(oracle->range_count + 1, sizeof(*open));
    size_t count = 0, next = 0;
    qsort(oracle->ranges, oracle->range_count, sizeof(*oracle->ranges), compare_ranges);
    for (size_t i = 0; i + 1 < oracle->range_count * 2; i++) {
        if (bounds[i] == bounds[i + 1])
            continue;
        count = drop_closed(open, count, bounds[i]);
        for (; next < oracle->range_count && oracle->ranges[next].lo == bounds[i]; next++)
            open[count++] = &oracle->ranges[next];
        const oracle_range_t *best = innermost(open, count);
        if (best == NULL)
            continue;
        append(&oracle->pieces, &oracle->piece_count, (oracle_range_t){bounds[i], bounds[i + 1], best->function});
    }
    free(open);
    free(bounds);
}

static int open_path(const char *path, Dwarf_Debug *dbg, Dwarf_Error *error)
{
#ifdef DW_LIBDWARF_VERSION_MAJOR // later than those that a date names
    return dwarf_init_path(path, NULL, 0, DW_GROUPNUMBER_ANY, NULL, NULL, dbg, error);
#else
    return dwarf_init_path(path, NULL, 0, DW_DLC_READ, DW_GROUPNUMBER_ANY, NULL, NULL, dbg, NULL, 0, NULL, error);
#endif
}

oracle_t *oracle_open(const char *path)
{
    reading_t reading = {.oracle = calloc(1, sizeof(oracle_t))};
    Dwarf_Error error = NULL;
    if (open_path(path, &reading.dbg, &error) != DW_DLV_OK) {
        fprintf(stderr, "%s: libdwarf cannot read it: %s\n", path, error ? dwarf_errmsg(error) : "no DWARF");
        return NULL;
    }
    read_units(&reading); // texts stay where they are: nothing is closed
    qsort(reading.oracle->rows, reading.oracle->row_count, sizeof(oracle_row_t), compare_rows);
    qsort(reading.oracle->units, reading.oracle->unit_count, sizeof(oracle_range_t), compare_ranges);
    make_pieces(reading.oracle);
    return reading.oracle;
}

// Returns how many items begin at or before an address.
static size_t upto(const void *items, size_t count, size_t size, uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        uint64_t start;
        memcpy(&start, (const char *)items + middle * size, sizeof(start)); // the first member
        if (start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const oracle_row_t *oracle_row(const oracle_t *oracle, uint64_t address)
{
    size_t before = upto(oracle->rows, oracle->row_count, sizeof(*oracle->rows), address);
    return before > 0 && oracle->rows[before - 1].file != NULL ? &oracle->rows[before - 1] : NULL;
}

static const oracle_range_t *range_at(const oracle_range_t *ranges, size_t count, uint64_t address)
{
    size_t before = upto(ranges, count, sizeof(*ranges), address);
    return before > 0 && address < ranges[before - 1].hi ? &ranges[before - 1] : NULL;
}

bool oracle_has_code(const oracle_t *oracle, uint64_t address)
{
    return range_at(oracle->units, oracle->unit_count, address) != NULL;
}

const oracle_function_t *oracle_function(const oracle_t *oracle, uint64_t address)
{
    const oracle_range_t *piece = range_at(oracle->pieces, oracle->piece_count, address);
    return piece ? piece->function : NULL;
}
