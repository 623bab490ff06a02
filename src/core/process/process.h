// SPDX-License-Identifier: MIT
// The process' own life: load, fork, exec, exit. What a capture session does at each is told through
// gp_process_watch_t.
#ifndef GP_PROCESS_PROCESS_H
#define GP_PROCESS_PROCESS_H

#include <stdbool.h>

typedef struct gp_process_watch {
    void (*forked_child)(void); // in the child, after sampling was set up anew
    void (*before_exec)(void);  // this process' image is about to be replaced; write what there is
    void (*ending)(void);       // exit() or _exit()
} gp_process_watch_t;

// One watch, set once.
void gp_process_set_watch(const gp_process_watch_t *watch);

// Prepare what must be in place before the first thread, fork or exec. Idempotent.
void gp_process_init(void);

// Around an exec that does not come through the functions that are interposed: nobody is to be signalled in the new
// image.
void gp_process_before_exec(void);
void gp_process_after_failed_exec(void);

// exit() is under way: let the watch write what there is.
void gp_process_ending(void);

// Is the caller in the process that the state belongs to (not in a vfork child that shares its memory)?
bool gp_process_is_mine(void);

#endif
