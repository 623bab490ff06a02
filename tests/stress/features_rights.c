// SPDX-License-Identifier: MIT
// Rights that a program gives up, by each way there is, in a child of its own: no thread of the process has more of
// them than the first one afterwards.
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "features.h"

enum { OTHER = 65534, TEXT_BYTES = 4096, FAILED = 1, DIFFERS = 2, CAPABILITIES = 41, WORK = 1500 };

static bool set_rights(bool all)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (all && syscall(SYS_capget, &header, rights) != 0)
        return false;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        rights[i].effective = rights[i].permitted;
    return syscall(SYS_capset, &header, rights) == 0;
}

// setpriv(1), container entry points: the rights outlive the user, and go last.
static bool keep_and_drop(void)
{
    bool is_done = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setresuid(OTHER, OTHER, OTHER) == 0 && set_rights(true) &&
                   setresgid(OTHER, OTHER, OTHER) == 0 && setgroups(0, NULL) == 0;
    return is_done && set_rights(false);
}

static bool become_other(void)
{
    return initgroups("nobody", OTHER) == 0 && setgid(OTHER) == 0 && setuid(OTHER) == 0;
}

static bool there_and_back(void)
{
    return setegid(OTHER) == 0 && seteuid(OTHER) == 0 && seteuid(0) == 0 && setegid(0) == 0;
}

static bool drop_all(void)
{
    for (int i = 0; i < CAPABILITIES; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0 && errno != EINVAL)
            return false;
    return prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0) == 0 && set_rights(false);
}

static bool no_new_rights(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static bool filter(long flags, bool by_number)
{
    static struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = code};
    if (!no_new_rights())
        return false;
    return by_number ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0
                     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool filter_twice(void)
{
    return filter(0, false) && filter(0, true);
}

static bool filter_all(void)
{
    return filter(SECCOMP_FILTER_FLAG_TSYNC, true);
}

static bool leave_namespaces(void)
{
    return unshare(CLONE_NEWUTS | CLONE_NEWIPC) == 0 && syscall(SYS_unshare, CLONE_NEWNS) == 0 &&
           unshare(CLONE_NEWUSER) == 0;
}

// System calls by their own numbers, which change one thread.
static bool by_numbers(void)
{
    return syscall(SYS_setgroups, 0, NULL) == 0 && syscall(SYS_setresgid, OTHER, OTHER, OTHER) == 0 &&
           syscall(SYS_setresuid, OTHER, OTHER, OTHER) == 0;
}

static bool (*const ways[])(void) = {keep_and_drop, become_other, there_and_back,   drop_all,  no_new_rights,
                                     filter_twice,  filter_all,   leave_namespaces, by_numbers};

// The rights of a thread, as one text. Source: proc_pid_status(5).
static bool read_rights(const char *tid, char text[TEXT_BYTES])
{
    static const char *const lines[] = {"Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp"};
    char path[300], line[512];
    size_t used = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
            if (strncmp(line, lines[i], strlen(lines[i])) == 0)
                used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s", line);
    if (file != NULL)
        fclose(file);
    return used > 0;
}

static bool all_are_alike(void)
{
    char own[16], first[TEXT_BYTES], its[TEXT_BYTES];
    bool alike = true;
    snprintf(own, sizeof(own), "%d", getpid());
    DIR *tasks = opendir("/proc/self/task");
    if (!read_rights(own, first))
        return false;
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        if (entry->d_name[0] != '.' && read_rights(entry->d_name, its)) // else it has just ended
            alike &= strcmp(first, its) == 0;
    if (tasks != NULL)
        closedir(tasks);
    return alike;
}

uint64_t feature_rights(int id, int round)
{
    size_t way = (size_t)(id + round / 20) % (sizeof(ways) / sizeof(ways[0]));
    int status;
    pid_t child = fork();
    if (child == 0) {
        features_work((uint64_t)id, WORK);
        bool is_done = ways[way]();
        features_work((uint64_t)round, WORK);
        _exit(!is_done ? FAILED : all_are_alike() ? 0 : DIFFERS);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) ? (uint64_t)WEXITSTATUS(status)
                                          : features_fail("a child ended in another way");
}
