// SPDX-License-Identifier: MIT
#include "interpreter/function_sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collector.h"
#include "collect/functions.h"
#include "interpreter/code_objects.h"
#include "interpreter/frame_walk.h"
#include "interpreter/peek_text.h"

enum {
    TEXT_SIZE = 2048,
    FIRST_SHIFT = 64 - 10, // 1024 slots
    BUILTIN_SELF = 24,     // PyCFunctionObject.m_self
    BUILTIN_MODULE = 32,   // PyCFunctionObject.m_module
};

gp_function_sites_t gp_function_sites;
static const char forgotten; // the key of what has died: searches go on behind it

static bool function_sites_make_room(void)
{
    gp_function_sites_t old = gp_function_sites;
    size_t slots = old.slots != NULL ? old.mask + 1 : 0;
    if (old.used * 2 < slots)
        return true;
    size_t live = 0;
    for (size_t i = 0; i < slots; i++)
        live += old.slots[i].key != NULL && old.slots[i].key != &forgotten;
    gp_function_sites_t grown = {.shift = slots == 0 ? FIRST_SHIFT : old.shift - (live * 4 > slots)};
    grown.mask = ((size_t)1 << (64 - grown.shift)) - 1;
    grown.slots = calloc(grown.mask + 1, sizeof(*grown.slots));
    if (grown.slots == NULL)
        return false;
    gp_function_sites = grown;
    for (size_t i = 0; i < slots; i++) {
        if (old.slots[i].key == NULL || old.slots[i].key == &forgotten)
            continue;
        *gp_function_site_slot(old.slots[i].key) = old.slots[i];
        gp_function_sites.used++;
    }
    free(old.slots);
    return true;
}

static gp_py_t *function_sites_member(const void *object, size_t offset)
{
    return *(gp_py_t *const *)(const void *)((const char *)object + offset);
}

// "<method 'append' of 'list' objects>", the repr of the type's attribute `name`. New reference; NULL = none such.
static gp_py_t *function_sites_method_label(gp_py_t *self, const char *name)
{
    gp_py_t *method = gp_py.get_attr(gp_py_type(self), name);
    bool is_plain = method == NULL || gp_py.is_subtype(gp_py_type(method), gp_py.builtin_type);
    gp_py_t *label = is_plain ? NULL : gp_py.repr(method);
    gp_py.drop(method);
    return label;
}

// cProfile's name of a built-in function: its method's, or "<built-in method time.sleep>".
static void function_sites_label_builtin(gp_py_t *builtin, char *label)
{
    const char *name = gp_py_definition(builtin)->name, *text = NULL;
    gp_py_t *self = function_sites_member(builtin, BUILTIN_SELF),
            *module = function_sites_member(builtin, BUILTIN_MODULE), *method = NULL;
    if (self != NULL && !gp_py.is_subtype(gp_py_type(self), gp_py.module_type)) {
        method = function_sites_method_label(self, name);
        text = method != NULL ? gp_py.utf8(method, NULL) : NULL;
        if (text != NULL)
            snprintf(label, TEXT_SIZE, "%s", text);
    } else if (module != NULL && gp_py.is_subtype(gp_py_type(module), gp_py.text_type)) {
        text = gp_py.utf8(module, NULL);
        if (text != NULL)
            snprintf(label, TEXT_SIZE, "<built-in method %s.%s>", text, name);
    }
    if (text == NULL)
        snprintf(label, TEXT_SIZE, "<built-in method %s>", name);
    gp_py.error_clear();
    gp_py.drop(method);
}

// A function of the hooks, of the package, or a method of its type.
static bool function_sites_is_own_builtin(gp_py_t *builtin)
{
    gp_py_t *self = function_sites_member(builtin, BUILTIN_SELF),
            *module = function_sites_member(builtin, BUILTIN_MODULE);
    const char *name = gp_py_definition(builtin)->name, *module_name = NULL;
    if (module != NULL && gp_py.is_subtype(gp_py_type(module), gp_py.text_type))
        module_name = gp_py.utf8(module, NULL);
    return strcmp(name, "greenprof") == 0 ||
           (module_name != NULL && strcmp(module_name, "greenprof._greenprof") == 0) ||
           (self != NULL && strcmp(gp_py_type_name(self), "_greenprof.Profile") == 0);
}

static const gp_exact_site_t *function_sites_site_of(const void *key, const char *name, const char *file, uint32_t line)
{
    gp_drain_enter();
    uint32_t number = gp_functions_number(name, strlen(name), file, strlen(file), line);
    const gp_exact_site_t *site = number != 0 ? gp_exact_site_of_language(number, line, key) : NULL;
    gp_drain_leave();
    return site;
}

static const gp_exact_site_t *function_sites_site_of_builtin(gp_py_t *builtin)
{
    char label[TEXT_SIZE];
    gp_py_t *error[3];
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    bool is_own = function_sites_is_own_builtin(builtin);
    if (!is_own)
        function_sites_label_builtin(builtin, label);
    gp_py.error_restore(error[0], error[1], error[2]);
    return is_own ? NULL : function_sites_site_of(gp_py_definition(builtin), label, "~", 0);
}

static const gp_exact_site_t *function_sites_site_of_code(const void *code)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    char name[TEXT_SIZE], file[TEXT_SIZE];
    if (gp_cpython_peek_text(layout, (uintptr_t)function_sites_member(code, layout->code_name), name, sizeof(name)) <
            0 ||
        gp_cpython_peek_text(layout, (uintptr_t)function_sites_member(code, layout->code_file), file, sizeof(file)) <
            0 ||
        gp_cpython_is_own_file(file))
        return NULL;
    uint32_t line;
    memcpy(&line, (const char *)code + layout->code_first_line, sizeof(line));
    return function_sites_site_of(code, name, file, line);
}

const gp_exact_site_t *gp_function_site_add(const void *key, gp_py_t *builtin)
{
    const gp_exact_site_t *site =
        builtin != NULL ? function_sites_site_of_builtin(builtin) : function_sites_site_of_code(key);
    if (!function_sites_make_room())
        return site;
    gp_function_site_t *slot = gp_function_site_slot(key); // met meanwhile, if Python code ran
    gp_function_sites.used += slot->key == NULL;
    *slot = (gp_function_site_t){key, site};
    return site;
}

void gp_function_site_forget(const void *code)
{
    gp_function_site_t *slot = gp_function_sites.slots != NULL ? gp_function_site_slot(code) : NULL;
    if (slot == NULL || slot->key == NULL)
        return;
    slot->key = &forgotten;
    if (slot->site != NULL)
        gp_exact_site_forget(slot->site, code);
}
