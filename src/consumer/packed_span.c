// SPDX-License-Identifier: MIT
#include "consumer/packed_span.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "model/span.h"

#define STACK "\001stack"

// The numbers of a span, which the public form and a block have in the same bytes.
enum {
    ALIKE_AT = offsetof(prof_span_record_t, trace),
    ALIKE_LEN = offsetof(prof_span_record_t, name) - ALIKE_AT,
};
static_assert(offsetof(gp_packed_span_t, trace) == ALIKE_AT &&
                  offsetof(gp_packed_span_t, coroutine_id) == offsetof(prof_span_record_t, coroutine_id) &&
                  offsetof(gp_packed_span_t, switches) == offsetof(prof_span_record_t, switches) &&
                  offsetof(gp_packed_span_t, text_len) == ALIKE_AT + ALIKE_LEN,
              "spool files of version 1 have this layout");

static bool packed_span_add_text(gp_packed_span_t *into, const char *text, size_t len)
{
    if (len >= GP_PACKED_TEXT_MAX - into->text_len)
        return false;
    memcpy(into->text + into->text_len, text, len);
    into->text[into->text_len + len] = '\0';
    into->text_len += (uint32_t)len + 1;
    return true;
}

// Numbers without a place in the block are fields, as the stack is: no text has such a key.
#define IS_ALIKE(shown) (offsetof(prof_span_record_t, shown) < ALIKE_AT + ALIKE_LEN)

static void packed_span_add_number(gp_packed_span_t *into, const char *key, uint64_t number)
{
    char text[24];
    if (number == 0)
        return;
    packed_span_add_text(into, key, strlen(key));
    packed_span_add_text(into, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, number));
    into->field_count++;
}

static void packed_span_add_numbers(gp_packed_span_t *into, const prof_span_record_t *span)
{
#define ADD(field, shown, key)                                                                                         \
    if (!IS_ALIKE(shown))                                                                                              \
        packed_span_add_number(into, "\001" key, span->shown);
    GP_SPAN_SHOWN(ADD)
}

static bool packed_span_is_number(prof_span_record_t *span, const char *key, const char *value)
{
#define TAKE(field, shown, its_key)                                                                                    \
    if (!IS_ALIKE(shown) && strcmp(key, "\001" its_key) == 0) {                                                        \
        span->shown = strtoull(value, NULL, 10);                                                                       \
        return true;                                                                                                   \
    }
    GP_SPAN_SHOWN(TAKE)
    return false;
}

// As a field with a key that no text has: spool files of both forms can be read.
static void packed_span_add_stack(gp_packed_span_t *into, const char *stack)
{
    if (stack == NULL || strlen(STACK) + strlen(stack) + 2 > GP_PACKED_TEXT_MAX - into->text_len)
        return;
    packed_span_add_text(into, STACK, strlen(STACK));
    packed_span_add_text(into, stack, strlen(stack));
    into->field_count++;
}

static void packed_span_add_fields(gp_packed_span_t *into, const prof_span_record_t *span)
{
    for (size_t i = 0; i < span->field_count && into->field_count < GP_PACKED_FIELDS_MAX; i++) {
        size_t key_len = strlen(span->fields[i].key), value_len = strlen(span->fields[i].value);
        if (key_len + value_len + 2 > GP_PACKED_TEXT_MAX - into->text_len)
            continue;
        packed_span_add_text(into, span->fields[i].key, key_len);
        packed_span_add_text(into, span->fields[i].value, value_len);
        into->field_count++;
    }
}

void gp_packed_make(gp_packed_span_t *into, const prof_span_record_t *span)
{
    memset(into, 0, sizeof(*into));
    memcpy((char *)into + ALIKE_AT, (const char *)span + ALIKE_AT, ALIKE_LEN);
    packed_span_add_text(into, span->name, strnlen(span->name, GP_PACKED_TEXT_MAX / 4));
    packed_span_add_numbers(into, span);
    packed_span_add_stack(into, span->stack);
    packed_span_add_fields(into, span);
    into->bytes = ((uint32_t)sizeof(*into) + into->text_len + 7) & ~7u;
    memset(into->text + into->text_len, 0, into->bytes - sizeof(*into) - into->text_len);
}

static uint32_t packed_span_check_of(const gp_packed_span_t *packed)
{
    return (uint32_t)(gp_hash_bytes(packed->trace, packed->bytes - offsetof(gp_packed_span_t, trace)) >> 32);
}

void gp_packed_sign(gp_packed_span_t *packed)
{
    packed->check = packed_span_check_of(packed);
}

static uint32_t packed_span_count_texts(const gp_packed_span_t *packed)
{
    uint32_t texts = 0;
    for (uint32_t i = 0; i < packed->text_len; i++)
        texts += packed->text[i] == '\0';
    return texts;
}

bool gp_packed_is_whole(const gp_packed_span_t *packed, size_t bytes)
{
    return bytes >= sizeof(*packed) && packed->bytes == bytes && bytes <= GP_PACKED_BYTES_MAX && bytes % 8 == 0 &&
           packed->text_len > 0 && packed->text_len <= bytes - sizeof(*packed) &&
           packed->field_count <= GP_PACKED_FIELDS_MAX && packed->check == packed_span_check_of(packed) &&
           packed->text[packed->text_len - 1] == '\0' && packed_span_count_texts(packed) == 1 + 2 * packed->field_count;
}

void gp_packed_read(const gp_packed_span_t *packed, prof_span_record_t *span, prof_field_t *fields)
{
    *span = (prof_span_record_t){.size = sizeof(*span), .name = packed->text, .fields = fields};
    memcpy((char *)span + ALIKE_AT, (const char *)packed + ALIKE_AT, ALIKE_LEN);
    const char *at = packed->text + strlen(packed->text) + 1;
    for (uint32_t i = 0; i < packed->field_count; i++) {
        const char *key = at, *value = at + strlen(at) + 1;
        at = value + strlen(value) + 1;
        if (strcmp(key, STACK) == 0)
            span->stack = value;
        else if (!packed_span_is_number(span, key, value))
            fields[span->field_count++] = (prof_field_t){.key = key, .value = value};
    }
}
