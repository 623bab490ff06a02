// SPDX-License-Identifier: MIT
// Two glibc contexts that switch to and fro: through swapcontext() as the program sees it (0), and through glibc's own,
// past any interposed one (1).
#include <dlfcn.h>
#include <stdlib.h>
#include <ucontext.h>

#include "worker.h"

enum { STACK_BYTES = 64 << 10 };

typedef int swap_t(ucontext_t *, const ucontext_t *);

static ucontext_t home, other;
static swap_t *volatile swap, *glibc_swap;

static void run(void)
{
    for (;;)
        swap(&other, &home);
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)figures;
    swap = which == 0 ? swapcontext : glibc_swap;
    for (unsigned long i = 0; i < amount; i++)
        swap(&home, &other);
}

int main(int argc, char **argv)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (libc != NULL)
        glibc_swap = (swap_t *)(uintptr_t)dlsym(libc, "swapcontext");
    getcontext(&other);
    other.uc_stack.ss_size = STACK_BYTES;
    other.uc_stack.ss_sp = malloc(STACK_BYTES);
    if (other.uc_stack.ss_sp == NULL || glibc_swap == NULL)
        return 1;
    makecontext(&other, run, 0);
    return worker_serve(argc, argv, block);
}
