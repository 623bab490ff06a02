// SPDX-License-Identifier: MIT
// Jobs that helpers do before the caller's thread needs them: sections are unpacked side by side, and units with
// expected addresses are read. A job not begun is done where its result is needed, so results are the same without
// helpers.
//
// A job reads all of a unit but names, which are found in other units, too: the caller's thread reads these. Jobs touch
// no unit but their own; the caller's thread settles a unit, by taking its job, before it looks at what changes in one.
#include <stdlib.h>

#include "base/memory.h"
#include "symbol/dwarf_unit.h"

// --- rooms

// At most as many jobs are done at once as there are rooms: one is free.
static gp_dwarf_room_t *dwarf_ahead_take_room(gp_dwarf_t *dwarf)
{
    for (size_t i = 0;; i = (i + 1) % GP_DWARF_JOB_ROOMS) // acquire: synchronizes with dwarf_ahead_leave_room()
        if (!atomic_exchange_explicit(&dwarf->job_rooms[i].is_taken, true, memory_order_acquire))
            return &dwarf->job_rooms[i];
}

static void dwarf_ahead_leave_room(gp_dwarf_room_t *room)
{
    atomic_store_explicit(&room->is_taken, false, memory_order_release); // synchronizes with dwarf_ahead_take_room()
}

// --- sections

const char *const gp_dwarf_section_names[GP_DEBUG_SECTIONS] = {
    [GP_DEBUG_INFO] = ".debug_info",
    [GP_DEBUG_ABBREV] = ".debug_abbrev",
    [GP_DEBUG_LINE] = ".debug_line",
    [GP_DEBUG_STR] = ".debug_str",
    [GP_DEBUG_LINE_STR] = ".debug_line_str",
    [GP_DEBUG_RANGES] = ".debug_ranges",
    [GP_DEBUG_RNGLISTS] = ".debug_rnglists",
    [GP_DEBUG_ADDR] = ".debug_addr",
    [GP_DEBUG_STR_OFFSETS] = ".debug_str_offsets",
};

static void dwarf_ahead_read_section(gp_job_t *job)
{
    const gp_dwarf_section_job_t *wanted = (gp_dwarf_section_job_t *)job;
    const Elf64_Shdr *section = gp_elf_section(wanted->elf, gp_dwarf_section_names[wanted->number]);
    size_t len = 0;
    uint8_t *bytes = section ? gp_elf_section_read(wanted->elf, section, &len) : NULL;
    wanted->dwarf->sections[wanted->number] = (gp_bytes_t){bytes, bytes ? len : 0};
    if (wanted->number == GP_DEBUG_ABBREV) // release: synchronizes with dwarf_ahead_read_abbrevs()
        atomic_store_explicit(&wanted->dwarf->has_abbrevs, true, memory_order_release);
}

// Are there no units yet, which all else waits for?
static bool dwarf_ahead_may_read(const gp_dwarf_t *dwarf)
{
    return !atomic_load_explicit(&dwarf->has_units, memory_order_relaxed);
}

static void dwarf_ahead_read_line_tables(gp_dwarf_t *dwarf, gp_dwarf_room_t *room)
{
    gp_dwarf_wanted_t wanted = {0};
    uint64_t offset = 0;
    wanted.addresses = dwarf->asked.addresses(dwarf->asked.owner, &wanted.count);
    gp_buckets_make(&wanted.buckets, wanted.addresses, wanted.count, sizeof(wanted.addresses[0]));
    while (dwarf_ahead_may_read(dwarf) && gp_dwarf_line_table_read(dwarf, room, &wanted, &offset))
        ;
    gp_buckets_free(&wanted.buckets);
}

static void dwarf_ahead_read_abbrevs(gp_dwarf_t *dwarf, gp_dwarf_room_t *room)
{
    uint64_t offset = 0;
    if (atomic_load_explicit(&dwarf->has_abbrevs, memory_order_acquire)) // synchronizes with dwarf_ahead_read_section()
        while (dwarf_ahead_may_read(dwarf) && gp_dwarf_abbrevs_read(dwarf, room, &offset))
            ;
}

// Line tables need nothing of the other sections, and abbreviations little of units: they are read as long as all else
// waits for .debug_info and the list of units.
static void dwarf_ahead_read_tables(gp_job_t *job)
{
    gp_dwarf_t *dwarf = ((gp_dwarf_section_job_t *)job)->dwarf;
    dwarf_ahead_read_section(job);
    if (dwarf->asked.addresses == NULL)
        return;
    gp_dwarf_room_t *room = dwarf_ahead_take_room(dwarf);
    dwarf_ahead_read_line_tables(dwarf, room);
    dwarf_ahead_read_abbrevs(dwarf, room);
    dwarf_ahead_leave_room(room);
}

// .debug_info, the largest, is read by gp_dwarf_sections_end().
void gp_dwarf_sections_begin(gp_dwarf_t *dwarf, const gp_elf_t *elf)
{
    for (unsigned i = GP_DEBUG_SECTIONS; i-- > 0;) {
        gp_dwarf_section_job_t *wanted = &dwarf->section_jobs[i];
        *wanted = (gp_dwarf_section_job_t){
            {.work = i == GP_DEBUG_LINE ? dwarf_ahead_read_tables : dwarf_ahead_read_section}, dwarf, elf, i};
        if (i != GP_DEBUG_INFO && i != GP_DEBUG_LINE)
            gp_helpers_give(dwarf->helpers, &wanted->job);
    }
    gp_helpers_give(dwarf->helpers, &dwarf->section_jobs[GP_DEBUG_LINE].job); // which takes long
}

void gp_dwarf_sections_end(gp_dwarf_t *dwarf)
{
    dwarf_ahead_read_section(&dwarf->section_jobs[GP_DEBUG_INFO].job);
    for (size_t i = 0; i < GP_DEBUG_SECTIONS; i++)
        if (i != GP_DEBUG_LINE)
            gp_helpers_take(dwarf->helpers, &dwarf->section_jobs[i].job);
}

void gp_dwarf_tables_end(gp_dwarf_t *dwarf)
{
    atomic_store_explicit(&dwarf->has_units, true, memory_order_relaxed); // for its own sake only
    gp_helpers_take(dwarf->helpers, &dwarf->section_jobs[GP_DEBUG_LINE].job);
    dwarf->has_tables = true;
}

// --- units

// Bytes of .debug_info for a job: a millisecond at most, unless a unit is large.
enum { JOB_BYTES = 64 * 1024 };

typedef struct gp_dwarf_expected { // addresses whose names will be asked for
    struct gp_dwarf_expected *next;
    uint64_t *addresses; // by unit
    uint32_t *starts;    // by number of the unit: where its addresses begin; the next one's beginning ends them
    uint32_t *units;     // units with addresses, in the order in which they will be asked about
    uint32_t unit_count;
    struct gp_dwarf_ahead *jobs;
    size_t job_count;
} gp_dwarf_expected_t;

typedef struct gp_dwarf_ahead { // a job: to read expected->units [first, end)
    gp_job_t job;
    gp_dwarf_t *dwarf;
    const gp_dwarf_expected_t *expected;
    uint32_t first, end;
    bool is_taken;
} gp_dwarf_ahead_t;

static void dwarf_ahead_read_units(gp_job_t *job)
{
    const gp_dwarf_ahead_t *ahead = (const gp_dwarf_ahead_t *)job;
    const gp_dwarf_expected_t *expected = ahead->expected;
    gp_dwarf_room_t *room = dwarf_ahead_take_room(ahead->dwarf);
    for (uint32_t i = ahead->first; i < ahead->end; i++) {
        uint32_t number = expected->units[i];
        gp_dwarf_unit_t *unit = &ahead->dwarf->units[number];
        const uint64_t *addresses = &expected->addresses[expected->starts[number]];
        size_t count = expected->starts[number + 1] - expected->starts[number];
        gp_dwarf_code_load(room, unit, &(gp_dwarf_wanted_t){.addresses = addresses, .count = count});
        for (size_t k = 0; k < count; k++)
            gp_dwarf_function_at(room, unit, addresses[k]);
    }
    dwarf_ahead_leave_room(room);
}

static void dwarf_ahead_free_expected(gp_dwarf_expected_t *expected)
{
    free(expected->starts);
    free(expected->units);
    free(expected->addresses);
    free(expected->jobs);
    free(expected);
}

static gp_dwarf_expected_t *dwarf_ahead_make_expected(size_t unit_count, size_t address_count)
{
    gp_dwarf_expected_t *expected = calloc(1, sizeof(*expected));
    if (expected == NULL)
        return NULL;
    expected->starts = calloc(unit_count + 2, sizeof(*expected->starts));
    expected->addresses = malloc(address_count * sizeof(*expected->addresses));
    expected->units = malloc(unit_count * sizeof(*expected->units));
    expected->jobs = calloc(unit_count, sizeof(*expected->jobs));
    if (expected->starts != NULL && expected->addresses != NULL && expected->units != NULL && expected->jobs != NULL)
        return expected;
    dwarf_ahead_free_expected(expected);
    return NULL;
}

// The unit that an address is in, where it is still to be read; NULL = none.
static const gp_dwarf_unit_t *dwarf_ahead_unit_to_read(gp_dwarf_t *dwarf, uint64_t address)
{
    const gp_dwarf_unit_t *unit = gp_dwarf_unit_of(dwarf, address);
    return unit != NULL && unit->ahead == NULL && !unit->code_loaded ? unit : NULL;
}

// Put the addresses in the order of their units.
static void dwarf_ahead_sort_by_unit(gp_dwarf_t *dwarf, gp_dwarf_expected_t *expected, const uint64_t *addresses,
                                     size_t count)
{
    uint32_t *next = expected->starts + 1; // once they are placed, each has become the start of the next one
    for (size_t i = 0; i < count; i++) {
        const gp_dwarf_unit_t *unit = dwarf_ahead_unit_to_read(dwarf, addresses[i]);
        uint32_t number = unit != NULL ? (uint32_t)(unit - dwarf->units) : 0;
        if (unit != NULL && expected->starts[number + 2]++ == 0)
            expected->units[expected->unit_count++] = number;
    }
    for (size_t i = 2; i < dwarf->unit_count + 2; i++)
        expected->starts[i] += expected->starts[i - 1];
    for (size_t i = 0; i < count; i++) {
        const gp_dwarf_unit_t *unit = dwarf_ahead_unit_to_read(dwarf, addresses[i]);
        if (unit != NULL)
            expected->addresses[next[unit - dwarf->units]++] = addresses[i];
    }
}

static void dwarf_ahead_give(gp_dwarf_t *dwarf, gp_dwarf_expected_t *expected, uint32_t first, uint32_t end)
{
    gp_dwarf_ahead_t *ahead = &expected->jobs[expected->job_count++];
    *ahead = (gp_dwarf_ahead_t){{.work = dwarf_ahead_read_units}, dwarf, expected, first, end, false};
    for (uint32_t i = first; i < end; i++)
        dwarf->units[expected->units[i]].ahead = ahead;
    gp_helpers_give(dwarf->helpers, &ahead->job);
}

static void dwarf_ahead_give_all(gp_dwarf_t *dwarf, gp_dwarf_expected_t *expected)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0, first = 0; i < expected->unit_count; i++) {
        const gp_dwarf_unit_t *unit = &dwarf->units[expected->units[i]];
        bytes += unit->dwo_name != NULL ? JOB_BYTES : unit->end - unit->start;
        if (bytes < JOB_BYTES && i + 1 < expected->unit_count)
            continue;
        dwarf_ahead_give(dwarf, expected, first, i + 1);
        first = i + 1;
        bytes = 0;
    }
}

void gp_dwarf_expect(gp_dwarf_t *dwarf, const uint64_t *addresses, size_t count)
{
    if (dwarf->helpers == NULL || count == 0 || count > UINT32_MAX / 2 || dwarf->unit_count == 0)
        return;
    gp_dwarf_expected_t *expected = dwarf_ahead_make_expected(dwarf->unit_count, count);
    if (expected == NULL)
        return; // each is read when it is asked about
    dwarf_ahead_sort_by_unit(dwarf, expected, addresses, count);
    expected->next = dwarf->expected;
    dwarf->expected = expected;
    dwarf_ahead_give_all(dwarf, expected);
}

void gp_dwarf_settle(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    gp_dwarf_ahead_t *ahead = unit->ahead;
    if (ahead == NULL || ahead->is_taken)
        return;
    gp_helpers_take_helping(dwarf->helpers, &ahead->job);
    ahead->is_taken = true;
}

void gp_dwarf_expected_free(gp_dwarf_t *dwarf)
{
    while (dwarf->expected != NULL) {
        gp_dwarf_expected_t *expected = dwarf->expected;
        for (size_t i = 0; i < expected->job_count; i++)
            gp_helpers_withdraw(dwarf->helpers, &expected->jobs[i].job);
        dwarf->expected = expected->next;
        dwarf_ahead_free_expected(expected);
    }
}
