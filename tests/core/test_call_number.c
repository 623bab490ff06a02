// SPDX-License-Identifier: MIT
// The number of the system call that a signal has interrupted: what compilers and C libraries make of it is known, and
// what only looks like a number is not taken for one.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "signal/call_number.h"

#if defined(__x86_64__)

// FORM(NAME, CODE): long form_NAME(long pid, long tid, long signal, long number), which makes the system call tgkill,
// 234, by CODE. BARE: without unwind rows.
#define BARE(name, code)                                                                                               \
    long form_##name(long, long, long, long);                                                                          \
    __asm__(".text\n.p2align 4\nform_" #name ":\n" code "\nret\n.size form_" #name ", . - form_" #name "\n"            \
            ".type form_" #name ", @function\n");
#define FORM(name, code) BARE(name, ".cfi_startproc\n" code "\nret\n.cfi_endproc\n")

FORM(constant, "mov $234, %eax; syscall")
FORM(constant_before_arguments,
     "mov $234, %eax; mov $7, %r8d; lea 0x48(%rsp), %r9; mov %rdx, %r10; mov %rdi, %rdi; syscall")
FORM(long_constant, "mov $234, %rax; nopw 0x0(%rax,%rax,1); syscall")
FORM(longest_constant, "movabs $234, %rax; syscall")
FORM(pushed, "push $127; pop %rax; add $0, %r8; mov $234, %r9d; push %r9; pop %rax; syscall")
FORM(in_register, "mov %rcx, %r8; mov %r8d, %eax; syscall")
FORM(in_old_register, "push %rbx; .cfi_adjust_cfa_offset 8; mov %ecx, %ebx; mov %ebx, %eax; syscall;"
                      "pop %rbx; .cfi_adjust_cfa_offset -8")
FORM(in_red_zone, "mov %rcx, -8(%rsp); mov $1, %r8d; mov -8(%rsp), %rax; syscall")
FORM(in_frame, "sub $24, %rsp; .cfi_adjust_cfa_offset 24; mov %rcx, 8(%rsp); mov 8(%rsp), %eax; push $0;"
               ".cfi_adjust_cfa_offset 8; syscall; add $32, %rsp; .cfi_adjust_cfa_offset -32")
FORM(behind_a_branch, "test %edx, %edx; je 1f; cmp $65, %edx; ja 1f; nop; 1: mov $234, %eax; syscall")
FORM(beside_another_call, "mov $39, %eax; syscall; mov %rcx, %rcx; mov $234, %eax; syscall")
BARE(bare_constant, "mov $234, %eax; syscall")
BARE(bare_register, "mov %rcx, %r9; mov %r9d, %eax; syscall")

// As glibc since 2.41: the number is the last argument, and in no register any more when the call is made.
FORM(cancel_arch, "mov %rdi, %r11; mov %rsi, %rax; mov %rdx, %rdi; mov %rcx, %rsi; mov %r8, %rdx; mov %r9, %r10;"
                  "mov 8(%rsp), %r8; mov 16(%rsp), %r9; mov %r11, 8(%rsp); syscall")
FORM(cancel, "push %rbx; .cfi_adjust_cfa_offset 8; mov %rsp, %rbx; test %rbx, %rbx; je 1f;"
             "push %r9; .cfi_adjust_cfa_offset 8; mov %rcx, %r9; mov %rsi, %rcx; push %r8; .cfi_adjust_cfa_offset 8;"
             "mov 0x20(%rsp), %rsi; mov %rdx, %r8; mov %rdi, %rdx; call form_cancel_arch;"
             "pop %rcx; .cfi_adjust_cfa_offset -8; pop %rcx; .cfi_adjust_cfa_offset -8;"
             "1: pop %rbx; .cfi_adjust_cfa_offset -8")
FORM(by_arguments,
     "xor %r8d, %r8d; xor %r9d, %r9d; push $234; .cfi_adjust_cfa_offset 8; xor %ecx, %ecx; call form_cancel;"
     "pop %rcx; .cfi_adjust_cfa_offset -8")
// The number is the first argument, as of syscall(); the last one, which is 0, is that of read().
FORM(raw, "mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsi; mov %rcx, %rdx; mov %r8, %r10; mov 8(%rsp), %r9; syscall")
FORM(by_first_argument, "mov %rdx, %rcx; mov %rsi, %rdx; mov %rdi, %rsi; mov $234, %edi; xor %r9d, %r9d; push $0;"
                        ".cfi_adjust_cfa_offset 8; call form_raw; pop %rcx; .cfi_adjust_cfa_offset -8")

// Not to be known, but in no case another number.
FORM(in_memory, "mov $0, %eax; push %rcx; .cfi_adjust_cfa_offset 8; mov %rsp, %r8; mov (%r8), %rax; syscall;"
                "pop %rcx; .cfi_adjust_cfa_offset -8")
FORM(jumped_to, "mov %rcx, %rax; test %rax, %rax; jne 1f; mov $0, %eax; 1: syscall")
FORM(jumped_back_to, "mov $234, %eax; jmp 2f; 1: mov $0, %eax; 2: mov $1, %r8d; syscall; test %edx, %edx; je 1b")
FORM(conditional, "mov $7, %eax; test %rcx, %rcx; cmovne %rcx, %rax; syscall")
FORM(computed, "mov $233, %eax; inc %eax; syscall")
FORM(low_byte, "mov $7, %eax; mov %cl, %al; syscall")
FORM(looks_like_one, "mov %rcx, %rax; mov $7, %r8d; syscall")
FORM(within_another,
     "mov %ecx, -4(%rsp); mov $7, %r8d; movabs $0x9000000007b8, %r9; mov -4(%rsp), %eax; mov $0, %r9; syscall")
FORM(last_branch, "mov $0, %eax; test %rcx, %rcx; je 1f; mov %rcx, %rax; 1: nop; syscall")
BARE(bare_memory, "mov $0, %eax; mov %rcx, -8(%rsp); mov -8(%rsp), %rax; syscall")
BARE(bare_other_register, "mov $7, %r8d; mov %ecx, %eax; mov $0, %r8d; syscall")

enum { NOT_CALLED = -2, UNKNOWN = -1 };

static volatile long seen;

static void on_signal(int number, siginfo_t *info, void *context)
{
    uint64_t found;
    (void)number;
    (void)info;
    seen = gp_call_number(context, &found) ? (long)found : UNKNOWN;
}

static long number_in(long (*form)(long, long, long, long))
{
    seen = NOT_CALLED;
    form(getpid(), syscall(SYS_gettid), SIGUSR1, SYS_tgkill);
    return seen;
}

#define CHECK(name, wanted)                                                                                            \
    do {                                                                                                               \
        long number = number_in(form_##name);                                                                          \
        if (number != (wanted))                                                                                        \
            fail_msg("%s: %ld", #name, number);                                                                        \
    } while (0)

static void what_compilers_make_is_known(void **state)
{
    (void)state;
    CHECK(constant, SYS_tgkill);
    CHECK(constant_before_arguments, SYS_tgkill);
    CHECK(long_constant, SYS_tgkill);
    CHECK(longest_constant, SYS_tgkill);
    CHECK(pushed, SYS_tgkill);
    CHECK(in_register, SYS_tgkill);
    CHECK(in_old_register, SYS_tgkill);
    CHECK(in_red_zone, SYS_tgkill);
    CHECK(in_frame, SYS_tgkill);
    CHECK(behind_a_branch, SYS_tgkill);
    CHECK(beside_another_call, SYS_tgkill);
    CHECK(bare_constant, SYS_tgkill);
    CHECK(bare_register, SYS_tgkill);
}

static void what_callers_gave_is_known(void **state)
{
    (void)state;
    CHECK(by_arguments, SYS_tgkill);
    CHECK(by_first_argument, SYS_tgkill);
}

// The right one may be found in the caller.
static void what_only_looks_so_is_not_taken(void **state)
{
    static long (*const forms[])(long, long, long, long) = {
        form_in_memory,   form_jumped_to,   form_jumped_back_to,     form_conditional,
        form_computed,    form_low_byte,    form_looks_like_one,     form_within_another,
        form_last_branch, form_bare_memory, form_bare_other_register};
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        long number = number_in(forms[i]);
        if (number != UNKNOWN && number != SYS_tgkill)
            fail_msg("form %zu: %ld", i, number);
    }
}

static void what_the_c_library_makes_is_known(void **state)
{
    (void)state;
    seen = NOT_CALLED;
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
    assert_int_equal(seen, SYS_tgkill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_compilers_make_is_known),
        cmocka_unit_test(what_callers_gave_is_known),
        cmocka_unit_test(what_only_looks_so_is_not_taken),
        cmocka_unit_test(what_the_c_library_makes_is_known),
    };
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("SKIP: only the x86-64 instructions are known");
    return 77;
}

#endif
