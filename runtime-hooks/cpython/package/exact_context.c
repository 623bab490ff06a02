// SPDX-License-Identifier: MIT
#include "exact_context.h"

#include <stdlib.h>

#include "exact_profile.h"
#include "interface.h"

enum { BUCKETS = 4096 };

static exact_context_t *buckets[BUCKETS], *free_contexts;
static unsigned generation;
static uint64_t last_serial;

__thread exact_here_t exact_here __attribute__((tls_model("initial-exec")));
unsigned exact_epoch = 1;
exact_t *exact_running;

static exact_context_t **bucket_of(const void *key)
{
    return &buckets[((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15ull >> 52];
}

static exact_context_t **find(const void *key)
{
    exact_context_t **link = bucket_of(key);
    while (*link != NULL && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

static void leave_stack(exact_stack_t *stack, uint64_t now)
{
    exact_stack_flush(stack, now);
    if (stack->prev != NULL)
        stack->prev->next = stack->next;
    else
        stack->profile->stacks = stack->next;
    if (stack->next != NULL)
        stack->next->prev = stack->prev;
    free(stack->entries);
    free(stack);
}

static void forget(const void *key, uint64_t now)
{
    exact_context_t **link = find(key), *context = *link;
    if (context == NULL)
        return;
    *link = context->next;
    for (size_t i = 0; i < context->count; i++)
        leave_stack(context->stacks[i], now);
    free(context->stacks);
    *context = (exact_context_t){.next = free_contexts};
    free_contexts = context;
    exact_epoch++; // something else may come to lie at the address of what is gone
}

// thread: 0 = of a green thread or task.
static exact_context_t *make(const void *key, uint64_t thread, uint64_t now)
{
    exact_context_t *context = *find(key);
    if (context != NULL && context->thread == thread)
        return context;
    forget(key, now);
    context = free_contexts;
    if (context != NULL)
        free_contexts = context->next;
    else if ((context = malloc(sizeof(*context))) == NULL)
        return NULL;
    *context = (exact_context_t){.key = key, .thread = thread, .serial = ++last_serial, .next = *bucket_of(key)};
    return *bucket_of(key) = context;
}

static exact_stack_t *stack_in(const exact_context_t *context, const exact_t *profile)
{
    for (size_t i = 0; i < context->count; i++)
        if (context->stacks[i]->profile == profile)
            return context->stacks[i];
    return NULL;
}

exact_stack_t *exact_context_join(exact_context_t *context, exact_t *profile, uint64_t now)
{
    exact_stack_t *stack = stack_in(context, profile);
    if (stack != NULL)
        return stack;
    if (context->count == context->room) {
        size_t room = context->room > 0 ? context->room * 2 : 2;
        exact_stack_t **grown = realloc(context->stacks, room * sizeof(*grown));
        if (grown == NULL)
            return NULL;
        context->stacks = grown;
        context->room = room;
    }
    stack = calloc(1, sizeof(*stack));
    if (stack == NULL)
        return NULL;
    stack->profile = profile;
    stack->paused_at = now;
    stack->next = profile->stacks;
    if (stack->next != NULL)
        stack->next->prev = stack;
    profile->stacks = stack;
    return context->stacks[context->count++] = stack;
}

// Profiles of this thread and of the process have it without asking.
static void join_broad(exact_context_t *context, uint64_t now)
{
    if (context->generation == generation)
        return;
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    for (exact_t *profile = exact_running; profile != NULL; profile = profile->next)
        if (profile->scope == EXACT_PROCESS || (profile->scope == EXACT_THREAD && profile->thread == thread))
            exact_context_join(context, profile, now);
    context->generation = generation;
}

static void enter(const void *coroutine, uint64_t now)
{
    exact_here_t *here = &exact_here;
    exact_context_t *before = here->context, *context;
    PyThreadState *thread = PyThreadState_Get();
    if (before != NULL && before->serial != here->serial)
        before = NULL;
    context = coroutine != NULL ? make(coroutine, 0, now) : make(thread, PyThreadState_GetID(thread), now);
    for (size_t i = 0; before != NULL && before != context && i < before->count; i++)
        exact_stack_pause(before->stacks[i], now);
    if (here->place == NULL)
        here->place = prof_core_interface()->language_place_of_running();
    here->context = context;
    here->epoch = exact_epoch;
    here->greenlet = gp_language_running(here->place);
    if (context == NULL)
        return;
    here->serial = context->serial;
    join_broad(context, now);
    for (size_t i = 0; i < context->count; i++)
        exact_stack_resume(context->stacks[i], now);
}

exact_context_t *exact_context_look(uint64_t now)
{
    enter(prof_core_interface()->language_running(), now);
    return exact_here.context;
}

// A green thread is in the profiles of the one that makes it.
static void on_made(const void *coroutine, uint64_t now)
{
    forget(coroutine, now); // another one that lay there, and of whose end nobody knew
    exact_context_t *maker = exact_context_current(now), *context = NULL;
    if (maker != NULL && maker->count > 0)
        context = make(coroutine, 0, now);
    for (size_t i = 0; context != NULL && i < maker->count; i++)
        exact_context_join(context, maker->stacks[i]->profile, now);
}

void exact_context_detach(const void *coroutine, uint64_t now)
{
    exact_context_t *context = *find(coroutine != NULL ? coroutine : PyThreadState_Get());
    for (size_t i = context != NULL ? context->count : 0; i-- > 0;) {
        exact_stack_t *stack = context->stacks[i];
        if (stack->profile->scope != EXACT_REQUEST || stack->profile->owner == context->serial)
            continue;
        context->stacks[i] = context->stacks[--context->count];
        leave_stack(stack, now);
    }
}

void exact_context_on_event(gp_language_event_t event, void *coroutine)
{
    uint64_t now = exact_ticks();
    if (event == GP_LANGUAGE_GONE)
        forget(coroutine, now);
    else if (event == GP_LANGUAGE_MADE)
        on_made(coroutine, now);
    else if (event == GP_LANGUAGE_DETACHED)
        exact_context_detach(coroutine, now);
    else
        enter(coroutine, now);
}

void exact_context_on_start(void)
{
    generation++;
    exact_epoch++;
}

void exact_context_leave(exact_t *profile, uint64_t now)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (exact_context_t *context = buckets[i]; context != NULL; context = context->next) {
            exact_stack_t *stack = stack_in(context, profile);
            for (size_t j = 0; stack != NULL && j < context->count; j++)
                if (context->stacks[j] == stack)
                    context->stacks[j] = context->stacks[--context->count];
            if (stack != NULL)
                leave_stack(stack, now);
        }
    }
}

void exact_context_forget_all(void)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (buckets[i] != NULL)
            forget(buckets[i]->key, exact_ticks());
}
