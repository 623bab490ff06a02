// SPDX-License-Identifier: MIT
#include "imports.h"

#include <string.h>

#include "asyncio/asyncio.h"
#include "cpython.h"
#include "exact/recorder.h"
#include "greenlet/greenlet.h"
#include "interpreter/api.h"
#include "interpreter/frame_walk.h"
#include "interpreter/inittab.h"
#include "pools/pool_calls.h"
#include "settings.h"
#include "signal/language.h"

typedef gp_py_t *fastcall_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count);

typedef gp_py_t *find_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *keywords);

typedef gp_py_t *one_t(gp_py_t *self, gp_py_t *argument);

static fastcall_t *real_create;
static find_t *real_find;
static bool looks_for_servers; // the program was started by `greenprof run`, and has met none yet
static one_t *real_exec, *real_create_builtin, *real_exec_builtin; // some builds have all modules in the program

// A module that initialises itself in two phases has nothing in it after the first.
static void imports_hook(gp_py_t *module)
{
    const char *name = gp_cpython_is_main() && gp_cpython_is_known() ? gp_py.module_name(module) : "";
    if (name != NULL && strcmp(name, "greenlet._greenlet") == 0)
        gp_greenlet_hook(module);
    else if (name != NULL && strcmp(name, "_asyncio") == 0)
        gp_asyncio_hook(module);
    else if (name != NULL && strcmp(name, "_collections") == 0)
        gp_pools_look(); // what imports threading has it first
    else if (name == NULL)
        gp_py.error_clear();
}

static gp_py_t *imports_on_create(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count)
{
    gp_py_t *module = real_create(self, args, count);
    if (module != NULL)
        imports_hook(module);
    return module;
}

static gp_py_t *imports_execute(one_t *real, gp_py_t *self, gp_py_t *module)
{
    gp_py_t *result = real(self, module);
    if (result != NULL && gp_py.is_subtype(gp_py_type(module), gp_py.module_type))
        imports_hook(module);
    return result;
}

static gp_py_t *imports_on_exec(gp_py_t *self, gp_py_t *module)
{
    return imports_execute(real_exec, self, module);
}

static gp_py_t *imports_on_exec_builtin(gp_py_t *self, gp_py_t *module)
{
    return imports_execute(real_exec_builtin, self, module);
}

static gp_py_t *imports_on_create_builtin(gp_py_t *self, gp_py_t *spec)
{
    gp_py_t *module = real_create_builtin(self, spec);
    if (module != NULL && gp_py.is_subtype(gp_py_type(module), gp_py.module_type))
        imports_hook(module);
    return module;
}

// Modules of web servers, of frameworks and of clients: greenprof.servers looks at them before they are found.
static const char names[] =
    "aiohttp.client\0aiohttp.web_protocol\0asyncpg.connection\0cheroot.wsgi\0django.core.handlers.base\0"
    "eventlet.wsgi\0flask.ctx\0gevent.pywsgi\0grpc._channel\0gunicorn.workers.base\0httpx._client\0"
    "hypercorn.utils\0kombu.messaging\0memcache\0oslo_concurrency.processutils\0oslo_messaging\0"
    "osprofiler.profiler\0pika.adapters.blocking_connection\0psycopg.cursor\0pymemcache.client.base\0"
    "pymongo.pool\0pymysql.cursors\0redis.client\0sqlalchemy.engine\0starlette.routing\0"
    "urllib3.connectionpool\0uvicorn.config\0werkzeug.serving\0wsgiref.handlers\0"; // each with its NUL

static bool imports_is_server(const char *name)
{
    for (const char *at = names; at[0] != '\0'; at += strlen(at) + 1)
        if (strcmp(name, at) == 0)
            return true;
    return false;
}

// Where the package is not there, there are no requests.
static void imports_meet_servers(void)
{
    gp_py_t *error[3];
    looks_for_servers = false;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    gp_py_t *module = gp_py.import_module("greenprof.servers");
    if (module == NULL)
        gp_py.error_clear();
    gp_py.drop(module);
    gp_py.error_restore(error[0], error[1], error[2]);
}

// FrozenImporter asks for each module that is imported for the first time, by its whole name.
static gp_py_t *imports_on_find(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *keywords)
{
    bool is_left = atomic_load_explicit(&gp_language_is_left, memory_order_relaxed);
    const char *name =
        looks_for_servers && !is_left && count > 0 && gp_py_type(args[0]) == gp_py.text_type && gp_cpython_is_main()
            ? gp_py.utf8(args[0], NULL)
            : NULL;
    if (name != NULL && imports_is_server(name))
        imports_meet_servers();
    return real_find(self, args, count, keywords);
}

static one_t *imports_wrap_one(void *definition, const char *name, one_t *mine)
{
    return (one_t *)(uintptr_t)gp_py_replace_method(gp_py_method_of(definition, name), GP_PY_O,
                                                    (void *)(uintptr_t)mine);
}

// definition: of _imp
static void imports_wrap(void *definition)
{
    gp_py_method_t *create = gp_py_method_of(definition, "create_dynamic");
    if (real_create != NULL || create == NULL || !(create->flags & GP_PY_FASTCALL))
        return;
    real_create = (fastcall_t *)(uintptr_t)create->function;
    create->function = (void *)(uintptr_t)imports_on_create;
    real_exec = imports_wrap_one(definition, "exec_dynamic", imports_on_exec);
    real_create_builtin = imports_wrap_one(definition, "create_builtin", imports_on_create_builtin);
    real_exec_builtin = imports_wrap_one(definition, "exec_builtin", imports_on_exec_builtin);
}

// definition: of _imp
static void imports_wrap_find(void *definition)
{
    gp_py_method_t *find = gp_py_method_of(definition, "find_frozen");
    if (real_find != NULL || find == NULL || find->flags != (GP_PY_FASTCALL | GP_PY_KEYWORDS))
        return;
    looks_for_servers = true;
    real_find = (find_t *)(uintptr_t)find->function;
    find->function = (void *)(uintptr_t)imports_on_find;
}

static void imports_made(void *definition)
{
    imports_wrap(definition);
    if (gp_setting_is(GP_SETTING_REQUESTS, "1"))
        imports_wrap_find(definition);
    if (__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0) // of the capture
        atomic_load_explicit(&gp_language, memory_order_acquire)->count_calls(true);
}

// Modules that are there by now; the others are met as they are imported, until greenprof leaves.
void gp_imports_meet_those_there(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "_imp");
    void *definition = module != NULL ? gp_py.module_def(module) : NULL;
    bool is_there = false;
    if (definition == NULL || !gp_setting_is(GP_SETTING_REQUESTS, "1") || !gp_cpython_is_main())
        return;
    imports_wrap_find(definition);
    for (const char *at = names; at[0] != '\0'; at += strlen(at) + 1)
        is_there = is_there || gp_py.dict_get(gp_py.module_dict(), at) != NULL;
    if (is_there)
        imports_meet_servers();
}

void gp_imports_prepare(void)
{
    gp_inittab_watch("_imp", imports_made);
}

void gp_imports_watch(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "_imp");
    void *definition = module != NULL ? gp_py.module_def(module) : NULL;
    if (definition != NULL)
        imports_wrap(definition);
    else
        gp_py.error_clear();
}
