// SPDX-License-Identifier: MIT
// Filters of system calls say here what they say in the kernel.
#include <errno.h>
#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bpf.h"

enum { FILTERS = 1500, BODY = 30, CODE_MAX = 64, WORDS = 16, FIRST_ERROR = 1, ERRORS = 0xff };
enum { NOT_TAKEN = 250, NOT_HERE = 251, INSTRUCTION_POINTER = offsetof(struct seccomp_data, instruction_pointer) };

static const uint64_t arguments[6] = {1, 0x80000000u, 0x123456789abcdefu, UINT64_MAX, 0, 0x100000000u};
static struct sock_filter code[CODE_MAX];
static unsigned short length;

static uint32_t number(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static void add(unsigned operation, unsigned if_true, unsigned if_false, uint32_t k)
{
    code[length++] = (struct sock_filter){(uint16_t)operation, (uint8_t)if_true, (uint8_t)if_false, k};
}

static uint32_t constant(void)
{
    static const uint32_t edges[] = {0, 1, 2, 31, 32, 0x7fffffff, 0x80000000, UINT32_MAX};
    return number() % 2 == 0 ? edges[number() % 8] : number();
}

// Where the call was made from is not known.
static uint32_t place(void)
{
    uint32_t at = number() % WORDS * 4;
    return at == INSTRUCTION_POINTER || at == INSTRUCTION_POINTER + 4 ? 0 : at;
}

static void add_calculation(void)
{
    static const unsigned operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
                                          BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH};
    unsigned operation = operations[number() % 9], source = number() % 2 == 0 ? BPF_X : BPF_K;
    uint32_t k = operation == BPF_LSH || operation == BPF_RSH ? number() % 32 : constant();
    if (operation == BPF_DIV && source == BPF_K && k == 0)
        k = 1;
    add(BPF_ALU | operation | source, 0, 0, k);
}

static void add_jump(unsigned room)
{
    static const unsigned operations[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
    unsigned if_true = number() % (room + 1), if_false = number() % (room + 1);
    if (number() % 5 == 0)
        add(BPF_JMP | BPF_JA, 0, 0, if_true);
    else
        add(BPF_JMP | operations[number() % 4] | (number() % 2 == 0 ? BPF_X : BPF_K), if_true, if_false, constant());
}

static void add_any(unsigned room)
{
    switch (number() % 10) {
    case 0:
        add(BPF_ALU | BPF_NEG, 0, 0, 0);
        break;
    case 1:
        add(BPF_LD | (number() % 2 == 0 ? BPF_IMM : BPF_MEM), 0, 0, number() % 4);
        break;
    case 2:
        add(BPF_LDX | (number() % 2 == 0 ? BPF_IMM : BPF_MEM), 0, 0, number() % 4);
        break;
    case 3:
        add(number() % 2 == 0 ? BPF_ST : BPF_STX, 0, 0, number() % 4);
        break;
    case 4:
        add(BPF_MISC | (number() % 2 == 0 ? BPF_TAX : BPF_TXA), 0, 0, 0);
        break;
    case 5:
        add((number() % 2 == 0 ? BPF_LD : BPF_LDX) | BPF_W | BPF_LEN, 0, 0, 0);
        break;
    case 6:
    case 7:
        add(BPF_LD | BPF_W | BPF_ABS, 0, 0, place());
        break;
    case 8:
        add_jump(room);
        break;
    default:
        add_calculation();
        break;
    }
}

// A filter with an error for one call alone.
static void make_filter(void)
{
    length = 0;
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_getpriority);
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    for (uint32_t i = 0; i < 4; i++)
        add(i % 2 == 0 ? BPF_ST : BPF_STX, 0, 0, i);
    for (unsigned left = BODY; left-- > 0;)
        add_any(left);
    add(BPF_ALU | BPF_AND | BPF_K, 0, 0, ERRORS >> 1);
    add(BPF_ALU | BPF_ADD | BPF_K, 0, 0, FIRST_ERROR);
    add(BPF_ALU | BPF_OR | BPF_K, 0, 0, SECCOMP_RET_ERRNO);
    add(BPF_RET | BPF_A, 0, 0, 0);
}

// Never returns: its status is the error.
static void ask_kernel_here(void)
{
    struct sock_fprog program = {.len = length, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        _exit(NOT_HERE);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(errno == EINVAL && prctl(PR_GET_SECCOMP) >= 0 ? NOT_TAKEN : NOT_HERE);
    long result =
        syscall(SYS_getpriority, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    _exit(result == -1 ? errno : 0);
}

// Returns the error, or -1 where it was killed.
static int ask_kernel(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        ask_kernel_here();
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void filters_say_what_they_say_in_the_kernel(void **state)
{
    struct seccomp_data call = {.nr = SYS_getpriority, .arch = AUDIT_ARCH_X86_64};
    int taken = 0, killed = 0;
    (void)state;
    memcpy(call.args, arguments, sizeof(call.args));
    for (int i = 0; i < FILTERS; i++) {
        make_filter();
        int said = ask_kernel();
        if (said == NOT_HERE)
            skip();
        if (said == NOT_TAKEN)
            continue;
        uint32_t word = gp_bpf_run(code, length, &call);
        if (said < 0)
            assert_int_equal(word, SECCOMP_RET_KILL_THREAD);
        else
            assert_int_equal(word, SECCOMP_RET_ERRNO | (uint32_t)said);
        taken++;
        killed += said < 0;
    }
    assert_true(taken > FILTERS / 4);
    assert_true(killed > 0); // divisions by 0
}

static void the_stricter_word_counts(void **state)
{
    static const uint32_t order[] = {SECCOMP_RET_KILL_PROCESS,  SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
                                     SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_USER_NOTIF,  SECCOMP_RET_TRACE,
                                     SECCOMP_RET_LOG,           SECCOMP_RET_ALLOW};
    (void)state;
    for (size_t i = 0; i + 1 < sizeof(order) / sizeof(order[0]); i++) {
        assert_int_equal(gp_bpf_stricter(order[i], order[i + 1]), order[i]);
        assert_int_equal(gp_bpf_stricter(order[i + 1], order[i]), order[i]);
    }
}

static void what_is_no_filter_allows_nothing(void **state)
{
    static const struct sock_filter wild[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, UINT32_MAX},
                                              {BPF_LD | BPF_MEM, 0, 0, UINT32_MAX},
                                              {BPF_ST, 0, 0, UINT32_MAX},
                                              {BPF_JMP | BPF_JA, 0, 0, UINT32_MAX}};
    const struct seccomp_data call = {0};
    (void)state;
    assert_int_equal(gp_bpf_run(NULL, 0, &call), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(gp_bpf_run(wild, sizeof(wild) / sizeof(wild[0]), &call), SECCOMP_RET_KILL_PROCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_say_what_they_say_in_the_kernel),
        cmocka_unit_test(the_stricter_word_counts),
        cmocka_unit_test(what_is_no_filter_allows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
