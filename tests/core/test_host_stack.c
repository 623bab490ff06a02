// SPDX-License-Identifier: MIT
// Coroutines made with sigaltstack() and a handler that returns, as in QEMU's coroutine-sigaltstack.c: the handler's
// frame is still on its stack when it is jumped into. And alternate stacks that are for crashes.
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>

#include "cmocka_all.h"
#include "sample_at.h"

#if defined(SAMPLE_AT)

#include "collect/shield.h"
#include "signal/host_stack.h"

enum { COROUTINES = 10, STACK = 256 << 10, LEFT_WORDS = 64, PERIOD_NS = 1000000000 / SAMPLE_AT_HZ };

static stack_t map_stack(void)
{
    stack_t stack = {.ss_size = STACK};
    stack.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(stack.ss_sp, MAP_FAILED);
    return stack;
}

// --- A coroutine.

static sigjmp_buf reenter, home;
static volatile sig_atomic_t is_called, is_intact, runs;

// The signal is blocked here, by sigsuspend()'s mask: it arrives as soon as this has returned.
static void trampoline(int number)
{
    (void)number;
    volatile uintptr_t left[LEFT_WORDS];
    for (int i = 0; i < LEFT_WORDS; i++)
        left[i] = (uintptr_t)i * 0x0101010101010101u;
    is_called = 1;
    sample_at_send_here(gp_thread_self);
    if (sigsetjmp(reenter, 0) == 0)
        return;
    runs = 1;
    is_intact = 1;
    for (int i = 0; i < LEFT_WORDS; i++)
        is_intact = is_intact && left[i] == (uintptr_t)i * 0x0101010101010101u;
    siglongjmp(home, 1);
}

static void make_coroutine(const stack_t *stack)
{
    sigset_t signals, before;
    stack_t old, now;
    struct sigaction action = {.sa_handler = trampoline, .sa_flags = SA_ONSTACK}, action_before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR2, &action, &action_before);
    sigaltstack(stack, &old);
    is_called = 0;
    pthread_kill(pthread_self(), SIGUSR2);
    sigfillset(&signals);
    sigdelset(&signals, SIGUSR2);
    while (!is_called)
        sigsuspend(&signals);
    sigaltstack(NULL, &now);
    assert_ptr_equal(now.ss_sp, stack->ss_sp);
    assert_int_equal(now.ss_size, stack->ss_size);
    assert_int_equal(now.ss_flags, 0);
    now.ss_flags = SS_DISABLE;
    assert_int_equal(sigaltstack(&now, NULL), 0);
    if (!(old.ss_flags & SS_DISABLE))
        sigaltstack(&old, NULL);
    sigaction(SIGUSR2, &action_before, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void enter_coroutine(void)
{
    runs = 0;
    if (sigsetjmp(home, 0) == 0)
        siglongjmp(reenter, 1);
}

static void handlers_frame_is_left_alone(void **state)
{
    (void)state;
    for (int i = 0; i < COROUTINES; i++) {
        stack_t stack = map_stack();
        burn(PERIOD_NS);
        uint64_t signals = gp_thread_self->counters[GP_COUNTER_SIGNALS];
        make_coroutine(&stack);
        assert_true(gp_thread_self->counters[GP_COUNTER_SIGNALS] > signals);
        enter_coroutine();
        assert_true(runs);
        assert_true(is_intact);
        munmap(stack.ss_sp, STACK);
    }
}

// --- A stack for crashes.

static volatile sig_atomic_t handled, handled_on;

static void note(int number)
{
    (void)number;
    stack_t now;
    sigaltstack(NULL, &now);
    handled_on = (now.ss_flags & SS_ONSTACK) != 0;
    handled++;
}

static void *stack_in_force(void)
{
    stack_t now;
    gp_host_stack_change(NULL, &now);
    return now.ss_sp;
}

static void *stack_as_told(void)
{
    stack_t now;
    sigaltstack(NULL, &now);
    return now.ss_sp;
}

static void raise_on_stack(void)
{
    sigset_t set;
    handled_on = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR2);
    sigfillset(&set);
    sigdelset(&set, SIGUSR2);
    sigsuspend(&set);
    assert_true(handled_on);
}

// Handlers on small stacks run with the sampling signal blocked, which the program does not see.
static void small_stacks_are_shielded(void **state)
{
    (void)state;
    static char memory[8192 + 4096];
    int sampler = gp_sampling_signal();
    stack_t small = {.ss_sp = memory, .ss_size = 8192 + 4096}, old;
    struct sigaction on_stack = {.sa_handler = note, .sa_flags = SA_ONSTACK}, plain = {.sa_handler = note}, now, before;
    gp_kernel_action_t real;
    sigaction(SIGUSR2, &on_stack, &before);
    sigaltstack(&small, &old);
    assert_int_equal(gp_kernel_action(SIGUSR2, NULL, &real), 0); // installed before
    assert_true(real.mask >> (sampler - 1) & 1);
    assert_int_equal(gp_shield_in(SIGUSR2), sampler);
    sigaction(SIGUSR2, &on_stack, &now); // and after
    assert_int_equal(sigismember(&now.sa_mask, sampler), 0);
    assert_int_equal(gp_kernel_action(SIGUSR2, NULL, &real), 0);
    assert_true(real.mask >> (sampler - 1) & 1);
    sigaddset(&on_stack.sa_mask, sampler); // its own wish is its own
    sigaction(SIGUSR2, &on_stack, &now);
    assert_int_equal(sigismember(&now.sa_mask, sampler), 0);
    sigaction(SIGUSR2, &plain, &now);
    assert_int_equal(sigismember(&now.sa_mask, sampler), 1);
    assert_int_equal(gp_kernel_action(SIGUSR2, NULL, &real), 0);
    assert_false(real.mask >> (sampler - 1) & 1);
    sigaltstack(&old, NULL);
    sigaction(SIGUSR2, &before, NULL);
}

static void stack_comes_back(void **state)
{
    (void)state;
    stack_t stack = map_stack(), old;
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_ONSTACK}, before;
    sigaction(SIGUSR2, &action, &before);
    // By a sample.
    sigaltstack(&stack, &old);
    raise_on_stack();
    assert_ptr_not_equal(stack_in_force(), stack.ss_sp);
    assert_ptr_equal(stack_as_told(), stack.ss_sp);
    burn(2 * PERIOD_NS);
    sample_at_send_here(gp_thread_self);
    assert_ptr_equal(stack_in_force(), stack.ss_sp);
    raise_on_stack();
    assert_ptr_equal(stack_in_force(), stack.ss_sp);
    // By the end of the next handler.
    sigaltstack(&stack, NULL);
    raise_on_stack();
    raise_on_stack();
    assert_ptr_equal(stack_in_force(), stack.ss_sp);
    // By sigaltstack().
    sigaltstack(&stack, NULL);
    raise_on_stack();
    sigaltstack(&stack, NULL);
    assert_ptr_equal(stack_in_force(), stack.ss_sp);
    assert_int_equal(handled, 5);
    sigaltstack(&old, NULL);
    assert_ptr_equal(stack_in_force(), gp_thread_self->alternate_stack.ss_sp);
    sigaction(SIGUSR2, &before, NULL);
    munmap(stack.ss_sp, STACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(handlers_frame_is_left_alone, sample_at_set_up, sample_at_tear_down),
        cmocka_unit_test_setup_teardown(small_stacks_are_shielded, sample_at_set_up, sample_at_tear_down),
        cmocka_unit_test_setup_teardown(stack_comes_back, sample_at_set_up, sample_at_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; // handlers of the program return to code of ours on x86-64 alone
}

#endif
