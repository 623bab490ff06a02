// SPDX-License-Identifier: MIT
// A process under a filter of system calls, which kills for what it is not to see.
//
// Usage: filtered MODE [ARGUMENT]
//   strict          seccomp's strict mode
//   known           only what attaching is said to need (filter_calls.h), and what the program itself calls
//   kill CALL       all but this one
//   trap CALL       the same, and its signal (SIGSYS) ends the program
//   errno CALL      this one fails with EPERM
//   exec            no executable memory
//   container       as containers' filters do: a few calls fail
//   thread          a second thread is under a filter, the first one is not
//   names           print the calls for attaching, once each
// Prints "ready", and after each line that it is alive; ends when its standard input does.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/filter_calls.h"

enum { CODE_MAX = 512, BURN_MS = 30 };

static const struct call {
    enum gp_seccomp_need need;
    long number;
    const char *name;
} calls[] = {
#define ROW(need, name, ...) {GP_CALL_##need, SYS_##name, #name},
    GP_FILTER_CALLS(ROW)
#undef ROW
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static struct sock_filter code[CODE_MAX];
static unsigned short length;

static void add(uint16_t operation, uint8_t if_true, uint8_t if_false, uint32_t k)
{
    code[length++] = (struct sock_filter){operation, if_true, if_false, k};
}

static void load(size_t offset)
{
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void give(uint32_t word)
{
    add(BPF_RET | BPF_K, 0, 0, word);
}

static void give_for(long number, uint32_t word)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)number);
    give(word);
}

static int install(void)
{
    struct sock_fprog program = {.len = length, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

// Not by stdio, which makes other calls at first.
static void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(1);
}

static long number_of(const char *name)
{
    if (strcmp(name, "perf_event_open") == 0)
        return SYS_perf_event_open;
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    return -1;
}

static void one_call(const char *name, uint32_t word)
{
    load(offsetof(struct seccomp_data, nr));
    give_for(number_of(name), word);
    give(SECCOMP_RET_ALLOW);
}

static void only_known(void)
{
    load(offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CALLS; i++)
        give_for(calls[i].number, SECCOMP_RET_ALLOW);
    give_for(SYS_exit_group, SECCOMP_RET_ALLOW);
    give(SECCOMP_RET_KILL_PROCESS);
}

static void nothing_executable(void)
{
    enum { PROT = 2 };
    load(offsetof(struct seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_mmap);
    load(offsetof(struct seccomp_data, args[PROT]));
    add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, PROT_EXEC);
    give(SECCOMP_RET_KILL_PROCESS);
    give(SECCOMP_RET_ALLOW);
}

// With arithmetic and memory, as none of the others.
static void as_containers_do(void)
{
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
    give(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
    give_for(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    give_for(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM);
    give_for(SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM);
    give_for(SYS_mount, SECCOMP_RET_ERRNO | EPERM);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 7, SYS_clone);
    load(offsetof(struct seccomp_data, args[0]));
    add(BPF_ST, 0, 0, 1);
    add(BPF_LDX | BPF_MEM, 0, 0, 1);
    add(BPF_LD | BPF_IMM, 0, 0, CLONE_NEWUSER);
    add(BPF_ALU | BPF_AND | BPF_X, 0, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0);
    give(SECCOMP_RET_ERRNO | EPERM);
    give(SECCOMP_RET_ALLOW);
}

static void *wait_filtered(void *unused)
{
    one_call("clone", SECCOMP_RET_KILL_PROCESS);
    if (install() == 0)
        say("ready\n");
    for (;;)
        pause();
    return unused;
}

static int begin(const char *mode, const char *argument)
{
    pthread_t thread;
    if (strcmp(mode, "thread") == 0)
        return pthread_create(&thread, NULL, wait_filtered, NULL);
    if (strcmp(mode, "strict") == 0) {
        say("ready\n");
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    }
    if (strcmp(mode, "known") == 0)
        only_known();
    else if (strcmp(mode, "kill") == 0)
        one_call(argument, SECCOMP_RET_KILL_PROCESS);
    else if (strcmp(mode, "trap") == 0)
        one_call(argument, SECCOMP_RET_TRAP);
    else if (strcmp(mode, "errno") == 0)
        one_call(argument, SECCOMP_RET_ERRNO | EPERM);
    else if (strcmp(mode, "exec") == 0)
        nothing_executable();
    else if (strcmp(mode, "container") == 0)
        as_containers_do();
    if (length == 0 || install() != 0)
        return 1;
    say("ready\n");
    return 0;
}

static void *burn(void *unused)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 1000 * BURN_MS;
    while (clock() < end)
        ;
    return unused;
}

static bool is_first(size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (calls[i].number == calls[at].number)
            return false;
    return true;
}

static void print_names(void)
{
    for (size_t i = 0; i < CALLS; i++)
        if (is_first(i) && calls[i].need != GP_CALL_ASKED)
            puts(calls[i].name);
}

int main(int argc, char **argv)
{
    char line[16];
    pthread_t thread;
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "names") == 0) {
        print_names();
        return 0;
    }
    if (begin(mode, argc > 2 ? argv[2] : "") != 0)
        return 1;
    while (read(STDIN_FILENO, line, sizeof(line)) > 0) { // strict mode allows no other way
        if (line[0] == 'b' && pthread_create(&thread, NULL, burn, NULL) == 0)
            pthread_join(thread, NULL);
        say("alive\n");
    }
    syscall(SYS_exit, 0);
    return 0;
}
