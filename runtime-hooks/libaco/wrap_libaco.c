// SPDX-License-Identifier: MIT
// libaco, coroutines with a "share stack" to themselves: acosw(from, to) finds the target's stack pointer in
// to->reg[5]. Where several share one, the stack is all that can be seen; they need the explicit API. Source:
// libaco 1.2, aco.h (ACO_REG_IDX_SP, aco_share_stack_t), acosw.S.
#include "wrap/wrap.h"

typedef struct share_stack { // its beginning
    void *memory;
    size_t size;
} share_stack_t;

extern void *__real_aco_create(void *main_co, share_stack_t *stack, size_t save_size, void (*run)(void),
                               void *argument);
void *__wrap_aco_create(void *main_co, share_stack_t *stack, size_t save_size, void (*run)(void), void *argument);

void *__wrap_aco_create(void *main_co, share_stack_t *stack, size_t save_size, void (*run)(void), void *argument)
{
    void *coroutine = __real_aco_create(main_co, stack, save_size, run, argument);
    if (coroutine != NULL && main_co != NULL && stack != NULL)
        gp_wrap_announce(stack->memory, stack->size, (const void *)(uintptr_t)run, NULL);
    return coroutine;
}
