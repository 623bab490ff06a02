// SPDX-License-Identifier: MIT
#include "interpreter/lines.h"

enum { SHORT_LAST = 9, ONE_LINE_FIRST = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG_FORM = 14, NO_LOCATION = 15 };

typedef struct table {
    const uint8_t *at, *end;
} table_t;

static unsigned lines_take_varint(table_t *table)
{
    unsigned value = 0, shift = 0, byte = 64;
    while ((byte & 64) && table->at < table->end && shift < 30) {
        byte = *table->at++;
        value |= (byte & 63) << shift;
        shift += 6;
    }
    return value;
}

static int lines_take_signed(table_t *table)
{
    unsigned value = lines_take_varint(table);
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

// By how many lines an entry goes on; its columns are passed over.
static int lines_take_delta(table_t *table, unsigned form)
{
    int delta = 0;
    if (form <= SHORT_LAST) {
        table->at += 1;
    } else if (form <= ONE_LINE_LAST) {
        delta = (int)form - ONE_LINE_FIRST;
        table->at += 2;
    } else if (form == NO_COLUMNS) {
        delta = lines_take_signed(table);
    } else if (form == LONG_FORM) {
        delta = lines_take_signed(table);
        for (int i = 0; i < 3; i++) // last line, column, last column
            lines_take_varint(table);
    }
    return delta;
}

uint32_t gp_cpython_line(const uint8_t *bytes, size_t len, uint32_t first_line, int index)
{
    table_t table = {bytes, bytes + len};
    int64_t line = first_line;
    if (index < 0)
        return first_line;
    for (int next = 0; table.at < table.end;) {
        unsigned head = *table.at++, form = head >> 3 & 15;
        next += (int)(head & 7) + 1;
        line += lines_take_delta(&table, form);
        if (index < next)
            return form == NO_LOCATION || line < 0 ? 0 : (uint32_t)line;
    }
    return 0;
}
