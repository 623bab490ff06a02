// SPDX-License-Identifier: MIT
// Names of operations that are whole statements: a line's worth of each is the name, all of it is a field.
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "export/write/text.h"
#include "traces/spans.h"

enum { NAME_MAX_BYTES = 100, WORD_MAX_BYTES = 30 };

#define CUT "..."

// White space as one blank each, as far as there is room. Returns the length; `*rest` is what was left out, or its end.
static size_t short_name_fold(char out[NAME_MAX_BYTES + 1], const char *name, const char **rest)
{
    size_t len = 0;
    while (isspace((unsigned char)*name))
        name++;
    while (*name != '\0') {
        size_t space = strspn(name, " \t\r\n\v\f"), bytes = gp_text_utf8_len(name);
        bytes = bytes > 0 ? bytes : 1;
        if (space > 0 && name[space] == '\0')
            bytes = 0;
        else if (space > 0)
            bytes = 1;
        if (len + bytes > NAME_MAX_BYTES)
            break;
        memcpy(out + len, space > 0 ? " " : name, bytes);
        len += bytes;
        name += space > 0 ? space : bytes;
    }
    *rest = name;
    return len;
}

// At a word's end, if one is near.
static size_t short_name_end(const char *out, size_t len)
{
    size_t room = NAME_MAX_BYTES - strlen(CUT), end = len < room ? len : room;
    while (end > 0 && ((unsigned char)out[end] & 0xc0) == 0x80)
        end--;
    for (size_t at = end; at > 0 && end - at < WORD_MAX_BYTES; at--)
        if (out[at] == ' ' || out[at - 1] == ',')
            return at;
    return end;
}

static bool short_name_is_kept(const prof_span_record_t *span)
{
    for (uint32_t i = 0; i < span->field_count; i++)
        if (strncmp(span->fields[i].value, span->name, strlen(span->name)) == 0)
            return true;
    return false;
}

static int short_name_keep(gp_spans_t *set, prof_span_record_t *span)
{
    prof_field_t *fields = gp_arena_alloc(&set->arena, (span->field_count + 1) * sizeof(*fields));
    if (fields == NULL)
        return -ENOMEM;
    if (span->field_count > 0)
        memcpy(fields, span->fields, span->field_count * sizeof(*fields));
    fields[span->field_count++] = (prof_field_t){"name", span->name};
    span->fields = fields;
    return 0;
}

int gp_span_shorten(gp_spans_t *set, prof_span_record_t *span)
{
    char out[NAME_MAX_BYTES + sizeof(CUT)];
    const char *rest;
    if (strlen(span->name) <= NAME_MAX_BYTES && strpbrk(span->name, "\t\r\n\v\f") == NULL)
        return 0;
    size_t len = short_name_fold(out, span->name, &rest);
    if (*rest != '\0')
        len = short_name_end(out, len);
    strcpy(out + len, *rest != '\0' ? CUT : "");
    if (!short_name_is_kept(span) && short_name_keep(set, span) < 0)
        return -ENOMEM;
    span->name = gp_spans_text(set, out);
    return span->name != NULL ? 0 : -ENOMEM;
}
