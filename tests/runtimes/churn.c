// A server's worth of short coroutines on Boost.Context: each is made on a stack of a pool, runs once, and is forgotten.
//   churn COROUTINES STACKS
#include "shares.h"

typedef struct transfer {
    void *context, *data;
} transfer_t;

extern transfer_t jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

static unsigned long ran;

static void entry(transfer_t from)
{
    ran++;
    truth_spin();
    jump_fcontext(from.context, NULL); // and never comes back
}

// Not getrusage(): that begins with what the process was before exec.
static long peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "VmHWM: %ld", &kib);
    if (file != NULL)
        fclose(file);
    return kib;
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 3)
        return 2;
    long count = atol(argv[1]), stacks = atol(argv[2]);
    char *memory = malloc((size_t)stacks * SHARES_STACK_BYTES);
    for (long i = 0; i < count; i++) {
        char *stack = memory + i % stacks * SHARES_STACK_BYTES;
        jump_fcontext(make_fcontext(stack + SHARES_STACK_BYTES, SHARES_STACK_BYTES, entry), NULL);
    }
    printf("RAN %lu\nPEAK %ld\n", ran, peak_kib());
    truth_print_total();
    return SHARES_STATUS;
}
