// SPDX-License-Identifier: MIT
// A server's worth of short coroutines: each is made on a stack of a pool, runs once, and is forgotten. On
// Boost.Context, or on ucontext where CHURN_UCONTEXT is defined.
//   churn COROUTINES STACKS
#include <ucontext.h>

#include "shares.h"

static unsigned long ran;

#if defined(CHURN_UCONTEXT)
static ucontext_t loop;

static void entry(void)
{
    ran++;
    truth_spin(); // and ends: to the loop
}

static void run_on(char *stack)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = SHARES_STACK_BYTES;
    context.uc_link = &loop;
    makecontext(&context, entry, 0);
    swapcontext(&loop, &context);
}
#else
typedef struct transfer {
    void *context, *data;
} transfer_t;

extern transfer_t jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

static void entry(transfer_t from)
{
    ran++;
    truth_spin();
    jump_fcontext(from.context, NULL); // and never comes back
}

static void run_on(char *stack)
{
    jump_fcontext(make_fcontext(stack + SHARES_STACK_BYTES, SHARES_STACK_BYTES, entry), NULL);
}
#endif

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 3)
        return 2;
    long count = atol(argv[1]), stacks = atol(argv[2]);
    char *memory = malloc((size_t)stacks * SHARES_STACK_BYTES);
    for (long i = 0; i < count; i++)
        run_on(memory + i % stacks * SHARES_STACK_BYTES);
    // Not getrusage(): that begins with what the process was before exec.
    printf("RAN %lu\nPEAK %ld\n", ran, truth_from_proc("/proc/self/status", "VmHWM:"));
    truth_print_total();
    return SHARES_STATUS;
}
