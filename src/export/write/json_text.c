// SPDX-License-Identifier: MIT
#include "export/write/json_text.h"

#include <inttypes.h>
#include <string.h>

#include "export/write/text.h"

// Begin a value or key: the comma and line break before it.
static void json_text_begin(gp_json_t *json)
{
    if (json->comma)
        putc_unlocked(',', json->out);
    if (json->line)
        putc_unlocked('\n', json->out);
    json->comma = true;
    json->line = false;
}

void gp_json_open(gp_json_t *json, char bracket)
{
    json_text_begin(json);
    putc_unlocked(bracket, json->out);
    json->comma = false;
}

void gp_json_close(gp_json_t *json, char bracket)
{
    json->comma = false;
    json_text_begin(json);
    putc_unlocked(bracket, json->out);
}

void gp_json_line(gp_json_t *json)
{
    json->line = true;
}

// How many bytes from `text` on are written as they are, whatever is around them.
static size_t json_text_plain_len(const char *text)
{
    size_t len = 0;
    while ((unsigned char)text[len] >= ' ' && (unsigned char)text[len] < 0x7f && text[len] != '"' &&
           text[len] != '\\' && text[len] != '<')
        len++;
    return len;
}

// Write the character at `text`, which is `len` bytes of UTF-8; 0 = not UTF-8.
static void json_text_put_character(FILE *out, const char *text, size_t len)
{
    unsigned char c = (unsigned char)*text;
    if (len == 0)
        fputs("\xef\xbf\xbd", out);
    else if (c == '"' || c == '\\')
        fprintf(out, "\\%c", c);
    else if (c == '\n')
        fputs("\\n", out);
    else if (c < ' ' || c == 0x7f || (c == '<' && (text[1] == '/' || text[1] == '!')))
        fprintf(out, "\\u%04x", c);
    else if (len == 3 && (memcmp(text, "\xe2\x80\xa8", 3) == 0 || memcmp(text, "\xe2\x80\xa9", 3) == 0))
        fprintf(out, "\\u20%02x", (unsigned char)text[2] - 0x80); // line ends in JavaScript
    else
        fwrite(text, 1, len, out);
}

static void json_text_put_text(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    while (*text != '\0') {
        size_t plain = json_text_plain_len(text);
        fwrite_unlocked(text, 1, plain, out);
        text += plain;
        size_t len = gp_text_utf8_len(text);
        if (*text != '\0')
            json_text_put_character(out, text, len);
        text += len != 0 ? len : *text != '\0';
    }
    putc_unlocked('"', out);
}

void gp_json_key(gp_json_t *json, const char *key)
{
    json_text_begin(json);
    json_text_put_text(json->out, key);
    putc_unlocked(':', json->out);
    json->comma = false;
}

void gp_json_text(gp_json_t *json, const char *text)
{
    json_text_begin(json);
    json_text_put_text(json->out, text);
}

void gp_json_uint(gp_json_t *json, uint64_t value)
{
    char text[GP_TEXT_UINT_MAX];
    json_text_begin(json);
    fwrite_unlocked(text, 1, gp_text_uint(text, value), json->out);
}

void gp_json_int(gp_json_t *json, int64_t value)
{
    json_text_begin(json);
    fprintf(json->out, "%" PRId64, value);
}

void gp_json_bool(gp_json_t *json, bool value)
{
    json_text_begin(json);
    fputs(value ? "true" : "false", json->out);
}

void gp_json_address(gp_json_t *json, uint64_t value)
{
    json_text_begin(json);
    fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

static void json_text_put_decimal(gp_json_t *json, uint64_t ns, uint64_t unit_ns, unsigned digits)
{
    char text[32];
    json_text_begin(json);
    gp_text_decimal(text, ns, unit_ns, digits);
    fputs(text, json->out);
}

void gp_json_seconds(gp_json_t *json, uint64_t ns)
{
    json_text_put_decimal(json, ns, 1000000000, 9);
}

void gp_json_milliseconds(gp_json_t *json, uint64_t ns)
{
    json_text_put_decimal(json, ns, 1000000, 6);
}

void gp_json_microseconds(gp_json_t *json, uint64_t ns)
{
    json_text_put_decimal(json, ns, 1000, 3);
}

void gp_json_raw(gp_json_t *json, const char *text, size_t len)
{
    json_text_begin(json);
    fwrite_unlocked(text, 1, len, json->out);
}

void gp_json_null(gp_json_t *json)
{
    json_text_begin(json);
    fputs("null", json->out);
}

void gp_json_minus_one(gp_json_t *json)
{
    json_text_begin(json);
    fputs("-1", json->out);
}

void gp_json_key_text(gp_json_t *json, const char *key, const char *text)
{
    gp_json_key(json, key);
    gp_json_text(json, text);
}

void gp_json_key_uint(gp_json_t *json, const char *key, uint64_t value)
{
    gp_json_key(json, key);
    gp_json_uint(json, value);
}
