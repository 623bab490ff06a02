// SPDX-License-Identifier: MIT
#include "asyncio/python_tasks.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "asyncio/asyncio.h"
#include "interpreter/frame_walk.h"
#include "interpreter/task_step.h"

typedef gp_py_t *one_t(gp_py_t *self, gp_py_t *argument);

enum { ENTER, LEAVE, REGISTER, BEGIN_EAGERLY, END_EAGERLY, IN_MODULE, SET_NAME = IN_MODULE, HOOKED };
enum { FIRST_IN_PYTHON = 0x030e };
enum { COUNT_BITS = 8 }; // of the number of arguments, which has a flag, too

typedef struct entered { // steps that the thread is in, the innermost first
    struct entered *next;
    gp_py_t *task;
    gp_task_step_t outer;
} entered_t;

static gp_py_vectorcall_t *real[HOOKED];
static one_t *real_set_running_loop;
static void (*set_vectorcall)(gp_py_t *function, gp_py_vectorcall_t *);
static gp_py_vectorcall_t *(*vectorcall_of)(gp_py_t *function);
static gp_py_t *(*weak_reference)(gp_py_t *object, gp_py_t *callback);
static const char capsule_name[] = "greenprof";
static __thread entered_t *entered __attribute__((tls_model("initial-exec")));

// The argument of a call that has `count`; NULL = it is not given in this way.
static gp_py_t *python_tasks_argument(gp_py_t *const *args, size_t count, unsigned which)
{
    return (count & ((1u << COUNT_BITS) - 1)) > which ? args[which] : NULL;
}

static void python_tasks_begin(gp_py_t *task)
{
    entered_t *one = task != NULL && !gp_asyncio_is_left() ? malloc(sizeof(*one)) : NULL;
    if (one == NULL)
        return;
    *one = (entered_t){.next = entered, .task = task};
    gp_asyncio_begin(&one->outer, task);
    entered = one;
}

// With those above it, which have been left in another way.
static void python_tasks_end(gp_py_t *task)
{
    entered_t *one = entered;
    while (one != NULL && one->task != task)
        one = one->next;
    while (one != NULL) {
        entered_t *top = entered;
        bool is_last = top == one;
        gp_asyncio_end(&top->outer, top->task);
        entered = top->next;
        free(top);
        if (is_last)
            break;
    }
}

static gp_py_t *python_tasks_on_enter(gp_py_t *self, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    gp_py_t *result = real[ENTER](self, args, count, names);
    if (result != NULL)
        python_tasks_begin(python_tasks_argument(args, count, 1));
    return result;
}

static gp_py_t *python_tasks_on_leave(gp_py_t *self, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    python_tasks_end(python_tasks_argument(args, count, 1));
    return real[LEAVE](self, args, count, names);
}

// Its weak reference ends with the call, which is for a task that is being freed.
static gp_py_t *python_tasks_on_death(gp_py_t *self, gp_py_t *reference)
{
    gp_asyncio_forget(gp_py.capsule_pointer(self, capsule_name));
    gp_py.drop(reference);
    gp_py.incref(gp_py.none);
    return gp_py.none;
}

static void python_tasks_wait_for_death(gp_py_t *task)
{
    static gp_py_method_t definition = {"greenprof", NULL, GP_PY_O, NULL};
    definition.function = (void *)(uintptr_t)python_tasks_on_death;
    gp_py_t *self = gp_py.capsule_new(task, capsule_name, NULL), *callback = NULL;
    if (self != NULL)
        callback = gp_py.function_new(&definition, self, NULL);
    if (callback == NULL || weak_reference(task, callback) == NULL) // kept up to that call
        gp_py.error_clear();
    gp_py.drop(callback);
    gp_py.drop(self);
}

static void python_tasks_made(gp_py_t *task)
{
    if (task != NULL && !gp_asyncio_is_left() && gp_asyncio_add(task))
        python_tasks_wait_for_death(task);
}

static gp_py_t *python_tasks_on_register(gp_py_t *self, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    gp_py_t *result = real[REGISTER](self, args, count, names);
    if (result != NULL)
        python_tasks_made(python_tasks_argument(args, count, 0));
    return result;
}

static gp_py_t *python_tasks_on_begin_eagerly(gp_py_t *self, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    gp_py_t *result = real[BEGIN_EAGERLY](self, args, count, names), *task = python_tasks_argument(args, count, 0);
    if (result != NULL) {
        python_tasks_made(task);
        python_tasks_begin(task);
    }
    return result;
}

static gp_py_t *python_tasks_on_end_eagerly(gp_py_t *self, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    python_tasks_end(python_tasks_argument(args, count, 0));
    return real[END_EAGERLY](self, args, count, names);
}

static const struct {
    const char *function, *in_python;
    gp_py_vectorcall_t *mine;
} hooks[IN_MODULE] = {
    {"_enter_task", "_py_enter_task", python_tasks_on_enter},
    {"_leave_task", "_py_leave_task", python_tasks_on_leave},
    {"_register_task", "_py_register_task", python_tasks_on_register},
    {"_register_eager_task", "_py_register_eager_task", python_tasks_on_begin_eagerly},
    {"_unregister_eager_task", "_py_unregister_eager_task", python_tasks_on_end_eagerly},
};

static gp_py_t *python_tasks_on_set_name(gp_py_t *function, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    gp_py_t *result = real[SET_NAME](function, args, count, names), *task = python_tasks_argument(args, count, 0);
    if (result != NULL && task != NULL)
        gp_asyncio_named(task);
    return result;
}

// Hook a function of a module or a type, also for calls from Python code.
static void python_tasks_hook_function(gp_py_t *where, const char *name, int which, gp_py_vectorcall_t *mine)
{
    gp_py_t *function = gp_py.get_attr(where, name); // NULL = half imported
    if (function != NULL && real[which] == NULL && vectorcall_of(function) != NULL) {
        real[which] = vectorcall_of(function);
        set_vectorcall(function, mine);
    } else {
        gp_py.error_clear();
    }
    gp_py.drop(function);
}

static void python_tasks_look(void)
{
    gp_py_t *module = real[SET_NAME] == NULL ? gp_py.dict_get(gp_py.module_dict(), "asyncio.tasks") : NULL;
    gp_py_t *type = module != NULL ? gp_py_type_in("asyncio.tasks", "_PyTask") : NULL;
    if (type == NULL)
        return;
    for (int i = 0; gp_cpython_runtime.layout->version >= FIRST_IN_PYTHON && i < IN_MODULE; i++)
        python_tasks_hook_function(module, hooks[i].in_python, i, hooks[i].mine);
    python_tasks_hook_function(type, "set_name", SET_NAME, python_tasks_on_set_name);
    gp_py.drop(type);
}

static gp_py_t *python_tasks_on_set_running_loop(gp_py_t *self, gp_py_t *loop)
{
    if (!gp_asyncio_is_left())
        python_tasks_look();
    return real_set_running_loop(self, loop);
}

void gp_python_tasks_hook(gp_py_t *module)
{
    set_vectorcall = // 3.12 on
        (void (*)(gp_py_t *, gp_py_vectorcall_t *))(uintptr_t)dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall");
    vectorcall_of = (gp_py_vectorcall_t * (*)(gp_py_t *))(uintptr_t)dlsym(RTLD_DEFAULT, "PyVectorcall_Function");
    weak_reference = (gp_py_t * (*)(gp_py_t *, gp_py_t *))(uintptr_t)dlsym(RTLD_DEFAULT, "PyWeakref_NewRef");
    if (weak_reference == NULL)
        return;
    for (int i = 0; gp_cpython_runtime.layout->version < FIRST_IN_PYTHON && i < IN_MODULE; i++)
        real[i] = (gp_py_vectorcall_t *)(uintptr_t)gp_py_replace_method(
            gp_py_method(module, hooks[i].function), GP_PY_FASTCALL | GP_PY_KEYWORDS, (void *)(uintptr_t)hooks[i].mine);
    if (set_vectorcall == NULL || vectorcall_of == NULL)
        return;
    real_set_running_loop = (one_t *)(uintptr_t)gp_py_replace_method(
        gp_py_method(module, "_set_running_loop"), GP_PY_O, (void *)(uintptr_t)python_tasks_on_set_running_loop);
    python_tasks_look();
}
