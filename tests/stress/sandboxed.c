// SPDX-License-Identifier: MIT
// A program that enters a sandbox in which a system call gets another answer.
//   sandboxed HOW ACTION CALL [PROGRAM [ARGUMENT]...]
//     HOW     function   by prctl()
//             number     by syscall()
//             hidden     by an instruction of its own
//             all        of all threads, by syscall(); a second thread is there
//             thread     of a second thread, which ends before the first goes on
//     ACTION  kill, trap, errno (EPERM), nosys (ENOSYS), lie (success); strict: seccomp's strict mode, by prctl()
//     CALL    a name of base/filter_calls.h; "names" as the only argument prints them
// Then it works, says "done", and ends; or becomes PROGRAM.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/filter_calls.h"
#include "features.h"

enum { WORK = 6000 }; // about as many microseconds

#define ROW(need, name, ...) {#name, SYS_##name},
static const struct call {
    const char *name;
    long number;
} calls[] = {GP_FILTER_CALLS(ROW)};
#undef ROW

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static const struct action {
    const char *name;
    uint32_t word;
} actions[] = {{"kill", SECCOMP_RET_KILL_PROCESS},
               {"trap", SECCOMP_RET_TRAP},
               {"errno", SECCOMP_RET_ERRNO | EPERM},
               {"nosys", SECCOMP_RET_ERRNO | ENOSYS},
               {"lie", SECCOMP_RET_ERRNO}};

static struct sock_filter code[4];
static struct sock_fprog program = {.len = 4, .filter = code};
static const char *how;

static bool make_filter(const char *action, const char *call)
{
    const struct action *found = NULL;
    const struct call *at = NULL;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(actions[i].name, action) == 0)
            found = &actions[i];
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, call) == 0)
            at = &calls[i];
    if (found == NULL || at == NULL)
        return false;
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)at->number, 0, 1);
    code[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, found->word);
    code[3] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return true;
}

static long hidden(long number, long a, long b, long c)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, a, b, c);
#endif
}

static long enter(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    if (strcmp(how, "number") == 0)
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    if (strcmp(how, "all") == 0)
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (strcmp(how, "hidden") == 0)
        return hidden(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *run_second(void *result)
{
    bool enters = strcmp(how, "thread") == 0;
    uint64_t value = features_work(1, WORK);
    if (!enters || enter() == 0)
        *(uint64_t *)result = value ^ features_work(2, WORK);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t second;
    uint64_t result = 0;
    if (argc == 2 && strcmp(argv[1], "names") == 0) {
        for (size_t i = 0; i < CALLS; i++)
            puts(calls[i].name);
        return 0;
    }
    how = argc > 3 ? argv[1] : "";
    bool is_strict = argc > 3 && strcmp(argv[2], "strict") == 0,
         has_second = strcmp(how, "thread") == 0 || strcmp(how, "all") == 0;
    if (argc < 4 || (!is_strict && !make_filter(argv[2], argv[3])))
        return 2;
    features_work(3, WORK);
    if (has_second && pthread_create(&second, NULL, run_second, &result) != 0)
        return 3;
    if (strcmp(how, "thread") != 0 && (is_strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : enter()) != 0)
        return 4;
    if (has_second && pthread_join(second, NULL) != 0)
        return 5;
    result ^= features_work(4, 2 * WORK);
    if (argc > 4)
        execv(argv[4], argv + 4);
    bool is_said = write(STDOUT_FILENO, result != 0 ? "done\n" : "no\n", result != 0 ? 5 : 3) > 0;
    if (is_strict)
        syscall(SYS_exit, 0);
    return is_said ? 0 : 6;
}
