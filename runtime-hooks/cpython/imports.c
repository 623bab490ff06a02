// SPDX-License-Identifier: MIT
#include "imports.h"

#include <dlfcn.h>
#include <string.h>

#include "asyncio/asyncio.h"
#include "exact/recorder.h"
#include "greenlet/greenlet.h"
#include "interpreter/api.h"
#include "signal/language.h"

typedef gp_py_t *fastcall_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count);

typedef struct inittab { // struct _inittab
    const char *name;
    void *(*init)(void);
} inittab_t;

static fastcall_t *real_create;
static void *(*real_init)(void);

static gp_py_t *on_create(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count)
{
    gp_py_t *module = real_create(self, args, count);
    const char *name = module != NULL ? gp_py.module_name(module) : NULL;
    if (name != NULL && strcmp(name, "greenlet._greenlet") == 0)
        gp_greenlet_hook(module);
    else if (name != NULL && strcmp(name, "_asyncio") == 0)
        gp_asyncio_hook(module);
    else if (module != NULL && name == NULL)
        gp_py.error_clear();
    return module;
}

static void wrap(gp_py_method_t *method)
{
    if (real_create != NULL || method == NULL || !(method->flags & GP_PY_FASTCALL))
        return;
    real_create = (fastcall_t *)(uintptr_t)method->function;
    method->function = (void *)(uintptr_t)on_create;
}

static void *on_init(void)
{
    void *definition = real_init(); // multi-phase: it returns its PyModuleDef
    if (definition != NULL)
        wrap(gp_py_method_of(definition, "create_dynamic"));
    if (__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0) // of the capture
        atomic_load_explicit(&gp_language, memory_order_acquire)->count_calls(true);
    return definition;
}

void gp_imports_prepare(void)
{
    inittab_t **table = dlsym(RTLD_DEFAULT, "PyImport_Inittab");
    for (inittab_t *entry = table != NULL ? *table : NULL; entry != NULL && entry->name != NULL; entry++) {
        if (strcmp(entry->name, "_imp") == 0) {
            real_init = entry->init;
            entry->init = on_init;
        }
    }
}

void gp_imports_watch(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "_imp");
    if (module != NULL)
        wrap(gp_py_method(module, "create_dynamic"));
}
