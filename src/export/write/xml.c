// SPDX-License-Identifier: MIT
#include "export/write/xml.h"

#include <stdbool.h>
#include <string.h>

#include "export/write/text.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

// Write one character. Returns how many bytes of `text` it was.
static size_t xml_put_character(FILE *out, const char *text)
{
    size_t len = gp_text_utf8_len(text);
    unsigned char c = (unsigned char)text[0];
    if (len == 0 || c < ' ' || c == 0x7f ||
        (len == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0)))
        fputs(REPLACEMENT, out);
    else if (c == '&')
        fputs("&amp;", out);
    else if (c == '<')
        fputs("&lt;", out);
    else if (c == '>')
        fputs("&gt;", out);
    else if (c == '"')
        fputs("&quot;", out);
    else
        fwrite(text, 1, len, out);
    return len ? len : 1;
}

void gp_xml_text(FILE *out, const char *text)
{
    while (*text != '\0')
        text += xml_put_character(out, text);
}

// From U+1100 on there are scripts with wide characters; to take all of them for wide is on the safe side.
static size_t xml_columns_of(const char *text)
{
    return (unsigned char)text[0] >= 0xe1 ? 2 : 1;
}

static size_t xml_step_of(const char *text)
{
    size_t len = gp_text_utf8_len(text);
    return len ? len : 1;
}

void gp_xml_text_cut(FILE *out, const char *text, size_t columns)
{
    size_t width = 0;
    for (const char *at = text; *at != '\0' && width <= columns; at += xml_step_of(at))
        width += xml_columns_of(at);
    bool fits = width <= columns;
    size_t room = fits ? columns : columns - 1; // the ellipsis takes one
    for (width = 0; *text != '\0' && width + xml_columns_of(text) <= room;) {
        width += xml_columns_of(text);
        text += xml_put_character(out, text);
    }
    if (!fits)
        fputs(ELLIPSIS, out);
}
