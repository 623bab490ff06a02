// SPDX-License-Identifier: MIT
// The parts of the DWARF reader: abbreviations, attribute values, units, their line tables, their
// functions. Private to src/symbol/dwarf*.c.
#pragma once

#include <stdatomic.h>

#include "base/buckets.h"
#include "base/cursor.h"
#include "base/helpers.h"
#include "base/index.h"
#include "base/memory.h"
#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"

#define GP_DWARF_NONE   UINT32_MAX       // no file, no function
#define GP_DWARF_UNREAD (UINT32_MAX - 1) // instead of a file: this code was not going to be asked about

enum gp_dwarf_section {
    GP_DEBUG_INFO,
    GP_DEBUG_ABBREV,
    GP_DEBUG_STR,
    GP_DEBUG_STR_OFFSETS,
    GP_DEBUG_RNGLISTS,
    GP_DEBUG_SPLIT_SECTIONS, // sections above are in a .dwo, too
    GP_DEBUG_LINE = GP_DEBUG_SPLIT_SECTIONS,
    GP_DEBUG_LINE_STR,
    GP_DEBUG_RANGES,
    GP_DEBUG_ADDR,
    GP_DEBUG_SECTIONS
};
extern const char *const gp_dwarf_section_names[GP_DEBUG_SECTIONS];

// --- abbreviations (dwarf_abbrev.c)

typedef struct gp_dwarf_attribute {
    uint16_t name, form;
    int64_t implicit; // value of DW_FORM_implicit_const
} gp_dwarf_attribute_t;

#define GP_DWARF_VARIABLE_BYTES UINT16_MAX // instead of a number of bytes: it differs, or is too large

typedef struct gp_dwarf_abbrev {
    uint64_t code;
    uint32_t attributes; // where they are, from the start of the table
    uint32_t step;       // where in the table's steps those that go past all its values begin
    uint16_t tag;
    bool children;
    bool sibling;   // has DW_AT_sibling
    bool placed;    // has DW_AT_low_pc or DW_AT_ranges
    uint16_t bytes; // of all its values; GP_DWARF_VARIABLE_BYTES
} gp_dwarf_abbrev_t;

typedef enum gp_dwarf_slot { // wanted values of walked DIEs
    GP_DWARF_UNWANTED,
    GP_DWARF_LOW,
    GP_DWARF_HIGH,
    GP_DWARF_RANGES,
    GP_DWARF_ORIGIN,
    GP_DWARF_CALL_FILE,
    GP_DWARF_CALL_LINE,
    GP_DWARF_SIBLING,
    GP_DWARF_SLOTS,
} gp_dwarf_slot_t;

// A step over a DIE's values: skip `bytes`, then read one value of `form`. An implicit constant is in the next step,
// instead of the bytes (UINT32_MAX: it does not fit in 32 bits).
typedef struct gp_dwarf_step {
    uint32_t bytes;
    uint16_t form; // 0 = done
    uint8_t size;  // of the value, if that is 1, 2, 4 or 8, else 0
    uint8_t slot;  // gp_dwarf_slot_t: which value it is. For DIEs with code, and siblings
} gp_dwarf_step_t;

typedef struct gp_dwarf_abbrevs { // of one or more units
    const gp_bytes_t *sections;   // of those units
    uint64_t offset;
    uint32_t format; // of those units, too: sizes of addresses, offsets and references
    const gp_dwarf_abbrev_t *items;
    size_t count;
    const gp_dwarf_step_t *steps;
} gp_dwarf_abbrevs_t;

typedef struct gp_dwarf_unit gp_dwarf_unit_t;
typedef struct gp_dwarf_room gp_dwarf_room_t;

// Find or read the abbreviations of a unit, before any of its DIEs but the first is read. Returns
// false when there are none.
bool gp_dwarf_abbrevs_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit);
void gp_dwarf_abbrevs_free(gp_dwarf_room_t *room);

// Read those at a place in .debug_abbrev before it is known of which unit they are. Returns false at the end; `*offset`
// becomes that of the next ones.
bool gp_dwarf_abbrevs_read(gp_dwarf_t *dwarf, gp_dwarf_room_t *room, uint64_t *offset);

const gp_dwarf_abbrev_t *gp_dwarf_abbrev_search(const gp_dwarf_abbrevs_t *table, uint64_t code);

static inline const gp_dwarf_abbrev_t *gp_dwarf_abbrev(const gp_dwarf_abbrevs_t *table, uint64_t code)
{
    if (code - 1 < table->count && table->items[code - 1].code == code)
        return &table->items[code - 1]; // compilers number them 1, 2, ...
    return gp_dwarf_abbrev_search(table, code);
}

// The attributes of an abbreviation, to be read one by one; of the first DIE, which has this code,
// if possible without reading all of them.
gp_cursor_t gp_dwarf_attributes(const gp_dwarf_unit_t *unit, const gp_dwarf_abbrev_t *abbrev);
bool gp_dwarf_attributes_find(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, uint64_t code, gp_cursor_t *attributes);

// Returns false at the end.
bool gp_dwarf_attribute_next(gp_cursor_t *attributes, gp_dwarf_attribute_t *attribute);

// --- attribute values (dwarf_form.c)

typedef struct gp_dwarf_value {
    uint16_t form;    // 0 = there is no such attribute
    uint64_t number;  // constant, address, offset or index, as the form has it
    const char *text; // of DW_FORM_string
} gp_dwarf_value_t;

#define GP_DWARF_VARIABLE UINT32_MAX

// Size of a form's value in a unit; GP_DWARF_VARIABLE when it differs from value to value.
enum { GP_DWARF_FORMS = DW_FORM_addrx4 + 1, GP_DWARF_SIZE_MAX = 16 }; // of the standard ones
extern const uint8_t gp_dwarf_form_sizes[GP_DWARF_FORMS];             // 1 to 16 where it is always that
uint32_t gp_dwarf_form_other_bytes(uint16_t form, const gp_dwarf_unit_t *unit);

static inline uint32_t gp_dwarf_form_bytes(uint16_t form, const gp_dwarf_unit_t *unit)
{
    unsigned size = form < GP_DWARF_FORMS ? gp_dwarf_form_sizes[form] : 0;
    return size - 1 < GP_DWARF_SIZE_MAX ? size : gp_dwarf_form_other_bytes(form, unit);
}

// Read one value and go past it. An unknown form makes the cursor bad.
gp_dwarf_value_t gp_dwarf_value(gp_cursor_t *cursor, const gp_dwarf_unit_t *unit,
                                const gp_dwarf_attribute_t *attribute);
void gp_dwarf_value_skip(gp_cursor_t *cursor, const gp_dwarf_unit_t *unit, uint16_t form);

// The meaning of a value. Returns false / NULL when it is of another kind, or not there.
bool gp_dwarf_value_address(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, const gp_dwarf_value_t *value,
                            uint64_t *address);
bool gp_dwarf_value_constant(const gp_dwarf_value_t *value, uint64_t *number);
const char *gp_dwarf_value_text(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, const gp_dwarf_value_t *value);
// Entry `index` of a table of addresses.
bool gp_dwarf_indexed_address(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, uint64_t index, uint64_t *address);

// --- units (dwarf_unit.c)

typedef struct gp_dwarf_line { // holds up to the next row's address
    uint64_t address;
    uint32_t file; // number in the unit's files; GP_DWARF_NONE behind a sequence; GP_DWARF_UNREAD
    uint32_t line; // 0: no code of this unit from here on
} gp_dwarf_line_t;

typedef struct gp_dwarf_file {
    const char *directory, *name; // directory may be NULL
    uint32_t number;              // in gp_dwarf.files; GP_DWARF_NONE = not looked up yet
} gp_dwarf_file_t;

#define GP_DWARF_SUPPLEMENT (1ull << 63) // added to the place of a DIE of the supplement
#define GP_DWARF_SPLIT      (1ull << 62) // and to that of a DIE of a split unit: behind it, the unit's number
#define GP_DWARF_UNIT_SHIFT 32           // and the place from the unit's start
#define GP_DWARF_NO_DIE     UINT64_MAX

typedef struct gp_dwarf_title { // a function's name: one for all of its instances
    uint64_t die;
    const char *name;
    const char *shown; // see gp_dwarf_place_t
    const char *first_file;
    uint32_t first_line;
} gp_dwarf_title_t;

typedef struct gp_dwarf_instance { // of a function: out of line, or inlined at one place
    uint64_t die;                  // with the function's name: its own, or its abstract one
    gp_dwarf_title_t *title;       // NULL = not looked up yet
    uint32_t outer;                // the instance it is inlined into; GP_DWARF_NONE = none
    uint32_t call_file, call_line; // where; number in the unit's files
    uint32_t depth;                // number of functions that it is inlined into, at all levels
    gp_dwarf_memo_t outside;       // the place of the call, and those around it
} gp_dwarf_instance_t;

typedef struct gp_dwarf_range { // code, and the number of what has it innermost
    uint64_t lo, hi;
    uint32_t number;
    uint32_t depth;
} gp_dwarf_range_t;

typedef struct gp_dwarf_ranges {
    gp_dwarf_range_t *items; // sorted and disjoint once they are flattened
    size_t count, capacity;
} gp_dwarf_ranges_t;

typedef struct gp_dwarf_function { // out of line, and what is inlined into it
    uint64_t die;
    bool loaded;                    // the rest is read
    gp_dwarf_instance_t *instances; // the first one is the function itself
    gp_dwarf_ranges_t ranges;       // of instances
    size_t last_range;
} gp_dwarf_function_t;

struct gp_dwarf_unit {
    uint64_t listed_die, listed_end; // in the file's own .debug_info: first DIE, end
    // Where its DIEs are: there, or, once a split unit's own file is read, in that (dwarf_split.c).
    const gp_bytes_t *sections; // gp_bytes_t[GP_DEBUG_SPLIT_SECTIONS] at least
    uint64_t start, die, end;   // in .debug_info: header, first DIE, end
    uint64_t place_base;        // added to an offset in .debug_info, that is the place of a DIE
    uint16_t version;
    uint8_t address_bytes, offset_bytes;
    uint64_t abbrev_offset;
    const gp_dwarf_abbrevs_t *abbrevs; // NULL = not read yet
    // From its first DIE:
    uint64_t low_pc;
    uint64_t str_offsets_base, addr_base, rnglists_base;
    uint64_t ranges_base; // added to what a split unit's DIEs say of .debug_ranges
    const char *dwo_name; // where a split unit has its DIEs; NULL = it is none
    uint64_t dwo_id;
    gp_dwarf_value_t line_table;  // DW_AT_stmt_list
    const char *directory;        // of its compilation; NULL = unknown
    struct gp_dwarf_split *split; // data of its own file; NULL = none was read
    _Atomic bool is_missing;      // and should have been
    // Read when needed:
    bool files_loaded, code_loaded;
    bool searched; // all of it, for functions; else only where compilers put them
    gp_dwarf_file_t *files;
    size_t file_count, file_capacity;
    gp_dwarf_line_t *lines; // sorted
    size_t line_count;
    gp_buckets_t line_buckets;
    size_t last_line; // see gp_buckets_upto_near()
    gp_dwarf_function_t *functions;
    size_t function_count, function_capacity;
    gp_dwarf_ranges_t ranges; // of functions
    gp_buckets_t range_buckets;
    size_t last_range;
    struct gp_dwarf_ahead *ahead; // the job that reads it; NULL = none does
};

typedef struct gp_dwarf_span { // code of a unit
    uint64_t lo, hi;
    uint32_t unit;
} gp_dwarf_span_t;

typedef struct gp_dwarf_wanted { // addresses that are going to be looked up
    const uint64_t *addresses;   // ascending
    size_t count;                // 0 = any may be
    gp_buckets_t buckets;        // of them; may be none
} gp_dwarf_wanted_t;

typedef struct gp_dwarf_line_table { // that was read before any unit was
    uint64_t offset;                 // in .debug_line
    gp_dwarf_line_t *lines;          // some are GP_DWARF_UNREAD
    size_t count;
} gp_dwarf_line_table_t;

typedef struct gp_dwarf_names { // interned file names
    gp_arena_t texts;
    const char **files;
    size_t count, capacity;
    gp_index_t index;
} gp_dwarf_names_t;

typedef struct gp_dwarf_advances { // how far each special opcode of a line table goes, and DW_LNS_copy
    uint8_t kind[4];               // mark in the table's header; zeroed: of none
    uint16_t address[256];
    int16_t line[256];
} gp_dwarf_advances_t;

// Where what is read of units is put together, and where it stays. Several threads read, each into a room of its own.
struct gp_dwarf_room {
    const gp_dwarf_t *dwarf;
    _Atomic bool is_taken; // of those for jobs
    gp_arena_t memory;     // of abbreviations, lines, functions and titles
    gp_dwarf_abbrevs_t **abbrevs;
    size_t abbrev_count, abbrev_capacity;
    gp_index_t abbrev_index;
    // Where such are put together before they are copied:
    gp_dwarf_abbrev_t *abbrev_items;
    size_t abbrev_item_capacity;
    gp_dwarf_step_t *steps;
    size_t step_capacity;
    uint32_t sizes_format; // of which these are; 0 = they are not known
    uint8_t form_sizes[GP_DWARF_FORMS];
    gp_dwarf_line_t *rows;
    size_t row_capacity;
    gp_dwarf_advances_t advances;
    gp_dwarf_instance_t *instances;
    size_t instance_capacity;
    gp_dwarf_ranges_t ranges;
};

typedef struct gp_dwarf_package { // a .dwp, which many units' .dwo are put together in; zeroed: there is none
    char *path;
    gp_bytes_t index, texts; // .debug_cu_index, .debug_str.dwo
} gp_dwarf_package_t;

enum { GP_DWARF_JOB_ROOMS = GP_HELPERS_MAX + 1 }; // as many jobs are done at once: the caller's thread does some

typedef struct gp_dwarf_section_job { // to read and unpack a section
    gp_job_t job;
    gp_dwarf_t *dwarf;
    const gp_elf_t *elf;
    enum gp_dwarf_section number;
} gp_dwarf_section_job_t;

struct gp_dwarf {
    gp_bytes_t sections[GP_DEBUG_SECTIONS]; // malloc()ed, a NUL behind each
    char *path;                             // of the file; NULL = of a supplement
    gp_dwarf_package_t package;
    gp_dwarf_names_t names;
    gp_dwarf_t *supplement; // of dwz; NULL = none
    gp_dwarf_unit_t *units; // by their place in .debug_info
    size_t unit_count, unit_capacity;
    gp_dwarf_span_t *spans; // sorted by lo
    size_t span_count, span_capacity;
    gp_buckets_t span_buckets;
    size_t last_span;
    gp_dwarf_title_t **titles;
    size_t title_count, title_capacity;
    gp_index_t title_index;
    gp_dwarf_room_t room; // of the caller's thread
    // What helpers do:
    gp_helpers_t *helpers;
    gp_dwarf_asked_t asked;   // zeroed: about little
    _Atomic bool has_units;   // their list is read
    _Atomic bool has_abbrevs; // their section is
    gp_dwarf_section_job_t section_jobs[GP_DEBUG_SECTIONS];
    // Tables read before the units are known, by offset:
    gp_dwarf_line_table_t *line_tables;
    size_t line_table_count, line_table_capacity;
    gp_dwarf_abbrevs_t *abbrevs;
    size_t abbrev_count, abbrev_capacity;
    bool has_tables; // these are not going to change
    struct gp_dwarf_expected *expected;
    gp_dwarf_room_t job_rooms[GP_DWARF_JOB_ROOMS];
};

// Free all that was made of the sections, but not them (dwarf.c).
void gp_dwarf_free_read(gp_dwarf_t *dwarf);

// Read the headers and first DIEs of all units. Returns 0 or -ENOMEM; what cannot be read is left out.
int gp_dwarf_units_load(gp_dwarf_t *dwarf);

// The unit that a place in .debug_info belongs to, or NULL.
gp_dwarf_unit_t *gp_dwarf_unit_at(gp_dwarf_t *dwarf, uint64_t offset);

void gp_dwarf_unit_free(gp_dwarf_unit_t *unit);

// Go to the next unit of a .debug_info whose header can be read. Returns false at the end.
bool gp_dwarf_unit_next(const gp_bytes_t *sections, gp_cursor_t *cursor, gp_dwarf_unit_t *unit);

typedef struct gp_dwarf_extent { // how a DIE says where its code is
    gp_dwarf_value_t low, high, ranges;
} gp_dwarf_extent_t;

// Read what a unit's first DIE says. Returns false when it cannot be read.
bool gp_dwarf_unit_root(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, gp_dwarf_extent_t *extent);

// --- split units (dwarf_split.c)

// Look for a .dwp beside the file, or beside the module that it is about.
void gp_dwarf_package_open(gp_dwarf_t *dwarf, const char *module_path);
void gp_dwarf_package_close(gp_dwarf_package_t *package);

// Find the DIEs of a split unit, before any of them is read: from then on the unit has those, and still its lines and
// addresses. Else the skeleton's few stay, and it is counted.
void gp_dwarf_split_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit);
void gp_dwarf_split_free(struct gp_dwarf_split *split); // NULL is allowed

// --- address ranges (dwarf_ranges.c)

// Call `visit` for every address range [lo, hi). Ranges that the linker threw away are left out.
// Returns 0 or what `visit` returned when it was not 0.
typedef int (*gp_dwarf_range_visit_t)(void *context, uint64_t lo, uint64_t hi);
int gp_dwarf_ranges(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, const gp_dwarf_extent_t *extent,
                    gp_dwarf_range_visit_t visit, void *context);

// --- what is read when it is needed

typedef struct gp_dwarf_line_header { // of a unit's line table (dwarf_lines.c)
    gp_dwarf_unit_t format;           // only its version and sizes
    uint8_t instruction_bytes, line_range, opcode_base;
    int8_t line_base;
    uint8_t operands[256]; // number of operands of the standard opcodes
    gp_cursor_t tables;    // directories and files
    gp_cursor_t program;
} gp_dwarf_line_header_t;

// Returns false when the unit has no line table that can be read.
bool gp_dwarf_line_header(const gp_dwarf_t *dwarf, const gp_dwarf_unit_t *unit, gp_dwarf_line_header_t *header);

typedef struct gp_dwarf_rows { // in room->rows
    size_t count;
    bool sorted; // by address, each of its own
} gp_dwarf_rows_t;

// Make the rows of a line table (dwarf_line_program.c).
//   wanted: then a row is kept for each address that is, and GP_DWARF_UNREAD between; NULL = all are kept.
// Returns 0, -ENOMEM, or -EAGAIN where it has to be asked for all.
int gp_dwarf_line_program(gp_dwarf_room_t *room, const gp_dwarf_line_header_t *header, const gp_dwarf_wanted_t *wanted,
                          gp_dwarf_rows_t *made);

// The file names of a unit's line table (dwarf_files.c). Returns 0 or -ENOMEM.
int gp_dwarf_files_load(const gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit);

// The name of file `number` of a unit, as all units have it; NULL when there is none.
//   names: where the name is interned; may be another gp_dwarf_t's.
const char *gp_dwarf_file_name(gp_dwarf_names_t *names, gp_dwarf_unit_t *unit, uint64_t number);
void gp_dwarf_names_free(gp_dwarf_names_t *names);

// Read the rows of the line table at a place in .debug_line that are wanted. Returns false at the end; `*offset`
// becomes that of the next one.
bool gp_dwarf_line_table_read(gp_dwarf_t *dwarf, gp_dwarf_room_t *room, const gp_dwarf_wanted_t *wanted,
                              uint64_t *offset);

// The rows of a unit's line table that are wanted, those between being GP_DWARF_UNREAD; or all of them, also when some
// have been loaded (dwarf_lines.c). Returns 0 or -ENOMEM.
int gp_dwarf_lines_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted);
int gp_dwarf_lines_load_all(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit);

// Read once all that says where the code of a unit comes from, without inlined functions, and with the wanted rows of
// lines; unreadable parts are left out (dwarf.c).
void gp_dwarf_code_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted);

// The function of such a unit that has the code at the address, with what is inlined into it; NULL = none.
gp_dwarf_function_t *gp_dwarf_function_at(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, uint64_t address);

// The unit that has the code at an address, or NULL. Only the caller's thread asks.
gp_dwarf_unit_t *gp_dwarf_unit_of(gp_dwarf_t *dwarf, uint64_t address);

// --- what is done ahead (dwarf_ahead.c)

// Begin to read and unpack the sections; have all but .debug_line; have .debug_line, too, and tables that were read
// meanwhile, once the units are known. Between these calls the file stays as it is.
void gp_dwarf_sections_begin(gp_dwarf_t *dwarf, const gp_elf_t *elf);
void gp_dwarf_sections_end(gp_dwarf_t *dwarf);
void gp_dwarf_tables_end(gp_dwarf_t *dwarf);

// Settle a unit for the caller's thread, which reads it or takes a job's reading. From then on no other thread has it.
void gp_dwarf_settle(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit);

void gp_dwarf_expected_free(gp_dwarf_t *dwarf);

// --- walking through DIEs (dwarf_walk.c)

typedef struct gp_dwarf_walk {
    const gp_dwarf_unit_t *unit;
    gp_cursor_t cursor;
    size_t level; // of the next DIE
    // The DIE that is being visited:
    uint64_t die;
    const gp_dwarf_abbrev_t *abbrev;
} gp_dwarf_walk_t;

typedef struct gp_dwarf_die {                // wanted values; code, origin and call only where it has some
    gp_dwarf_value_t values[GP_DWARF_SLOTS]; // the first one is not used
} gp_dwarf_die_t;

static inline gp_dwarf_extent_t gp_dwarf_die_extent(const gp_dwarf_die_t *die)
{
    return (gp_dwarf_extent_t){die->values[GP_DWARF_LOW], die->values[GP_DWARF_HIGH], die->values[GP_DWARF_RANGES]};
}

// Begin at a DIE of the unit; it and all below it are visited.
gp_dwarf_walk_t gp_dwarf_walk(const gp_dwarf_unit_t *unit, uint64_t die);

// Go to the next DIE; its values are to be read or skipped before its children come. Returns false at the end.
bool gp_dwarf_walk_next(gp_dwarf_walk_t *walk);

void gp_dwarf_walk_read(gp_dwarf_walk_t *walk, gp_dwarf_die_t *die);
void gp_dwarf_walk_skip(gp_dwarf_walk_t *walk); // its values, not its children

// The way of a walk at a DIE, by its tag: [0] for tags from GP_DWARF_TAGS on.
typedef enum gp_dwarf_way {
    GP_DWARF_PAST,   // gone past; into its children
    GP_DWARF_LEAVE,  // its children are left out, too, where it says what comes behind them
    GP_DWARF_SELDOM, // the same; they may have code
    GP_DWARF_CODE,   // visited if it has code of its own, else as GP_DWARF_SELDOM
    GP_DWARF_STOP,   // visited
} gp_dwarf_way_t;
enum { GP_DWARF_TAGS = DW_TAG_call_site + 1 };

// Go past DIEs quickly, up to one to visit, or to read by gp_dwarf_walk_next() and the others.
//   into: children may be gone into, else a DIE with children is visited.
//   left: becomes true if children with code may have been left out.
void gp_dwarf_walk_past(gp_dwarf_walk_t *walk, const uint8_t ways[GP_DWARF_TAGS], bool into, bool *left);

// Leave out the children, where the DIE says what comes behind them. Returns whether it does.
bool gp_dwarf_walk_leave(gp_dwarf_walk_t *walk, const gp_dwarf_value_t *sibling);

// --- functions

// Find the functions of a unit: only outermost ones, or with `everywhere` all (dwarf_functions.c). Returns 0 or
// -ENOMEM.
int gp_dwarf_functions_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, bool everywhere);

// Read what is inlined into a function (dwarf_inlined.c). Returns 0 or -ENOMEM.
int gp_dwarf_inlined_load(gp_dwarf_room_t *room, const gp_dwarf_unit_t *unit, gp_dwarf_function_t *function);

// Cut nested ranges into disjoint ones (dwarf_flatten.c): the innermost one counts, of equal ones
// the later. Returns 0 or -ENOMEM.
int gp_dwarf_flatten(gp_dwarf_ranges_t *ranges);
int gp_dwarf_ranges_add(gp_dwarf_ranges_t *ranges, const gp_dwarf_range_t *range);

// A function's name and where it is declared (dwarf_origin.c).
//   die: see gp_dwarf_instance_t.
// Returns NULL when memory is short.
gp_dwarf_title_t *gp_dwarf_title(gp_dwarf_t *dwarf, uint64_t die);

// The place of the DIE that a value refers to (dwarf_origin.c); GP_DWARF_NO_DIE when it is no reference.
uint64_t gp_dwarf_reference(const gp_dwarf_unit_t *unit, const gp_dwarf_value_t *value);
