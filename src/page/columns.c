// SPDX-License-Identifier: MIT
#include "page/columns.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX ((UINT64_C(1) << 53) - 1)

void gp_page_table_begin(gp_page_table_t *table, const char *name, const char *columns)
{
    *table = (gp_page_table_t){.name = name};
    while (*columns != '\0' && table->count < GP_COLUMNS_MAX) {
        gp_column_t *column = &table->columns[table->count];
        column->encoding = strncmp(columns, "d:", 2) == 0 ? 'd' : 'u';
        columns += column->encoding == 'd' ? 2 : 0;
        size_t len = strcspn(columns, " ");
        memcpy(table->names[table->count], columns, len < GP_COLUMN_NAME_SIZE ? len : GP_COLUMN_NAME_SIZE - 1);
        column->table = name;
        column->name = table->names[table->count++];
        columns += len + (columns[len] == ' ');
    }
}

static void columns_put(gp_column_t *column, uint64_t value)
{
    char bytes[10];
    size_t len = 0;
    if (value > NUMBER_MAX)
        value = NUMBER_MAX;
    uint64_t number = value;
    if (column->encoding == 'd') {
        number = value >= column->before ? 2 * (value - column->before) : 2 * (column->before - value) - 1;
        column->before = value;
    }
    for (; number > 127; number >>= 7)
        bytes[len++] = (char)(number | 128);
    bytes[len++] = (char)number;
    gp_text_add(&column->bytes, bytes, len);
    column->count++;
}

void gp_page_table_row(gp_page_table_t *table, const uint64_t *values)
{
    for (size_t i = 0; i < table->count; i++)
        columns_put(&table->columns[i], values[i]);
}

void gp_page_table_free(gp_page_table_t *table)
{
    for (size_t i = 0; i < table->count; i++)
        gp_text_free(&table->columns[i].bytes);
    table->count = 0;
}
