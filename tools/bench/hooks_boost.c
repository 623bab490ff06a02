// SPDX-License-Identifier: MIT
// Two Boost contexts that switch to and fro: through jump_fcontext() as the program sees it (0), and through Boost's
// own, past any interposed one (1).
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "worker.h"

enum { STACK_BYTES = 64 << 10 };

typedef struct transfer {
    void *context, *data;
} transfer_t;
typedef transfer_t jump_t(void *to, void *data);

extern transfer_t jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

static jump_t *volatile jump, *boost_jump;
static void *other;

static void run(transfer_t from)
{
    for (;;)
        from = jump(from.context, NULL);
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)figures;
    jump = which == 0 ? jump_fcontext : boost_jump;
    for (unsigned long i = 0; i < amount; i++)
        other = jump(other, NULL).context;
}

int main(int argc, char **argv)
{
    void *boost = dlopen(BOOST_CONTEXT, RTLD_LAZY | RTLD_NOLOAD);
    char *stack = malloc(STACK_BYTES);
    if (boost == NULL || stack == NULL)
        return 1;
    boost_jump = (jump_t *)(uintptr_t)dlsym(boost, "jump_fcontext");
    other = make_fcontext(stack + STACK_BYTES, STACK_BYTES, run);
    return worker_serve(argc, argv, block);
}
