// SPDX-License-Identifier: MIT
// Built-in modules of an interpreter that has not begun: they are met as they are made.
#pragma once

enum { GP_INITTAB_MAX = 3 };

// Have `made` called with the definition (PyModuleDef) of the built-in module `name`, which initialises itself in two
// phases, before anything can import it. For so many modules at most. Threads: one at a time, before the interpreter.
// Source: PyImport_Inittab, Include/import.h.
void gp_inittab_watch(const char *name, void (*made)(void *definition));
