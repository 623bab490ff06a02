// SPDX-License-Identifier: MIT
#include "export/formats.h"

#include <string.h>
#include <strings.h>

#include "export/format_words.h" // generated

const gp_exporter_t *gp_exporter_table(void)
{
#define ROW(name, suffix, is_binary, wants, description)                                                               \
    {#name, suffix, description, is_binary, wants, gp_##name##_write},
    static const gp_exporter_t table[] = {GP_FORMATS(ROW){0}};
    return table;
}

const gp_exporter_t *gp_exporter_find(const char *name)
{
    const struct format_word *word = format_word_find(name, strlen(name));
    return word != NULL ? gp_exporter_table() + word->place : NULL;
}

static bool formats_ends_in(const char *path, const char *suffix)
{
    size_t len = strlen(path), end = strlen(suffix);
    return len > end && strcasecmp(path + len - end, suffix) == 0;
}

const gp_exporter_t *gp_exporter_of_file(const char *path)
{
    static const char *const others[][2] = {{".htm", "html"}, {".pprof", "pprof"}, {".pstats", "pstats"}};
    const gp_exporter_t *found = NULL;
    for (const gp_exporter_t *row = gp_exporter_table(); row->name != NULL; row++)
        if (formats_ends_in(path, row->suffix) && (found == NULL || strlen(row->suffix) > strlen(found->suffix)))
            found = row; // ".trace.json" says more than ".json"
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && found == NULL; i++)
        if (formats_ends_in(path, others[i][0]))
            found = gp_exporter_find(others[i][1]);
    return found;
}

bool gp_exporter_has_suffix(const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path, *dot = strrchr(base, '.');
    return dot != NULL && dot != base && strspn(dot + 1, letters) > 0;
}
