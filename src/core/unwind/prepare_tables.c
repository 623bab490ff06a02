// SPDX-License-Identifier: MIT
// Make the tables of rows by range (row_table.h).
//
// Model: a module is asked for when the collector meets an interrupted program counter in a function of it that it has
// not met before, and made by gp_unwind_warm(), which nothing waits for.
#include <string.h>

#include "unwind/prepare_tables.h"
#include "unwind/resolve.h"
#include "unwind/row_table.h"

enum { WANTED = 8 };

static _Atomic uintptr_t wanted[WANTED]; // where the code of modules that have no table begins; 0 = free
static uint32_t rows_used, steps_used;   // of the room for all

typedef struct builder {
    gp_row_table_t table;
    uint32_t rows, steps; // that the table has so far
    uintptr_t end, limit; // rows are known up to here; where the next function begins
    bool is_full;
} builder_t;

static bool prepare_tables_is_known(uintptr_t text_lo)
{
    // Acquire: pairs with prepare_tables_publish()'s release.
    unsigned count = atomic_load_explicit(&gp_row_table_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (gp_row_tables[i].lo == text_lo)
            return true;
    return count == GP_TABLES_MAX;
}

void gp_row_table_want(const gp_unwind_module_t *module)
{
    if (prepare_tables_is_known(module->text_lo))
        return;
    for (unsigned i = 0; i < WANTED; i++) {
        uintptr_t nothing = 0;
        if (atomic_compare_exchange_strong_explicit(&wanted[i], &nothing, module->text_lo, memory_order_relaxed,
                                                    memory_order_relaxed) ||
            nothing == module->text_lo)
            return;
    }
}

// Steps that begin before `start` begin in the latest row.
static void prepare_tables_fill_steps(builder_t *b, uint32_t start)
{
    uint32_t room = GP_TABLE_STEPS - b->table.step;
    for (; b->steps * (uint64_t)GP_TABLE_STEP < start && !b->is_full; b->steps++) {
        b->is_full = b->steps == room;
        if (!b->is_full)
            gp_table_steps[b->table.step + b->steps] = b->rows - 1;
    }
}

static void prepare_tables_add(builder_t *b, uintptr_t lo, gp_packed_row_t row)
{
    uint32_t start = (uint32_t)(lo - b->table.lo);
    prepare_tables_fill_steps(b, start);
    b->is_full = b->is_full || b->rows == GP_TABLE_ROWS - b->table.rows;
    if (!b->is_full)
        gp_table_rows[b->table.rows + b->rows++] = (gp_table_row_t){start, row};
}

static gp_packed_row_t prepare_tables_simple_row(const gp_row_t *row)
{
    gp_packed_row_t packed = row->cfa_is_expr ? 0 : gp_row_pack(row, row->lo);
    return gp_row_kind(packed) == GP_ROW_SP || gp_row_kind(packed) == GP_ROW_FP ? packed : 0;
}

static bool prepare_tables_add_row(void *context, const gp_row_t *row)
{
    builder_t *b = context;
    uintptr_t lo = row->lo > b->end ? row->lo : b->end, hi = row->hi < b->limit ? row->hi : b->limit;
    if (lo >= hi)
        return row->hi < b->limit;
    if (lo > b->end)
        prepare_tables_add(b, b->end, 0);
    prepare_tables_add(b, lo, prepare_tables_simple_row(row));
    b->end = hi;
    return !b->is_full;
}

static uintptr_t prepare_tables_start_of(const gp_eh_index_t *eh, uint32_t pair)
{
    int32_t offset;
    memcpy(&offset, eh->table + (size_t)pair * 8, sizeof offset);
    return (uintptr_t)eh->hdr + (uintptr_t)(intptr_t)offset;
}

// Where tables overlap, the last function that begins at or before a place is its own, as in a search.
static void prepare_tables_add_functions(builder_t *b, const gp_unwind_module_t *module)
{
    const gp_eh_index_t *eh = &module->eh;
    for (uint32_t i = 0; i < eh->count && !b->is_full; i++) {
        gp_cfi_section_t section;
        gp_fde_t fde;
        uintptr_t next = i + 1 < eh->count ? prepare_tables_start_of(eh, i + 1) : module->text_hi;
        b->limit = next < module->text_hi ? next : module->text_hi;
        if (gp_fde_find(eh, prepare_tables_start_of(eh, i), &section, &fde))
            gp_cfi_each_row(&section, &fde, prepare_tables_add_row, b);
    }
}

static void prepare_tables_publish(const gp_row_table_t *table)
{
    unsigned count = atomic_load_explicit(&gp_row_table_count, memory_order_relaxed);
    gp_row_tables[count] = *table;
    // Release: pairs with the acquire in gp_row_table_find().
    atomic_store_explicit(&gp_row_table_count, count + 1, memory_order_release);
}

static void prepare_tables_make(const gp_unwind_module_t *module)
{
    builder_t b = {.table = {.lo = module->text_lo, .rows = rows_used, .step = steps_used}, .end = module->text_lo};
    uintptr_t bytes = module->text_hi - module->text_lo;
    b.is_full = bytes > UINT32_MAX || module->eh.table == NULL || module->eh.eh_end == NULL;
    if (!b.is_full) {
        prepare_tables_add_functions(&b, module);
        if (b.end < module->text_hi)
            prepare_tables_add(&b, b.end, 0);
        prepare_tables_add(&b, module->text_hi, 0);
    }
    if (!b.is_full) {
        b.table.bytes = (uint32_t)bytes;
        rows_used += b.rows;
        steps_used += b.steps;
    }
    prepare_tables_publish(&b.table);
}

void gp_row_tables_make(void)
{
    gp_unwind_module_t module;
    for (unsigned i = 0; i < WANTED; i++) {
        uintptr_t text_lo = atomic_exchange_explicit(&wanted[i], 0, memory_order_relaxed);
        if (text_lo != 0 && !prepare_tables_is_known(text_lo) && gp_module_find(text_lo, &module) != GP_MODULE_NONE &&
            module.fixed)
            prepare_tables_make(&module);
    }
}
