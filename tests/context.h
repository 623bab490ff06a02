// SPDX-License-Identifier: MIT
// A context of glibc's for makecontext(): on a stack, going on at `link` when its function returns.
#ifndef CONTEXT_H
#define CONTEXT_H

#include <ucontext.h>

static inline void context_on(ucontext_t *context, void *stack, size_t bytes, ucontext_t *link)
{
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = bytes;
    context->uc_link = link;
}

#endif
