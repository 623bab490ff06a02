// SPDX-License-Identifier: MIT
#include "pools/pool_names.h"

#include <string.h>

#include "collect/pools.h"
#include "interpreter/frame_walk.h"

enum {
    WRAPPERS_MAX = 8,   // functools.partial of a bound method of ...
    FUNCTION_CODE = 48, // PyFunctionObject.func_code, from 3.11 on
};

static uintptr_t pool_names_word(uintptr_t at)
{
    return *(const uintptr_t *)at; // NOLINT(performance-no-int-to-ptr)
}

static gp_py_t *pool_names_object(uintptr_t reference)
{
    return (gp_py_t *)(reference & ~(uintptr_t)GP_CPYTHON_REFERENCE_TAGS); // NOLINT(performance-no-int-to-ptr)
}

bool gp_py_text_ends(gp_py_t *object, const char *end)
{
    const char *utf8 = object != NULL && gp_py_type(object) == gp_py.text_type ? gp_py.utf8(object, NULL) : NULL;
    size_t length = utf8 != NULL ? strlen(utf8) : 0;
    return utf8 != NULL && length >= strlen(end) && strcmp(utf8 + length - strlen(end), end) == 0;
}

gp_py_t *gp_pool_argument_of(const char *name, const char *file, size_t number)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t frame = gp_cpython_runtime.is_trusted ? gp_cpython_leaf() : 0;
    gp_py_t *code = frame != 0 ? pool_names_object(pool_names_word(frame + layout->frame_code)) : NULL;
    if (code == NULL || (uintptr_t)gp_py_type(code) != gp_cpython_runtime.code_type ||
        !gp_py_text_ends(*(gp_py_t **)gp_py_slot(code, layout->code_name), name) ||
        !gp_py_text_ends(*(gp_py_t **)gp_py_slot(code, layout->code_file), file))
        return NULL;
    return pool_names_object(pool_names_word(frame + layout->frame_bytes + number * sizeof(uintptr_t)));
}

uint32_t gp_pool_of_submit(void)
{
    gp_py_t *executor = gp_pool_argument_of(".submit", "", 0);
    gp_py_t *workers = executor != NULL ? gp_py.get_attr(executor, "_max_workers") : NULL;
    gp_py_t *prefix = workers != NULL ? gp_py.get_attr(executor, "_thread_name_prefix") : NULL;
    const char *name = prefix != NULL && gp_py_type(prefix) == gp_py.text_type ? gp_py.utf8(prefix, NULL) : NULL;
    double size = workers != NULL ? gp_py.number(workers) : 0;
    uint32_t number = 0;
    if (workers != NULL)
        number = gp_pool_number(name != NULL && name[0] != '\0' ? name : gp_py_type_name(executor),
                                size >= 1 && size < UINT32_MAX ? (uint32_t)size : 0);
    gp_py.error_clear();
    gp_py.drop(workers);
    gp_py.drop(prefix);
    return number;
}

static gp_py_t *pool_names_attr(gp_py_t *object, const char *name)
{
    gp_py_t *found = gp_py.get_attr(object, name);
    if (found == NULL)
        gp_py.error_clear();
    gp_py.drop(found); // what it belongs to keeps it
    return found;
}

// The function of a partial; asyncio.to_thread() makes functools.partial(context.run, function, ...).
static gp_py_t *pool_names_of_partial(gp_py_t *partial)
{
    gp_py_t *function = pool_names_attr(partial, "func"), *args = pool_names_attr(partial, "args");
    bool is_run = function != NULL && gp_py_type(function) == gp_py.builtin_type &&
                  strcmp(gp_py_definition(function)->name, "run") == 0;
    return is_run && args != NULL && gp_py_type(args) == gp_py.tuple_type && gp_py.tuple_size(args) > 0
               ? gp_py.tuple_item(args, 0)
               : function;
}

gp_py_t *gp_pool_code(gp_py_t *callable)
{
    for (int i = 0; i < WRAPPERS_MAX && callable != NULL && gp_cpython_runtime.is_trusted; i++) {
        if (gp_py_type(callable) == gp_py.bound_type) {
            callable = gp_py_bound_function(callable);
        } else if (strcmp(gp_py_type_name(callable), "functools.partial") == 0) {
            callable = pool_names_of_partial(callable);
        } else if (gp_py_type(callable) == gp_py.function_type) {
            gp_py_t *code = *(gp_py_t **)gp_py_slot(callable, FUNCTION_CODE);
            bool is_code = code != NULL && (uintptr_t)gp_py_type(code) == gp_cpython_runtime.code_type;
            return is_code ? code : NULL;
        } else {
            break;
        }
    }
    return NULL;
}

uintptr_t gp_pool_entry(gp_py_t *callable)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t code = (uintptr_t)gp_pool_code(callable);
    return code != 0 ? gp_cpython_word(layout, code, code + layout->code_instructions - 2) : 0;
}

const char *gp_pool_function_name(gp_py_t *callable)
{
    gp_py_t *code = gp_pool_code(callable);
    gp_py_t *name = code != NULL ? *(gp_py_t **)gp_py_slot(code, gp_cpython_runtime.layout->code_name) : NULL;
    return name != NULL && gp_py_type(name) == gp_py.text_type ? gp_py.utf8(name, NULL) : NULL;
}

bool gp_pool_is_of_file(gp_py_t *callable, const char *file)
{
    gp_py_t *code = gp_pool_code(callable);
    return code != NULL && gp_py_text_ends(*(gp_py_t **)gp_py_slot(code, gp_cpython_runtime.layout->code_file), file);
}

bool gp_pool_is_method(gp_py_t *callable, const char *name)
{
    gp_py_t *code = gp_pool_code(callable);
    return code != NULL && gp_py_text_ends(*(gp_py_t **)gp_py_slot(code, gp_cpython_runtime.layout->code_name), name);
}
