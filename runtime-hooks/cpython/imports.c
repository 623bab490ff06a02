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
#include "signal/language.h"

typedef gp_py_t *fastcall_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count);

typedef gp_py_t *one_t(gp_py_t *self, gp_py_t *argument);

static fastcall_t *real_create;
static one_t *real_exec, *real_create_builtin, *real_exec_builtin; // some builds have all modules in the program

// A module that initialises itself in two phases has nothing in it after the first.
static void imports_hook(gp_py_t *module)
{
    const char *name = gp_cpython_is_main() && gp_cpython_is_known() ? gp_py.module_name(module) : "";
    if (name != NULL && strcmp(name, "greenlet._greenlet") == 0)
        gp_greenlet_hook(module);
    else if (name != NULL && strcmp(name, "_asyncio") == 0)
        gp_asyncio_hook(module);
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

static void imports_made(void *definition)
{
    imports_wrap(definition);
    if (__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0) // of the capture
        atomic_load_explicit(&gp_language, memory_order_acquire)->count_calls(true);
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
