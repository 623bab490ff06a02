// SPDX-License-Identifier: MIT
#include "unwind/row_table.h"

gp_table_row_t gp_table_rows[GP_TABLE_ROWS];
uint32_t gp_table_steps[GP_TABLE_STEPS];
gp_row_table_t gp_row_tables[GP_TABLES_MAX];
_Atomic unsigned gp_row_table_count;

static gp_packed_row_t row_table_find_in(const gp_row_table_t *table, uint32_t offset, gp_row_range_t *range)
{
    const gp_table_row_t *row = &gp_table_rows[table->rows + gp_table_steps[table->step + offset / GP_TABLE_STEP]];
    while (row[1].start <= offset)
        row++;
    *range = (gp_row_range_t){
        .lo = table->lo + row->start, .hi = table->lo + row[1].start, .text_lo = table->lo, .row = row->row};
    return row->row;
}

gp_packed_row_t gp_row_table_find(uintptr_t at, gp_row_range_t *range)
{
    // Acquire: pairs with publish()'s release.
    unsigned count = atomic_load_explicit(&gp_row_table_count, memory_order_acquire);
    for (const gp_row_table_t *table = gp_row_tables; table < gp_row_tables + count; table++)
        if (at - table->lo < table->bytes)
            return row_table_find_in(table, (uint32_t)(at - table->lo), range);
    return 0;
}
