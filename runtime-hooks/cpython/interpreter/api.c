// SPDX-License-Identifier: MIT
#include "interpreter/api.h"

#include <dlfcn.h>
#include <string.h>

enum { MODULE_DEF_METHODS = 64 }; // PyModuleDef.m_methods: PyModuleDef_Base (40), m_name, m_doc, m_size

gp_py_api_t gp_py;

bool gp_py_find(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {
        {"_Py_NoneStruct", offsetof(gp_py_api_t, none)},
        {"_Py_TrueStruct", offsetof(gp_py_api_t, true_object)},
        {"PyCFunction_Type", offsetof(gp_py_api_t, builtin_type)},
        {"PyMethodDescr_Type", offsetof(gp_py_api_t, method_type)},
        {"PyTuple_Type", offsetof(gp_py_api_t, tuple_type)},
        {"PyMethod_Type", offsetof(gp_py_api_t, bound_type)},
        {"PyFunction_Type", offsetof(gp_py_api_t, function_type)},
        {"PyModule_Type", offsetof(gp_py_api_t, module_type)},
        {"PyUnicode_Type", offsetof(gp_py_api_t, text_type)},
        {"PyFloat_Type", offsetof(gp_py_api_t, float_type)},
        {"Py_IncRef", offsetof(gp_py_api_t, incref)},
        {"Py_DecRef", offsetof(gp_py_api_t, decref)},
        {"Py_DecRef", offsetof(gp_py_api_t, drop)},
        {"PyGILState_GetThisThreadState", offsetof(gp_py_api_t, own_state)},
        {"PyType_IsSubtype", offsetof(gp_py_api_t, is_subtype)},
        {"PyImport_GetModuleDict", offsetof(gp_py_api_t, module_dict)},
        {"PyDict_GetItemString", offsetof(gp_py_api_t, dict_get)},
        {"PyObject_GetAttrString", offsetof(gp_py_api_t, get_attr)},
        {"PyObject_GetAttr", offsetof(gp_py_api_t, get_attr_of)},
        {"PyUnicode_InternFromString", offsetof(gp_py_api_t, text)},
        {"PyObject_Repr", offsetof(gp_py_api_t, repr)},
        {"PyUnicode_AsUTF8AndSize", offsetof(gp_py_api_t, utf8)},
        {"PyFloat_AsDouble", offsetof(gp_py_api_t, number)},
        {"PyDict_New", offsetof(gp_py_api_t, dict_new)},
        {"PyDict_SetItemString", offsetof(gp_py_api_t, dict_set)},
        {"Py_CompileString", offsetof(gp_py_api_t, compile)},
        {"PyEval_EvalCode", offsetof(gp_py_api_t, eval_code)},
        {"PyModule_GetName", offsetof(gp_py_api_t, module_name)},
        {"PyModule_GetDef", offsetof(gp_py_api_t, module_def)},
        {"PyCapsule_GetPointer", offsetof(gp_py_api_t, capsule_pointer)},
        {"PyCapsule_New", offsetof(gp_py_api_t, capsule_new)},
        {"PyInstanceMethod_New", offsetof(gp_py_api_t, instance_method)},
        {"PyObject_SetAttrString", offsetof(gp_py_api_t, set_attr)},
        {"PyObject_Call", offsetof(gp_py_api_t, call_with)},
        {"PyImport_ImportModule", offsetof(gp_py_api_t, import_module)},
        {"PyCFunction_NewEx", offsetof(gp_py_api_t, function_new)},
        {"PyObject_CallFunctionObjArgs", offsetof(gp_py_api_t, call)},
        {"PyObject_CallMethod", offsetof(gp_py_api_t, call_method)},
        {"PyTuple_Pack", offsetof(gp_py_api_t, tuple_pack)},
        {"PyTuple_GetItem", offsetof(gp_py_api_t, tuple_item)},
        {"PyTuple_Size", offsetof(gp_py_api_t, tuple_size)},
        {"PyList_GetItem", offsetof(gp_py_api_t, list_item)},
        {"PyList_Size", offsetof(gp_py_api_t, list_size)},
        {"PyErr_Fetch", offsetof(gp_py_api_t, error_fetch)},
        {"PyErr_Restore", offsetof(gp_py_api_t, error_restore)},
        {"PyErr_Clear", offsetof(gp_py_api_t, error_clear)},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *found = dlsym(RTLD_DEFAULT, names[i].name);
        if (found == NULL)
            return false;
        *(void **)(void *)((char *)&gp_py + names[i].offset) = found;
    }
    void *current = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked"); // 3.13 on
    if (current == NULL)
        current = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    gp_py.current_state = (gp_py_t * (*)(void))(uintptr_t)current;
    return current != NULL;
}

bool gp_py_has_lock(void)
{
    gp_py_t *own = gp_py.own_state();
    return own != NULL && own == gp_py.current_state();
}

gp_py_method_t *gp_py_method_of(void *definition, const char *name)
{
    gp_py_method_t *method = *(gp_py_method_t **)(void *)((char *)definition + MODULE_DEF_METHODS);
    while (method != NULL && method->name != NULL && strcmp(method->name, name) != 0)
        method++;
    return method != NULL && method->name != NULL ? method : NULL;
}

gp_py_method_t *gp_py_method(gp_py_t *module, const char *name)
{
    void *definition = gp_py.module_def(module);
    if (definition == NULL)
        gp_py.error_clear();
    return definition != NULL ? gp_py_method_of(definition, name) : NULL;
}

gp_py_method_t *gp_py_type_method(gp_py_t *type, const char *name)
{
    gp_py_t *descriptor = gp_py.get_attr(type, name);
    gp_py_method_t *definition = NULL;
    if (descriptor == NULL)
        gp_py.error_clear();
    else if (gp_py_type(descriptor) == gp_py.method_type)
        definition = *gp_py_slot(descriptor, GP_PY_METHOD_DEFINITION);
    else if (strstr(gp_py_type_name(descriptor), "cython_function_or_method") != NULL) // a built-in one at its head
        definition = gp_py_definition(descriptor);
    if (definition != NULL && strcmp(definition->name, name) != 0)
        definition = NULL;
    gp_py.drop(descriptor);
    return definition;
}

gp_py_t *gp_py_type_in(const char *module_name, const char *name)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), module_name);
    gp_py_t *type = module != NULL ? gp_py.get_attr(module, name) : NULL;
    if (module != NULL && type == NULL)
        gp_py.error_clear();
    return type;
}

gp_py_method_t *gp_py_method_in(const char *module_name, const char *type_name, const char *name)
{
    gp_py_t *type = gp_py_type_in(module_name, type_name);
    gp_py_method_t *method = type != NULL ? gp_py_type_method(type, name) : NULL;
    gp_py.drop(type);
    return method;
}

void *gp_py_replace_method(gp_py_method_t *method, int flags, void *mine)
{
    void *before = method != NULL && method->flags == flags ? method->function : NULL;
    if (before != NULL)
        method->function = mine;
    return before;
}

gp_py_vectorcall_t *gp_py_replace_vectorcall(gp_py_t *function, gp_py_vectorcall_t *mine)
{
    enum { WORDS_MAX = 32 };
    void *usual = dlsym(RTLD_DEFAULT, "_PyFunction_Vectorcall"), **words = (void **)(void *)function;
    void *(*find)(gp_py_t *) = (void *(*)(gp_py_t *))(uintptr_t)dlsym(RTLD_DEFAULT, "PyVectorcall_Function");
    if (usual == NULL && find != NULL && find(function) != (void *)(uintptr_t)mine) // from 3.13 on it has no symbol
        usual = find(function);
    size_t size = *gp_py_size(gp_py_type(function)) / sizeof(void *);
    for (size_t i = 2; usual != NULL && i < size && i < WORDS_MAX; i++) {
        if (words[i] == usual) {
            words[i] = (void *)(uintptr_t)mine;
            return (gp_py_vectorcall_t *)(uintptr_t)usual;
        }
    }
    return NULL;
}
