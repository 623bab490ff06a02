// Between the ucontext hook's C half and its stubs.
#ifndef GP_UCONTEXT_HOOK_H
#define GP_UCONTEXT_HOOK_H

#include <stdint.h>
#include <ucontext.h>

#include "signal/coro_record.h"

// glibc's functions; NULL until gp_ucontext_resolve() ran.
extern void *gp_ucontext_real_swap, *gp_ucontext_real_set;

// Address to which glibc lets an entry function return; 0 = not yet seen.
extern uintptr_t gp_ucontext_start_context;

// Where entry functions return to instead: tells gp_ucontext_ended(), then goes on at gp_ucontext_start_context.
extern char gp_ucontext_return[];

void gp_ucontext_resolve(void);
void gp_ucontext_switch(const ucontext_t *target, const gp_park_t *park);
void gp_ucontext_ended(const ucontext_t *link);

#endif
