// SPDX-License-Identifier: MIT
// A host that is linked with greenprof's hooks, and a runtime in a shared library: nothing is preloaded. Ends with 0
// where its coroutine is known, 3 where it is not.
#include <stddef.h>
#include <stdlib.h>

#include <greenprof/coro.h>
#include <greenprof/prof.h>

typedef struct transfer {
    void *context, *data;
} transfer_t;

extern transfer_t jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

static unsigned long switches;

static void run(transfer_t from)
{
    for (;;) {
        switches = prof_coro_current() != NULL ? prof_coro_switches(NULL) : 0;
        from = jump_fcontext(from.context, NULL);
    }
}

int main(void)
{
    enum { STACK_BYTES = 65536, ROUNDS = 100 };
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = prof_start(&options);
    char *stack = malloc(STACK_BYTES);
    void *context = make_fcontext(stack + STACK_BYTES, STACK_BYTES, run);
    for (int i = 0; i < ROUNDS; i++)
        context = jump_fcontext(context, NULL).context;
    if (profile == NULL || prof_stop(profile) != 0 || prof_dump_stats(profile, "hooked.prof") != 0)
        return 1;
    prof_free(profile);
    return switches == ROUNDS ? 0 : 3;
}
