// SPDX-License-Identifier: MIT
#include "php_requests.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "coro/threads.h"
#include "interpose/interpose.h"
#include "interpose/request.h"
#include "model/trace_parent.h"
#include "not_known.h"
#include "patch/hooks.h"
#include "php_trial.h"

enum {
    METHOD = 8, // in sapi_globals
    SCRIPT = 40,
    URI = 48,
    STATUS = 216,
    GLOBALS_BYTES = 220, // that are read
    VARIABLE_OF = 9,     // word of sapi_module
    HEADER_STATUS = 4,   // sapi_header_op()'s number for it
    OK = 200,            // as each request begins

    TYPE_IN_C = 1, // a function's first byte
    NAME = 8,
    CODE = 72,
    FUNCTION_BYTES = 80,
    TYPE_STRING = 6, // a value's
    PROVED_SIZE = 4096,
    SCRIPT_MAX = 191, // bytes of its path
};

typedef void code_t(void *frame, void *value);
typedef char *variable_t(const char *name, size_t len);

static struct {              // of the engine's API
    const uintptr_t *module; // begins with its name
    variable_t *variable;    // what the module's says, copied
    void (*give_back)(void *memory);
    int (*header)(int what, void *value);
    int (*evaluate)(const char *text, size_t size, void *value, const char *name);
    void (*release)(void *value);
    void *(*function)(const char *name, size_t len);
} php;

typedef enum state { NEW, UNPROVED, KNOWN, REFUSED } state_t;

static state_t state;
static uintptr_t globals;
static variable_t *variable_of; // the module's; NULL: it has none, and words of sapi_globals are read
static prof_span_t *span;

static bool php_requests_find_api(void)
{
    const gp_interpose_wanted_t all[] = {
        {&php.module, "sapi_module"},    {&php.variable, "sapi_getenv"},
        {&php.give_back, "_efree"},      {&php.header, "sapi_header_op"},
        {&php.release, "zval_ptr_dtor"}, {&php.evaluate, "zend_eval_stringl"},
        {&globals, "sapi_globals"},      {&php.function, "zend_fetch_function_str"},
    };
    if (!gp_interpose_find_all(all, sizeof(all) / sizeof(all[0]), true))
        return false;
    gp_php_code_t place = gp_php_extent("sapi_globals");
    return place.hi - place.lo >= GLOBALS_BYTES;
}

// at: where sapi_globals has it; 0 = nowhere. NULL: there is none.
static const char *php_requests_fact(const char *variable, size_t at)
{
    if (variable_of != NULL)
        return variable_of(variable, strlen(variable));
    return at != 0 ? (const char *)gp_look_word(globals + at) : NULL; // NOLINT(performance-no-int-to-ptr)
}

static void php_requests_open(void)
{
    char path[GP_REQUEST_URI_SIZE], name[GP_REQUEST_NAME_SIZE];
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    prof_trace_id_t trace;
    uint8_t flags;
    const char *caller = php_requests_fact("HTTP_TRACEPARENT", 0);
    options.flags = PROF_SPAN_REMOTE_PARENT;
    if (caller != NULL && gp_trace_parent_read(caller, &trace, &options.parent_id, &flags) == 0)
        options.trace = &trace;
    span = prof_span_begin(PROF_SPAN_REQUEST, "request", &options);
    const char *method = span != NULL ? php_requests_fact("REQUEST_METHOD", METHOD) : NULL;
    if (method == NULL)
        return;
    const char *uri = php_requests_fact("REQUEST_URI", URI), *script = php_requests_fact("SCRIPT_FILENAME", SCRIPT);
    uri = uri != NULL ? uri : php_requests_fact("SCRIPT_NAME", 0);
    size_t len = uri != NULL ? strcspn(uri, "?") : 0;
    if (len >= sizeof(path))
        for (len = sizeof(path) - 1; len > 0 && ((uint8_t)uri[len] & 0xc0) == 0x80; len--)
            ; // back to where a character of UTF-8 begins
    memcpy(path, uri != NULL ? uri : "", len);
    path[len] = '\0';
    gp_request_name(span, method, path, name);
    size_t script_len = script != NULL ? strlen(script) : 0;
    if (script != NULL) // its end, so that there is room for the status
        prof_span_set(span, "php.script", script + (script_len > SCRIPT_MAX ? script_len - SCRIPT_MAX : 0));
}

// The number is changed and put back; where another one was read, it is what it was all the same.
static bool php_requests_has_status(void)
{
    if (gp_look_half(globals + STATUS) != OK)
        return false;
    php.header(HEADER_STATUS, (void *)(uintptr_t)(OK + 1)); // NOLINT(performance-no-int-to-ptr)
    bool is_changed = gp_look_half(globals + STATUS) == OK + 1;
    php.header(HEADER_STATUS, (void *)(uintptr_t)OK); // NOLINT(performance-no-int-to-ptr)
    return is_changed && gp_look_half(globals + STATUS) == OK;
}

static void php_requests_refuse(const char *why)
{
    static gp_not_known_t fact;
    state = REFUSED;
    gp_not_known_tell(&fact, "PHP: %s, its requests are not told apart", why);
}

static bool php_requests_is_engines(uintptr_t code)
{
    Dl_info engines, its;
    return dladdr((void *)globals, &engines) != 0 && // NOLINT(performance-no-int-to-ptr)
           dladdr((void *)code, &its) != 0 &&        // NOLINT(performance-no-int-to-ptr)
           engines.dli_fbase == its.dli_fbase;
}

// The module says the same as the engine does.
static bool php_requests_has_variables(const char *method)
{
    static const char name[] = "REQUEST_METHOD";
    uintptr_t code = php.module[VARIABLE_OF];
    variable_of = code != 0 && php_requests_is_engines(code) ? (variable_t *)code : NULL;
    const char *said = variable_of != NULL ? variable_of(name, sizeof(name) - 1) : NULL;
    return said != NULL && strcmp(said, method) == 0;
}

// A command line's PHP has no requests, and nothing is known of it.
static void php_requests_learn(void)
{
    static const char name[] = "REQUEST_METHOD";
    if (!php_requests_find_api()) {
        php_requests_refuse("is a build that lacks what is called");
        return;
    }
    char *method = php.variable(name, sizeof(name) - 1);
    bool is_own = strcmp((const char *)php.module[0], "cli-server") == 0;   // NOLINT(performance-no-int-to-ptr)
    if (method == NULL && (!is_own || gp_look_word(globals + METHOD) == 0)) // opcache's preloading has no request, too
        return;
    if (!gp_php_is_known())
        php_requests_refuse("is of another version than 8.2");
    else if (method != NULL && !php_requests_has_variables(method))
        php_requests_refuse("does not keep a request where it says");
    else if (!php_requests_has_status())
        php_requests_refuse("does not keep a status where it says");
    else
        state = method != NULL ? KNOWN : UNPROVED;
    if (method != NULL)
        php.give_back(method);
}

// Do the request's words say what the engine does? The beginnings of long texts are compared. Returns UNPROVED where
// this request cannot tell.
static state_t php_requests_prove(void)
{
    static const char text[] = "($_SERVER['REQUEST_METHOD'] ?? '') . \"\\n\" . ($_SERVER['REQUEST_URI'] ?? '') . "
                               "\"\\n\" . ($_SERVER['SCRIPT_FILENAME'] ?? '') . \"\\n\"";
    static const size_t places[] = {METHOD, URI, SCRIPT};
    struct {
        uintptr_t word;
        uint32_t type, more;
    } value = {0};
    char kept[PROVED_SIZE];
    gp_peeks_t look = {0};
    gp_php_text_t said;
    if (php.evaluate(text, sizeof(text) - 1, &value, "greenprof") != 0 || (value.type & UINT8_MAX) != TYPE_STRING)
        return REFUSED;
    bool is_said = gp_php_read_text(&look, value.word, &said), is_same = true;
    const char *at = is_said ? (const char *)said.at : "\n"; // NOLINT(performance-no-int-to-ptr)
    is_said = at[0] != '\n';                                 // else the text is too long, or there is no $_SERVER
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && is_said && is_same; i++) {
        uintptr_t word = gp_look_word(globals + places[i]);
        size_t len = strcspn(at, "\n"), compared = len < sizeof(kept) ? len : sizeof(kept) - 1;
        is_same = word == 0 ? len == 0
                            : gp_peek(word, kept, compared + 1) && memcmp(kept, at, compared) == 0 &&
                                  (compared < len || kept[len] == '\0');
        at += len + 1;
    }
    php.release(&value);
    return !is_said ? UNPROVED : is_same ? KNOWN : REFUSED;
}

static code_t *finish; // fastcgi_finish_request()

GP_ENTRY_CODE static void php_requests_finish(void *frame, void *value)
{
    finish(frame, value);
    gp_php_request_end();
}

// A function written in C is called by the engine through a word.
static void php_requests_find_finish(void)
{
    static const char name[] = "fastcgi_finish_request";
    static bool is_asked;
    uintptr_t function = is_asked ? 0 : (uintptr_t)php.function(name, sizeof(name) - 1);
    gp_peeks_t look = {0};
    gp_php_text_t said;
    is_asked = true;
    if (function == 0 || !gp_look_may_read(&look, function, FUNCTION_BYTES) || gp_look_byte(function) != TYPE_IN_C ||
        !gp_php_read_text(&look, gp_look_word(function + NAME), &said) || said.len != sizeof(name) - 1 ||
        memcmp((const char *)said.at, name, said.len) != 0) // NOLINT(performance-no-int-to-ptr)
        return;
    void **code = (void **)(function + CODE); // NOLINT(performance-no-int-to-ptr)
    if (php_requests_is_engines((uintptr_t)*code)) {
        finish = (code_t *)*code;
        *code = (void *)php_requests_finish;
    }
}

typedef void deactivate_t(void);
GP_ENTRY_CODE deactivate_t gp_patch_sapi_deactivate_module;
void *gp_patch_real_sapi_deactivate_module;

void gp_php_request_begin(void)
{
    if (span != NULL) // of one that came to no end
        gp_request_end(span, "");
    span = NULL;
    if (!__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) || gp_patch_real_sapi_deactivate_module == NULL)
        return;
    if (state == NEW)
        php_requests_learn();
    if (state == KNOWN)
        php_requests_open();
}

void gp_php_request_started(void)
{
    if (state == UNPROVED) {
        state = REFUSED; // before: a fatal error leaves this by longjmp()
        state = php_requests_prove();
        if (state == REFUSED)
            php_requests_refuse("does not keep a request where it says");
        if (state == KNOWN)
            php_requests_open();
    }
    if (state == KNOWN)
        php_requests_find_finish();
}

void gp_php_request_end(void)
{
    char status[GP_REQUEST_STATUS_SIZE];
    if (span == NULL)
        return;
    unsigned code = gp_look_half(globals + STATUS);
    snprintf(status, sizeof(status), "%u", code != 0 ? code : OK);
    gp_request_end(span, status);
    span = NULL;
}

void gp_patch_sapi_deactivate_module(void)
{
    gp_php_request_end();
    GP_PATCHED(deactivate_t, sapi_deactivate_module)();
}
