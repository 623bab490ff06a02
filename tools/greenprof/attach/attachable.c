// SPDX-License-Identifier: MIT
#include "attachable.h"

#include <elf.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "live/live_target.h"
#include "message.h"
#include "target_root.h"

enum { TEXT_SIZE = 4096, STATUS_SIZE = 16384 };

// Refuse a process, each reason with its sentence: first one that is no running process of its own.
int gp_attachable_kind(pid_t pid, const char *subject)
{
    char text[STATUS_SIZE];
    if (!gp_target_read(pid, "status", text, sizeof(text), NULL))
        return gp_fail(subject, "the process has ended");
    int tracer = gp_target_last_number(text, "\nTracerPid:");
    if (tracer != 0)
        return gp_fail(subject, "process %d traces it already, as a debugger does: it cannot be attached to", tracer);
    if (strstr(text, "\nState:\tZ") != NULL && gp_target_last_number(text, "\nThreads:") > 1)
        return gp_fail(subject, "its first thread has ended: the kernel does not show its program any more");
    if (strstr(text, "\nState:\tZ") != NULL)
        return gp_fail(subject, "the process has ended, and waits for its parent to notice (a zombie)");
    if (strstr(text, "\nVmSize:") == NULL)
        return gp_fail(subject, "it is a thread of the kernel");
    const char *ignored = strstr(text, "\nSigIgn:\t");
    if (ignored != NULL && (strtoull(ignored + strlen("\nSigIgn:\t"), NULL, 16) & 1ull << (SIGSEGV - 1)))
        return gp_fail(subject, "it ignores SIGSEGV, by which a call in it ends: it cannot be attached to");
    int parent = gp_target_last_number(text, "\nPPid:");
    if (parent > 0 && syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0)
        return gp_fail(subject, "its memory is that of its parent, %d, until it becomes another program (vfork)",
                       parent);
    return 0;
}

int gp_attachable_program(pid_t pid, const char *subject)
{
    char bytes[TEXT_SIZE];
    Elf64_Ehdr header;
    size_t length = 0;
    if (!gp_target_read(pid, "exe", bytes, sizeof(header) + 1, &length))
        return gp_fail(subject, "its program cannot be read: %s", strerror(errno));
    memcpy(&header, bytes, sizeof(header));
    if (length < sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
        return gp_fail(subject, "its program is not one for x86-64");
    if (!gp_target_read(pid, "auxv", bytes, sizeof(bytes), &length))
        return gp_fail(subject, "may not be looked at: %s", strerror(EPERM));
    for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= length; at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t entry;
        memcpy(&entry, bytes + at, sizeof(entry));
        if (entry.a_type == AT_SECURE && entry.a_un.a_val != 0)
            return gp_fail(subject, "it has more rights than the user who started it (set-user-ID, or capabilities of "
                                    "its file): it takes no orders");
    }
    return 0;
}

// Its loader is its C library, and has the latter's name too.
static bool attachable_is_musl(const gp_target_modules_t *modules)
{
    const gp_target_module_t *libc = gp_target_module_named(modules, "libc.so");
    return gp_target_module_named(modules, "ld-musl") != NULL ||
           (libc != NULL && strcmp(strrchr(libc->path, '/'), "/libc.so") == 0);
}

int gp_attachable_libc(const gp_target_modules_t *modules, const char *subject)
{
    if (gp_target_module_named(modules, "libc.so.6") != NULL)
        return 0;
    if (attachable_is_musl(modules))
        return gp_fail(subject, "its C library is musl: greenprof needs glibc");
    return gp_fail(subject, "it is linked statically: nothing can be loaded into it; link it with libgreenprof.a");
}

// The core comes to its socket, and to itself where it is carried there, by /proc.
int gp_attachable_proc(pid_t pid, const char *subject)
{
    return gp_target_root_has_proc(pid) ? 0
                                        : gp_fail(subject, "there is no /proc where it runs, which greenprof needs");
}
