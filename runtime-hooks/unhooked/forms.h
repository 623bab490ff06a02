// SPDX-License-Identifier: MIT
// Forms of runtimes without a hook here: versions and builds with other names of their functions, and
// runtimes without any hook. The folders declare them by the FORMS of greenprof_runtime(), which generates the
// table. The core looks for them in what the program has loaded, and tells of them (not_known.h); the command in files.
#pragma once

#include <stdbool.h>

enum { GP_FORM_NAMES_MAX = 4 };

typedef struct gp_form {
    const char *title;
    const char *file; // pattern of an object's file name; "" = any
    const char *has;  // a symbol that such an object defines; "" = none tells
    // Symbols that the form lacks: an object with one is hooked. NULL = no more.
    const char *lacks[GP_FORM_NAMES_MAX + 1];
    const char *unseen; // the part that is not seen
} gp_form_t;

extern const gp_form_t gp_forms[]; // ended by a NULL title

// Does an object define a name for others?
typedef bool gp_form_defines_t(const void *object, const char *name);

// Is an object such a form? `file`: its name, without the folder. Threads: any. Signals: not safe.
bool gp_form_is(const gp_form_t *form, const char *file, gp_form_defines_t *defines, const void *object);
