// SPDX-License-Identifier: MIT
#include "trace/span_text.h"

#include <errno.h>
#include <string.h>

#include "greenprof/trace.h"
#include "signal/thread.h"

static void span_text_add_text(gp_span_slot_t *slot, const char *text, size_t len)
{
    uint16_t at = atomic_load_explicit(&slot->text_len, memory_order_relaxed);
    memcpy(slot->text + at, text, len);
    slot->text[at + len] = '\0';
    // Release: partner of the copiers' acquires.
    atomic_store_explicit(&slot->text_len, (uint16_t)(at + len + 1), memory_order_release);
}

size_t gp_span_text_cut(const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);
    if (len <= max)
        return len;
    len = max;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    gp_span_count(GP_COUNTER_CUT_FIELDS);
    return len;
}

// Is it a value of the type that the kind's field of this key has?
static bool span_text_is_of_type(uint16_t kind, const char *key, const char *value)
{
    enum { TEXT, NUMBER, PROF_SPAN_ANY = 0 };
#define ROW(kind, key, type) {PROF_SPAN_##kind, type, key},
    static const struct {
        uint16_t kind, type;
        const char *key;
    } rows[] = {PROF_SPAN_FIELDS(ROW)};
#undef ROW
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].type == NUMBER && rows[i].kind == kind && strcmp(rows[i].key, key) == 0) {
            const char *digits = value + (value[0] == '-');
            return digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
        }
    return true;
}

int gp_span_text_add_field(gp_span_slot_t *slot, const char *key, const char *value)
{
    if (!span_text_is_of_type(slot->span.kind, key, value))
        return -EINVAL;
    size_t room = GP_SPAN_TEXT_MAX - atomic_load_explicit(&slot->text_len, memory_order_relaxed);
    size_t key_len = gp_span_text_cut(key, GP_SPAN_KEY_MAX);
    if (slot->field_count == GP_SPAN_FIELDS_MAX || key_len + 2 > room) {
        gp_span_count(GP_COUNTER_CUT_FIELDS);
        return -ENOSPC;
    }
    size_t value_len = gp_span_text_cut(value, room - key_len - 2);
    span_text_add_text(slot, key, key_len);
    span_text_add_text(slot, value, value_len);
    slot->field_count++;
    return 0;
}

int prof_span_set(prof_span_t *span, const char *key, const char *value)
{
    uint64_t handle = (uintptr_t)span;
    if (handle == 0 || gp_span_is_unrecorded(handle))
        return 0;
    gp_span_slot_t *slot = gp_span_slot_open(handle);
    if (slot == NULL || key == NULL || key[0] == '\0')
        return -EINVAL;
    return gp_span_text_add_field(slot, key, value != NULL ? value : "");
}

int prof_span_rename(prof_span_t *span, const char *name)
{
    uint64_t handle = (uintptr_t)span;
    if (handle == 0 || gp_span_is_unrecorded(handle))
        return 0;
    gp_span_slot_t *slot = gp_span_slot_open(handle);
    if (slot == NULL || name == NULL || name[0] == '\0')
        return -EINVAL;
    uint16_t text_len = atomic_load_explicit(&slot->text_len, memory_order_relaxed), before = slot->span.name_len;
    size_t len = gp_span_text_cut(name, GP_SPAN_NAME_MAX), fields_len = text_len - before;
    if (len + fields_len > GP_SPAN_TEXT_MAX) {
        gp_span_count(GP_COUNTER_CUT_FIELDS);
        return -ENOSPC;
    }
    // As a sequence lock's writer: partner of span_open_copy_open().
    atomic_fetch_add_explicit(&slot->renames, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    memmove(slot->text + len, slot->text + before, fields_len);
    memcpy(slot->text, name, len);
    slot->span.name_len = (uint16_t)len;
    atomic_store_explicit(&slot->text_len, (uint16_t)(len + fields_len), memory_order_release);
    atomic_fetch_add_explicit(&slot->renames, 1, memory_order_release);
    return 0;
}

int prof_span_fail(prof_span_t *span, const char *type, const char *message)
{
    uint64_t handle = (uintptr_t)span;
    if (handle == 0 || gp_span_is_unrecorded(handle))
        return 0;
    gp_span_slot_t *slot = gp_span_slot_open(handle);
    if (slot == NULL)
        return -EINVAL;
    atomic_fetch_or_explicit(&slot->flags, GP_SPAN_FAILED, memory_order_relaxed);
    int result = type != NULL ? gp_span_text_add_field(slot, "error.type", type) : 0;
    int other = message != NULL ? gp_span_text_add_field(slot, "error.message", message) : 0;
    return result != 0 ? result : other;
}
