// SPDX-License-Identifier: MIT
#include "greenlet/greenlet.h"
#include "greenlet/greenlet_run.h"

#include "coro/hook_cost.h"
#include "coro/registry.h"
#include "greenlet/greenlet_native.h"
#include "greenlet/greenlet_records.h"
#include "greenlet/greenlet_trace.h"
#include "greenlet/hubs.h"
#include "interpreter/peek_text.h"
#include "settings.h"
#include "signal/rest.h"
#include "trace/context.h"

enum { // of the array behind greenlet._C_API; source: greenlet.h
    API_TYPE = 0,
    API_GET_CURRENT = 4,
    API_MAIN = 8,
    API_ACTIVE = 10,
};

typedef gp_py_t *new_t(gp_py_t *type, gp_py_t *args, gp_py_t *keywords);
typedef void dealloc_t(gp_py_t *greenlet);

static new_t *real_new;
static dealloc_t *real_dealloc;

// A greenlet made while a recording rests gets its record where it is met, unless it inherits anything.
static bool greenlet_is_left_for_later(void)
{
    return gp_rest_is_now() && !atomic_load_explicit(&gp_trace_is_used, memory_order_relaxed);
}

static gp_py_t *greenlet_on_new(gp_py_t *type, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *greenlet = real_new(type, args, keywords);
    if (greenlet == NULL || atomic_load_explicit(&gp_language_is_left, memory_order_relaxed) ||
        greenlet_is_left_for_later())
        return greenlet;
    uint64_t begun = gp_hook_cost_begin();
    static gp_py_t *last_type;
    if (type != last_type) { // a library's own kind, the first of which comes before any is woken
        last_type = type;
        gp_hub_look();
    }
    if (gp_greenlet_is_sampling() && !gp_greenlet_is_entered())
        gp_greenlet_enter();
    bool is_hub = gp_hub_is_one(type, args);
    gp_greenlet_add(greenlet, is_hub ? NULL : gp_greenlet_spawner());
    const gp_greenlet_t *found = is_hub ? gp_greenlet_find(greenlet) : NULL;
    if (found != NULL && found->coro != NULL)
        found->coro->is_loop = 1;
    gp_hook_cost_end(begun, 0);
    return greenlet;
}

// Deallocation kills a greenlet that has begun and is not over: it is switched to once more, and may even live on.
static void greenlet_on_dealloc(gp_py_t *greenlet)
{
    uint64_t references = 0;
    if (greenlet_is_left_for_later() && gp_greenlet_find(greenlet) == NULL) {
        real_dealloc(greenlet);
        return;
    }
    if (!gp_greenlet_api.is_active(greenlet)) {
        uint64_t begun = gp_hook_cost_begin();
        gp_coro_retire(gp_greenlet_take(greenlet));
        gp_hook_cost_end(begun, 0);
        real_dealloc(greenlet);
        return;
    }
    real_dealloc(greenlet);
    if (!gp_peek((uintptr_t)greenlet, &references, sizeof(references)) || references == 0)
        gp_coro_retire(gp_greenlet_take(greenlet));
}

// Types that were derived before have a copy of tp_new.
static void greenlet_replace_new(gp_py_t *type)
{
    void **slot = gp_py_slot(type, GP_PY_TYPE_NEW);
    if (*slot != (void *)(uintptr_t)real_new)
        return;
    *slot = (void *)(uintptr_t)greenlet_on_new;
    gp_py_t *derived = gp_py.call_method(type, "__subclasses__", NULL);
    for (ptrdiff_t i = 0; derived != NULL && i < gp_py.list_size(derived); i++)
        greenlet_replace_new(gp_py.list_item(derived, i));
    if (derived != NULL)
        gp_py.decref(derived);
    else
        gp_py.error_clear();
}

// Have switches seen in greenlet's own functions. GREENPROF_GREENLETS=trace: not; =read: the running one is read at
// each sample.
static bool greenlet_see_switches(gp_py_t *type)
{
    gp_py_t *other = gp_py.call(type, NULL), *current = gp_greenlet_api.current();
    gp_py_t *main = other != NULL ? gp_py.get_attr(other, "parent") : NULL;
    while (main != NULL && !gp_greenlet_api.is_main(main)) {
        gp_py_t *inner = main;
        main = gp_py.get_attr(inner, "parent");
        gp_py.decref(inner);
    }
    gp_greenlet_find_state(current);
    bool done = main != NULL && gp_greenlet_here.state != NULL && !gp_setting_is(GP_SETTING_GREENLETS, "trace") &&
                gp_greenlet_find_switch((const void *)(uintptr_t)gp_greenlet_api.current, main, other);
    if (done && gp_setting_is(GP_SETTING_GREENLETS, "read"))
        atomic_store_explicit(&gp_language_reads, true, memory_order_relaxed);
    gp_py_t *const made[] = {other, current, main};
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        if (made[i] != NULL)
            gp_py.decref(made[i]);
    gp_py.error_clear();
    return done;
}

static void **greenlet_find_api(gp_py_t *module)
{
    gp_py_t *capsule = gp_py.get_attr(module, "_C_API");
    void **api = capsule != NULL ? gp_py.capsule_pointer(capsule, "greenlet._C_API") : NULL;
    if (capsule != NULL)
        gp_py.decref(capsule);
    return api;
}

static void greenlet_hook(gp_py_t *module)
{
    void **api = greenlet_find_api(module);
    if (api == NULL)
        return;
    gp_greenlet_api.current = (gp_py_t * (*)(void))(uintptr_t)api[API_GET_CURRENT];
    gp_greenlet_api.is_main = (int (*)(gp_py_t *))(uintptr_t)api[API_MAIN];
    gp_greenlet_api.is_active = (int (*)(gp_py_t *))(uintptr_t)api[API_ACTIVE];
    if (!gp_greenlet_trace_hook(module))
        return;
    gp_py_t *type = api[API_TYPE];
    gp_greenlet_api.sees = greenlet_see_switches(type);
    void **dealloc = gp_py_slot(type, GP_PY_TYPE_DEALLOC);
    real_dealloc = (dealloc_t *)(uintptr_t)*dealloc;
    *dealloc = (void *)(uintptr_t)greenlet_on_dealloc;
    real_new = (new_t *)(uintptr_t)*gp_py_slot(type, GP_PY_TYPE_NEW);
    greenlet_replace_new(type);
    gp_greenlet_mark_bootstrap(api[API_GET_CURRENT]);
    gp_greenlet_api.is_hooked = true;
    if (gp_step_here.task != NULL) // a task has imported it
        gp_step_here.greenlet = gp_greenlet_current();
}

void gp_greenlet_hook(gp_py_t *module)
{
    gp_py_t *error[3];
    if (gp_greenlet_api.is_hooked)
        return;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    greenlet_hook(module);
    gp_py.error_restore(error[0], error[1], error[2]);
}

void gp_greenlet_look(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "greenlet._greenlet");
    if (module != NULL)
        gp_greenlet_hook(module);
}
