// SPDX-License-Identifier: MIT
// W3C Trace Context. Source: its recommendation (levels 1 and 2), sections traceparent and tracestate.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "model/trace_parent.h"
#include "wire/formats.h"

enum {
    PARENT_MAX = 256,     // of versions to come
    STATE_MAX = 8192,     // of one header
    STATE_MEMBERS = 32,   // more make all of it invalid
    STATE_PART_MAX = 256, // of a key, and of a value
};

static int w3c_read_parent(gp_header_text_t text, prof_context_t *context)
{
    char copy[PARENT_MAX + 1];
    uint8_t flags = 0;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    int error = gp_trace_parent_read(copy, &context->trace, &context->parent_id, &flags);
    context->flags = flags & 1 ? PROF_CONTEXT_SAMPLED : 0;
    return error;
}

static bool w3c_is_key(const char *key, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (memchr("abcdefghijklmnopqrstuvwxyz0123456789_-*/@", key[i], 41) == NULL)
            return false;
    return len > 0 && len <= STATE_PART_MAX;
}

static bool w3c_is_value(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (value[i] < ' ' || value[i] > '~' || value[i] == ',' || value[i] == '=')
            return false;
    return len > 0 && len <= STATE_PART_MAX;
}

static bool w3c_is_member(gp_header_text_t member)
{
    const char *equals = memchr(member.at, '=', member.len);
    size_t key_len = equals != NULL ? (size_t)(equals - member.at) : 0;
    return equals != NULL && w3c_is_key(member.at, key_len) && w3c_is_value(equals + 1, member.len - key_len - 1);
}

typedef struct state {
    char *text; // [PROF_CONTEXT_TRACESTATE_SIZE]
    size_t len;
    unsigned members;
    bool is_full; // further members are left out, whole
} state_t;

static bool w3c_add_member(state_t *state, gp_header_text_t member)
{
    if (!w3c_is_member(member) || ++state->members > STATE_MEMBERS)
        return false;
    size_t comma = state->len > 0, needed = state->len + comma + member.len;
    state->is_full = state->is_full || needed >= PROF_CONTEXT_TRACESTATE_SIZE;
    if (state->is_full)
        return true;
    if (comma)
        state->text[state->len] = ',';
    memcpy(state->text + state->len + comma, member.at, member.len);
    state->len = needed;
    state->text[needed] = '\0';
    return true;
}

static bool w3c_add_members(state_t *state, gp_header_text_t text)
{
    const char *end = text.at + text.len;
    for (const char *at = text.at, *stop; at < end; at = stop + 1) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        stop = comma != NULL ? comma : end;
        gp_header_text_t member = {at, (size_t)(stop - at)};
        while (member.len > 0 && (*member.at == ' ' || *member.at == '\t'))
            member.at++, member.len--;
        while (member.len > 0 && (member.at[member.len - 1] == ' ' || member.at[member.len - 1] == '\t'))
            member.len--;
        if (member.len > 0 && !w3c_add_member(state, member))
            return false;
    }
    return true;
}

// The members of all its headers, in order. Where it is invalid there is none.
static void w3c_read_state(const prof_header_t *headers, size_t count, prof_context_t *context)
{
    state_t state = {.text = context->tracestate};
    gp_header_text_t text;
    for (size_t i = 0; i < count; i++) {
        if (!gp_header_is(&headers[i], "tracestate"))
            continue;
        if (!gp_text(headers[i].value, STATE_MAX, &text) || !w3c_add_members(&state, text)) {
            context->tracestate[0] = '\0';
            return;
        }
    }
}

static int w3c_read(const prof_header_t *headers, size_t count, uint64_t now_ms, prof_context_t *context)
{
    gp_header_text_t text;
    (void)now_ms;
    int error = gp_header_find(headers, count, "traceparent", PARENT_MAX, &text);
    if (error == 0)
        error = w3c_read_parent(text, context);
    if (error == 0)
        w3c_read_state(headers, count, context);
    return error;
}

static int w3c_write(const prof_context_t *context, uint64_t now_ms, char *text)
{
    char parent[PROF_TRACE_TRACEPARENT_SIZE];
    uint64_t span = context->parent_id;
    (void)now_ms;
    while (span == 0) // the caller has none, and it may not be zero
        if (getrandom(&span, sizeof(span), 0) != sizeof(span))
            span = 1;
    prof_trace_to_traceparent(&context->trace, span, context->flags & PROF_CONTEXT_SAMPLED, parent);
    int len = sprintf(text, "traceparent: %s\r\n", parent);
    if (context->tracestate[0] != '\0')
        snprintf(text + len, PROF_CONTEXT_TEXT_SIZE - (size_t)len, "tracestate: %s\r\n", context->tracestate);
    return 0;
}

const gp_wire_format_t gp_wire_w3c = {"w3c", false, w3c_read, w3c_write};
