// SPDX-License-Identifier: MIT
#include "export/formats.h"

#include <string.h>

const gp_exporter_t *gp_exporter_table(void)
{
#define ROW(name, suffix, is_binary, wants, description)                                                               \
    {#name, suffix, description, is_binary, wants, gp_##name##_write},
    static const gp_exporter_t table[] = {GP_FORMATS(ROW){0}};
    return table;
}

const gp_exporter_t *gp_exporter_find(const char *name)
{
    const gp_exporter_t *row = gp_exporter_table();
    while (row->name != NULL && strcmp(row->name, name) != 0)
        row++;
    return row->name != NULL ? row : NULL;
}
