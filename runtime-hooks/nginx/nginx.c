// SPDX-License-Identifier: MIT
// Requests of nginx: each is a request here, and a coroutine, on which the functions run by which nginx works for it.
// Sub-requests are coroutines and spans of their own within it; what a module resumes for a request, as
// lua-nginx-module does light threads, is spawned by its coroutine.
//
// The functions are nginx's own, exported for modules; nginx calls them within the program, so they are patched
// (../patch). A request begins where nginx makes it, once its first bytes are there, and ends right before it is
// logged.
//
// Source: nginx 1.22, ngx_http_request.c, ngx_http_core_module.c; lua-nginx-module 0.10.23, ngx_http_lua_util.c.
#include "coro/announce.h"
#include "coro/coro_name.h"
#include "coro/spawn.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "interpose/request.h"
#include "lua/lua_hook.h"
#include "nginx/nginx_api.h"
#include "nginx/nginx_loop.h"
#include "nginx/nginx_table.h"
#include "patch/hooks.h"
#include "signal/region.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <stdio.h>

enum { DONE = -4, DECLINED = -5 };

typedef intptr_t call_t(uintptr_t request, intptr_t code);

static uintptr_t (*exdata_of)(lua_State *);

static prof_coro_t *nginx_owner(lua_State *state)
{
    gp_nginx_request_t *request = gp_nginx_find(exdata_of(state));
    return request != NULL && request->span != NULL ? request->coro : NULL;
}

static const gp_lua_host_t host = {.owner = nginx_owner, .woken = gp_nginx_woken};

static void nginx_find_lua(void)
{
    static bool is_asked; // modules are loaded before the first request
    if (is_asked)
        return;
    is_asked = true;
    exdata_of = (uintptr_t(*)(lua_State *))(uintptr_t)gp_interpose_find("lua_getexdata");
    if (exdata_of != NULL)
        atomic_store_explicit(&gp_lua_host, &host, memory_order_release);
    else
        dlerror(); // nginx asks for its own errors only
}

// Method and URI, once they are known.
static void nginx_name(gp_nginx_request_t *request)
{
    char method[GP_REQUEST_METHOD_SIZE], uri[GP_REQUEST_URI_SIZE], name[GP_REQUEST_NAME_SIZE];
    if (request->is_named || request->coro == NULL || !gp_nginx_variable(request->address, "uri", uri, sizeof(uri)))
        return;
    request->is_named = true;
    gp_nginx_variable(request->address, "request_method", method, sizeof(method));
    gp_request_name(request->span, method, uri, name);
    prof_coro_name(request->coro, name);
}

static void nginx_end_span(gp_nginx_request_t *request, intptr_t code)
{
    char status[GP_REQUEST_STATUS_SIZE];
    if (request->span == NULL)
        return;
    nginx_name(request);
    if (request->is_sub && code > 0)
        snprintf(status, sizeof(status), "%d", (int)code);
    else if (!gp_nginx_variable(request->address, "status", status, sizeof(status)))
        status[0] = '\0';
    gp_request_end(request->span, status);
    request->span = NULL;
}

// Give back what nothing runs on any more.
static void nginx_settle(gp_nginx_request_t *request)
{
    if (request->entered > 0)
        return;
    if (request->span == NULL) {
        gp_coro_retire(request->coro);
        request->coro = NULL;
    }
    if (request->is_gone)
        gp_nginx_give_back(request);
}

static void nginx_forget(gp_nginx_request_t *request)
{
    for (gp_nginx_request_t *sub = request->subs, *next; sub != NULL; sub = next) {
        next = sub->sibling;
        nginx_forget(sub);
        if (sub->span != NULL)
            nginx_end_span(sub, 0);
        nginx_settle(sub);
    }
    gp_nginx_take_out(request);
    request->is_gone = true;
}

// The one frame between a request's coroutine and whatever called: where its stack ends.
__attribute__((noinline, section("gp_nginx_call"))) static intptr_t nginx_run(call_t *call, uintptr_t address,
                                                                              intptr_t code)
{
    intptr_t result = call(address, code);
    __asm__ volatile("" ::: "memory"); // no tail call
    return result;
}

extern const char __start_gp_nginx_call[], __stop_gp_nginx_call[]; // made by the linker

GP_ENTRY_CODE static intptr_t nginx_enter(gp_nginx_request_t *request, call_t *call, uintptr_t address, intptr_t code,
                                          const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_attach();
    uint64_t resumer_id;
    bool outside;
    prof_coro_t *resumer = thread != NULL ? gp_thread_coro_at(thread, park->sp, &resumer_id, &outside) : NULL;
    request->entered++;
    if (thread == NULL || request->coro == NULL || resumer == request->coro) {
        intptr_t same = call(address, code);
        request->entered--;
        nginx_settle(request);
        return same;
    }
    gp_nginx_woken(request->coro);
    gp_switch_to(request->coro, request->id, park);
    intptr_t result = nginx_run(call, address, code);
    gp_switch_to(gp_thread_self == thread ? resumer : NULL, resumer_id, park);
    request->entered--;
    nginx_settle(request);
    return result;
}

static intptr_t nginx_begin_span(uintptr_t address, intptr_t is_sub)
{
    gp_nginx_request_t *request = gp_nginx_find(address);
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.flags = is_sub ? 0 : PROF_SPAN_REMOTE_PARENT;
    request->span = prof_span_begin(PROF_SPAN_REQUEST, is_sub ? "sub-request" : "request", &options);
    return 0;
}

// parent: of a sub-request, NULL of another one.
static gp_nginx_request_t *nginx_begin(uintptr_t address, gp_nginx_request_t *parent, const gp_park_t *park)
{
    static bool is_ready;
    gp_nginx_request_t *request = gp_nginx_add(address);
    if (request == NULL)
        return NULL;
    if (!is_ready)
        gp_unwind_entry_add((uintptr_t)__start_gp_nginx_call, (uintptr_t)__stop_gp_nginx_call);
    is_ready = true;
    gp_coro_birth_t birth = {
        .kind = GP_CORO_ANNOUNCED,
        .name = parent != NULL ? "sub-request" : "request",
        .spawner = parent != NULL ? parent->coro : gp_coro_of_caller((uintptr_t)__builtin_frame_address(0)),
    };
    request->coro = gp_coro_new(&birth);
    request->id = request->coro != NULL ? atomic_load_explicit(&request->coro->id, memory_order_relaxed) : 0;
    request->is_sub = parent != NULL;
    if (request->coro == NULL)
        return request;
    request->entered++; // it has no span yet
    nginx_enter(request, nginx_begin_span, address, request->is_sub, park);
    request->entered--;
    return request;
}

// A request that nginx works for; a sub-request is met here for the first time. NULL: it is not known.
static gp_nginx_request_t *nginx_meet(uintptr_t address, const gp_park_t *park)
{
    gp_nginx_request_t *request = gp_nginx_find(address);
    if (request != NULL || !__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        return request;
    gp_nginx_request_t *parent = gp_nginx_find(gp_nginx_parent_of(address));
    gp_nginx_request_t *main = gp_nginx_find(gp_nginx_main_of(address));
    if (parent == NULL || main == NULL || main->is_sub || parent->span == NULL)
        return NULL;
    request = nginx_begin(address, parent, park);
    if (request != NULL) {
        request->sibling = main->subs;
        main->subs = request;
    }
    return request;
}

// Where the caller of the function that this is in goes on.
#define CALLERS_PARK()                                                                                                 \
    ({                                                                                                                 \
        const uintptr_t *frame = __builtin_frame_address(0);                                                           \
        (gp_park_t){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};       \
    })

typedef uintptr_t create_t(uintptr_t connection);
GP_ENTRY_CODE create_t gp_patch_ngx_http_create_request;
void *gp_patch_real_ngx_http_create_request;

uintptr_t gp_patch_ngx_http_create_request(uintptr_t connection)
{
    gp_park_t park = CALLERS_PARK();
    uintptr_t request = GP_PATCHED(create_t, ngx_http_create_request)(connection);
    if (request == 0 || !__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) || !gp_nginx_learn(request))
        return request;
    nginx_find_lua();
    if (gp_nginx_find(request) == NULL)
        nginx_begin(request, NULL, &park);
    return request;
}

static intptr_t nginx_phases(uintptr_t address, intptr_t code);
static intptr_t nginx_finalize(uintptr_t address, intptr_t code);
static intptr_t nginx_free(uintptr_t address, intptr_t code);

#define CALL(name, through)                                                                                            \
    GP_ENTRY_CODE call_t gp_patch_##name;                                                                              \
    void *gp_patch_real_##name;                                                                                        \
    intptr_t gp_patch_##name(uintptr_t address, intptr_t code)                                                         \
    {                                                                                                                  \
        gp_park_t park = CALLERS_PARK();                                                                               \
        gp_nginx_request_t *request = nginx_meet(address, &park);                                                      \
        return request != NULL ? nginx_enter(request, through, address, code, &park)                                   \
                               : GP_PATCHED(call_t, name)(address, code);                                              \
    }

CALL(ngx_http_core_run_phases, nginx_phases)
CALL(ngx_http_finalize_request, nginx_finalize)
CALL(ngx_http_free_request, nginx_free)

static intptr_t nginx_phases(uintptr_t address, intptr_t code)
{
    nginx_name(gp_nginx_find(address));
    return GP_PATCHED(call_t, ngx_http_core_run_phases)(address, code);
}

static intptr_t nginx_finalize(uintptr_t address, intptr_t code)
{
    gp_nginx_request_t *request = gp_nginx_find(address);
    if (request->is_sub && (int)code != DONE && (int)code != DECLINED)
        nginx_end_span(request, code);
    return GP_PATCHED(call_t, ngx_http_finalize_request)(address, code);
}

static intptr_t nginx_free(uintptr_t address, intptr_t code)
{
    gp_nginx_request_t *request = gp_nginx_find(address);
    nginx_end_span(request, 0);
    nginx_forget(request);
    return GP_PATCHED(call_t, ngx_http_free_request)(address, code);
}
