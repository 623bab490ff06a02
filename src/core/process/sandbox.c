// SPDX-License-Identifier: MIT
#include "process/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arch.h"
#include "base/bpf.h"
#include "base/filter_calls.h"
#include "base/peek.h"
#include "base/raw_call.h"
#include "collect/perf_probe.h"
#include "coro/lock.h"
#include "coro/process_id.h"
#include "coro/threads.h"
#include "process/aside.h"
#include "process/process.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

typedef struct entry { // into a sandbox
    bool is_strict, is_for_all;
    struct sock_fprog program;
} entry_t;

typedef enum verdict { SANDBOX_BEARS, SANDBOX_TAKES_PERF, SANDBOX_KILLS } verdict_t;

bool gp_sandbox_is_entered_by_prctl(const long a[5])
{
    return a[0] == PR_SET_SECCOMP || (a[0] == PR_SET_TSC && a[1] == PR_TSC_SIGSEGV) ||
           (a[0] == PR_SET_SYSCALL_USER_DISPATCH && a[1] != 0);
}

// Returns false where it is no entry, or what is given cannot be read.
static bool sandbox_read(long number, const long a[5], entry_t *entry)
{
    bool is_prctl = number == SYS_prctl;
    long mode = is_prctl ? a[1] : a[0], flags = is_prctl ? 0 : a[1];
    *entry = (entry_t){.is_for_all = ((unsigned long)flags & SECCOMP_FILTER_FLAG_TSYNC) != 0};
    // The time-stamp counter, or system calls from outside of a range, raise signals: as under a filter that kills.
    entry->is_strict =
        is_prctl ? a[0] != PR_SET_SECCOMP || mode == SECCOMP_MODE_STRICT : mode == SECCOMP_SET_MODE_STRICT;
    if (entry->is_strict)
        return true;
    bool is_filter = is_prctl ? mode == SECCOMP_MODE_FILTER : mode == SECCOMP_SET_MODE_FILTER;
    return is_filter && gp_peek((uintptr_t)a[2], &entry->program, sizeof(entry->program)) && entry->program.len > 0 &&
           entry->program.len <= BPF_MAXINSNS;
}

// Source: seccomp(2), EACCES.
static bool sandbox_may_be_entered(const entry_t *entry)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return entry->is_strict || gp_raw_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
           (gp_raw_call(SYS_capget, (long)&header, (long)rights, 0, 0, 0) == 0 &&
            (rights[0].effective >> CAP_SYS_ADMIN & 1) != 0);
}

static bool sandbox_bears(enum gp_seccomp_need need, uint32_t word)
{
    uint32_t action = word & SECCOMP_RET_ACTION_FULL;
    if (action == SECCOMP_RET_ERRNO)
        return need != GP_CALL_VITAL && (need != GP_CALL_FALLBACK || (word & SECCOMP_RET_DATA) == ENOSYS);
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || need == GP_CALL_LOADED ||
           need == GP_CALL_CARRIED;
}

static verdict_t sandbox_judge(const entry_t *entry)
{
    verdict_t verdict = SANDBOX_BEARS;
    size_t count = entry->program.len, bytes = count * sizeof(struct sock_filter);
    void *code =
        entry->is_strict ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return SANDBOX_KILLS;
    bool is_read = gp_peek((uintptr_t)entry->program.filter, code, bytes);
    for (size_t i = 0; i < GP_FILTER_CALL_ROWS && is_read && verdict != SANDBOX_KILLS; i++) {
        struct seccomp_data data = {.nr = (int)gp_seccomp_calls[i].number,
                                    .arch = GP_ARCH_AUDIT,
                                    .instruction_pointer = (uintptr_t)gp_sandbox_enter};
        memcpy(data.args, gp_seccomp_calls[i].arguments, sizeof(gp_seccomp_calls[i].arguments));
        if (!sandbox_bears(gp_seccomp_calls[i].need, gp_bpf_run(code, count, &data)))
            verdict = gp_seccomp_calls[i].need == GP_CALL_ASKED ? SANDBOX_TAKES_PERF : SANDBOX_KILLS;
    }
    munmap(code, bytes);
    return verdict;
}

static void sandbox_give_up(const entry_t *entry)
{
    int saved = errno;
    bool is_first = (pid_t)syscall(SYS_gettid) == getpid();
    if (is_first || entry->is_for_all)
        gp_process_give_up();
    else
        gp_thread_leave();
    errno = saved;
}

long gp_sandbox_enter(long number, const long a[5])
{
    entry_t entry;
    gp_aside_t aside = {0};
    if (gp_process_is_open() && gp_locks_held == 0 && sandbox_read(number, a, &entry) &&
        sandbox_may_be_entered(&entry)) {
        verdict_t verdict = sandbox_judge(&entry);
        if (verdict == SANDBOX_KILLS)
            sandbox_give_up(&entry);
        if (verdict == SANDBOX_TAKES_PERF)
            gp_perf_forbid();
        gp_aside_begin(&aside, GP_ASIDE_FIRST);
    }
    long result = gp_raw_call(number, a[0], a[1], a[2], a[3], a[4]);
    gp_aside_end(&aside);
    return gp_raw_answer(result);
}
