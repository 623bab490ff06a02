// SPDX-License-Identifier: MIT
// The program's mlockall(): its memory is locked, greenprof's is not.
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coro/helper_memory.h"
#include "greenprof/prof.h"

// The variables of the library that has this function.
static int host_lock_leave_out_variables(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    bool is_own = false;
    for (int i = 0; i < info->dlpi_phnum; i++)
        is_own |= info->dlpi_phdr[i].p_type == PT_LOAD &&
                  (uintptr_t)host_lock_leave_out_variables - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
                      info->dlpi_phdr[i].p_memsz;
    for (int i = 0; i < info->dlpi_phnum && is_own; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_W))
            munlock((void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), info->dlpi_phdr[i].p_memsz);
    return is_own;
}

PROF_API int mlockall(int flags)
{
    if (flags & MCL_FUTURE)
        gp_own_will_be_locked();
    int result = (int)syscall(SYS_mlockall, flags);
    if (result != 0)
        return result;
    gp_own_unlock();
    dl_iterate_phdr(host_lock_leave_out_variables, NULL);
    return 0;
}
