// SPDX-License-Identifier: MIT
// Source: nginx 1.22, ngx_http_request.h (NGX_HTTP_MODULE's signature, main, parent), ngx_http_variables.c
// (ngx_http_get_variable), ngx_hash.h (ngx_hash), ngx_string.h (ngx_variable_value_t).
#include "nginx/nginx_api.h"

#include <string.h>

#include "not_known.h"
#include "patch/hooks.h"
#include "signal/look.h"

enum {
    SIGNATURE = 0x50545448, // "HTTP"
    LOOKED_AT_BYTES = 2048, // of a request, for the word of its main request, which is itself
    WORD = sizeof(uintptr_t),
    HASH_FACTOR = 31,
};

typedef struct text {
    size_t len;
    const unsigned char *data;
} text_t;

typedef struct value {
    unsigned len : 28, is_valid : 1, no_cacheable : 1, not_found : 1, escape : 1;
    const unsigned char *data;
} value_t;

typedef value_t *get_variable_t(uintptr_t request, text_t *name, uintptr_t key);

static get_variable_t *get_variable;
static size_t main_at; // 0 = not known

static bool nginx_api_is_request(uintptr_t request)
{
    gp_peeks_t look = {0};
    return gp_look_may_read(&look, request, LOOKED_AT_BYTES) && gp_look_half(request) == SIGNATURE;
}

// The first word that is the request itself, before a word for its parent, which it has none of.
static void nginx_api_find_main(uintptr_t request)
{
    for (size_t at = WORD; at + WORD < LOOKED_AT_BYTES && main_at == 0; at += WORD)
        if (gp_look_word(request + at) == request && gp_look_word(request + at + WORD) == 0)
            main_at = at;
}

bool gp_nginx_learn(uintptr_t request)
{
    static gp_not_known_t fact;
    static int known; // 0: not asked, 1: yes, -1: no
    if (known != 0)
        return known > 0;
    get_variable = (get_variable_t *)(uintptr_t)gp_patch_program_function("ngx_http_get_variable");
    known = get_variable != NULL && nginx_api_is_request(request) ? 1 : -1;
    if (known > 0)
        nginx_api_find_main(request);
    else
        gp_not_known_tell(&fact, "nginx: makes its requests otherwise than known, they are not told apart");
    return known > 0;
}

uintptr_t gp_nginx_main_of(uintptr_t request)
{
    return main_at != 0 && nginx_api_is_request(request) ? gp_look_word(request + main_at) : 0;
}

uintptr_t gp_nginx_parent_of(uintptr_t request)
{
    return main_at != 0 && nginx_api_is_request(request) ? gp_look_word(request + main_at + WORD) : 0;
}

bool gp_nginx_variable(uintptr_t request, const char *name, char *text, size_t size)
{
    text_t wanted = {strlen(name), (const unsigned char *)name};
    uintptr_t key = 0;
    for (size_t i = 0; i < wanted.len; i++)
        key = key * HASH_FACTOR + wanted.data[i];
    const value_t *value = get_variable(request, &wanted, key);
    bool is_there = value != NULL && value->is_valid && !value->not_found && value->len > 0;
    size_t len = is_there ? value->len : 0;
    len = len < size ? len : size - 1;
    if (is_there)
        memcpy(text, value->data, len);
    text[len] = '\0';
    return is_there;
}
