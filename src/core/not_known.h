// SPDX-License-Identifier: MIT
// Facts about a runtime in this process in a version, build or form unknown to greenprof. A hook that finds such a
// thing tells it here, once and for good; the capture has it, and so have the last line of `run`, `report`, `info` and
// the pages (doc/runtimes.md).
//
// Model: a fact belongs to its hook, and lasts as long as the core: a list that only grows.
#pragma once

#include <stdatomic.h>
#include <stddef.h>

enum { GP_NOT_KNOWN_SIZE = 160, GP_NOT_KNOWN_LISTED = 16 };

typedef struct gp_not_known {
    atomic_flag is_taken;
    char text[GP_NOT_KNOWN_SIZE];    // the fact, and the resulting blindness: "Python 3.19.2: native frames only"
    const struct gp_not_known *next; // told before it
} gp_not_known_t;

// Tell a fact: zeros until then. The first of several calls counts.
//   format: as printf(); without ';', and cut to what there is room for.
// Threads: any. Signals: not safe.
__attribute__((format(printf, 2, 3))) void gp_not_known_tell(gp_not_known_t *fact, const char *format, ...);

// Who looks for more where something may have been loaded meanwhile: hooks add themselves, for good, as the core is
// loaded. The writers of captures call them all, with the drain lock.
typedef struct gp_not_known_look {
    void (*look)(void);
    struct gp_not_known_look *next;
} gp_not_known_look_t;

void gp_not_known_look_add(gp_not_known_look_t *look);
void gp_not_known_look(void);

// The fact that was told last, from which `next` leads to the others; NULL = there is none. Threads: any.
const gp_not_known_t *gp_not_known_latest(void);

// Their texts, as many as there is room for, then NULL.
void gp_not_known_list(const char *list[GP_NOT_KNOWN_LISTED + 1]);

// All of them, separated by ", ". Returns the length, cut to what there is room for; 0 = there is none.
size_t gp_not_known_words(char *text, size_t size);
