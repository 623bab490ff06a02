// SPDX-License-Identifier: MIT
// The few functions of CPython's stable interface that the hooks call, found by name. Objects are opaque here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_py gp_py_t; // PyObject

typedef struct gp_py_method { // PyMethodDef
    const char *name;
    void *function;
    int flags;
    const char *doc;
} gp_py_method_t;

enum { GP_PY_VARARGS = 0x1, GP_PY_KEYWORDS = 0x2, GP_PY_NOARGS = 0x4, GP_PY_O = 0x8, GP_PY_FASTCALL = 0x80 };

typedef gp_py_t *gp_py_vectorcall_t(gp_py_t *callable, gp_py_t *const *args, size_t count, gp_py_t *names);

typedef struct gp_py_api {
    gp_py_t *none, *true_object;
    gp_py_t *builtin_type, *method_type, *tuple_type; // PyCFunction_Type, PyMethodDescr_Type, PyTuple_Type
    gp_py_t *bound_type, *module_type, *text_type;    // PyMethod_Type, PyModule_Type, PyUnicode_Type
    gp_py_t *function_type;                           // PyFunction_Type
    gp_py_t *float_type;                              // PyFloat_Type
    void (*incref)(gp_py_t *);
    void (*decref)(gp_py_t *);
    void (*drop)(gp_py_t *);         // the same; NULL is accepted
    gp_py_t *(*own_state)(void);     // of the calling thread: PyGILState_GetThisThreadState
    gp_py_t *(*current_state)(void); // of the thread with the lock; from 3.12 on, NULL on other threads
    int (*is_subtype)(gp_py_t *, gp_py_t *);
    gp_py_t *(*module_dict)(void);                 // borrowed
    gp_py_t *(*dict_get)(gp_py_t *, const char *); // borrowed, no error set
    gp_py_t *(*get_attr)(gp_py_t *, const char *);
    gp_py_t *(*get_attr_of)(gp_py_t *, gp_py_t *); // by a text object
    gp_py_t *(*text)(const char *);                // interned
    gp_py_t *(*repr)(gp_py_t *);
    const char *(*utf8)(gp_py_t *, ptrdiff_t *);
    double (*number)(gp_py_t *); // -1 and an error where it is none
    gp_py_t *(*dict_new)(void);
    int (*dict_set)(gp_py_t *, const char *, gp_py_t *);
    gp_py_t *(*compile)(const char *, const char *, int);
    gp_py_t *(*eval_code)(gp_py_t *, gp_py_t *, gp_py_t *);
    const char *(*module_name)(gp_py_t *);
    void *(*module_def)(gp_py_t *);
    void *(*capsule_pointer)(gp_py_t *, const char *);
    gp_py_t *(*function_new)(gp_py_method_t *, gp_py_t *, gp_py_t *);
    gp_py_t *(*capsule_new)(void *, const char *, void (*)(gp_py_t *));
    gp_py_t *(*instance_method)(gp_py_t *); // that binds, where a built-in function does not
    int (*set_attr)(gp_py_t *, const char *, gp_py_t *);
    gp_py_t *(*import_module)(const char *);
    gp_py_t *(*call_with)(gp_py_t *, gp_py_t *, gp_py_t *); // PyObject_Call
    gp_py_t *(*call)(gp_py_t *, ...);                       // PyObject_CallFunctionObjArgs: ended by NULL
    gp_py_t *(*call_method)(gp_py_t *, const char *, const char *, ...);
    gp_py_t *(*tuple_pack)(ptrdiff_t, ...);
    gp_py_t *(*tuple_item)(gp_py_t *, ptrdiff_t); // borrowed
    ptrdiff_t (*tuple_size)(gp_py_t *);
    gp_py_t *(*list_item)(gp_py_t *, ptrdiff_t); // borrowed
    ptrdiff_t (*list_size)(gp_py_t *);
    void (*error_fetch)(gp_py_t **, gp_py_t **, gp_py_t **);
    void (*error_restore)(gp_py_t *, gp_py_t *, gp_py_t *);
    void (*error_clear)(void);
} gp_py_api_t;

extern gp_py_api_t gp_py __attribute__((visibility("hidden")));

// Find them all. Returns whether none is missing.
bool gp_py_find(void);

// Does the calling thread hold the interpreter lock? PyGILState_Check() says yes on any thread once there has been a
// sub-interpreter, and after the interpreter has ended. False in code of a sub-interpreter on a thread of another one.
bool gp_py_has_lock(void);

// The definition of an extension module's function, whatever its attribute of this name may be by now (monkey patches).
// All references to the function share it: a function put there is called. NULL = there is none.
gp_py_method_t *gp_py_method(gp_py_t *module, const char *name);

// The definition behind a method of a built-in type; NULL = there is no such thing.
gp_py_method_t *gp_py_type_method(gp_py_t *type, const char *name);

// A type of a module that is there by now; the caller drops it. NULL = there is none, or the module is half imported.
gp_py_t *gp_py_type_in(const char *module_name, const char *name);

// The definition behind a method of such a type; NULL = there is no such thing.
gp_py_method_t *gp_py_method_in(const char *module_name, const char *type_name, const char *name);

// Put a function of the same flags into a definition. Returns what there was; NULL = nothing was done.
void *gp_py_replace_method(gp_py_method_t *method, int flags, void *mine);

// Have calls of a Python function by C code come to `mine`; the function is otherwise left as it is. Returns the former
// one, or NULL where its place is not known.
gp_py_vectorcall_t *gp_py_replace_vectorcall(gp_py_t *function, gp_py_vectorcall_t *mine);

// The same of a PyModuleDef.
gp_py_method_t *gp_py_method_of(void *definition, const char *name);

// The definition behind a function known to be built in (gp_py.builtin_type), shared in the same way.
static inline gp_py_method_t *gp_py_definition(gp_py_t *builtin)
{
    return *(gp_py_method_t **)((char *)builtin + 16); // PyCFunctionObject.m_ml
}

static inline gp_py_t *gp_py_type(gp_py_t *object)
{
    return *(gp_py_t **)(void *)((char *)object + 8);
}

// Slots of a type object: the same from 3.8 on.
enum {
    GP_PY_TYPE_SIZE = 32,
    GP_PY_TYPE_DEALLOC = 48,
    GP_PY_TYPE_CALL = 128,
    GP_PY_TYPE_INIT = 296,
    GP_PY_TYPE_NEW = 312
};

// tp_basicsize
static inline size_t *gp_py_size(void *type)
{
    return (size_t *)(void *)((char *)type + GP_PY_TYPE_SIZE);
}

// The two items of a tuple (gp_py.tuple_type) of two, borrowed; NULL = it has not as many.
static inline gp_py_t *const *gp_py_pair(gp_py_t *tuple)
{
    enum { SIZE = 16 }; // PyVarObject.ob_size
    bool is_pair = *(ptrdiff_t *)(void *)((char *)tuple + SIZE) == 2;
    return is_pair ? (gp_py_t *const *)(void *)((char *)tuple + *gp_py_size(gp_py.tuple_type)) : NULL;
}

// The value of a float (gp_py.float_type).
static inline double gp_py_float(gp_py_t *object)
{
    return *(double *)(void *)((char *)object + 16); // PyFloatObject.ob_fval
}

// The object that a built-in function (gp_py.builtin_type) was taken from, borrowed; NULL = none.
static inline gp_py_t *gp_py_builtin_self(gp_py_t *builtin)
{
    return *(gp_py_t **)(void *)((char *)builtin + 24); // PyCFunctionObject.m_self
}

// The function of a bound method (gp_py.bound_type), borrowed.
static inline gp_py_t *gp_py_bound_function(gp_py_t *method)
{
    return *(gp_py_t **)(void *)((char *)method + 16); // PyMethodObject.im_func
}

// The object of a bound method (gp_py.bound_type).
static inline gp_py_t *gp_py_bound_self(gp_py_t *method)
{
    return *(gp_py_t **)(void *)((char *)method + 24); // PyMethodObject.im_self
}

// Members of PyMethodDescrObject and PyWrapperDescrObject.
enum { GP_PY_METHOD_DEFINITION = 40, GP_PY_WRAPPER_WRAPPED = 48 };

static inline void **gp_py_slot(gp_py_t *type, size_t offset)
{
    return (void **)(void *)((char *)type + offset);
}

// tp_name of an object's type
static inline const char *gp_py_type_name(gp_py_t *object)
{
    return *(const char **)(void *)((char *)gp_py_type(object) + 24);
}
