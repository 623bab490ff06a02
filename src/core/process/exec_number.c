// SPDX-License-Identifier: MIT
// exec by other ways than its functions: execveat(), and the host's syscall() (host_syscall_*.S) with the number
// of either. A child of vfork() that comes here changes nothing: the process is not its own.
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "base/raw_call.h"
#include "greenprof/prof.h"
#include "process/exec_foreign.h"
#include "process/exec_number.h"
#include "process/process.h"

long gp_process_exec_number(long number, long a, long b, long c, long d, long e)
{
    bool is_at = number == SYS_execveat;
    char *const *envp = (char *const *)(is_at ? d : c);
    gp_process_before_exec();
    GP_EXEC_ENVIRONMENT(envp, gp_exec_is_foreign(is_at ? (int)a : AT_FDCWD, (const char *)(is_at ? b : a)));
    if (is_at)
        d = (long)envp;
    else
        c = (long)envp;
    errno = (int)-gp_raw_call(number, a, b, c, d, e);
    gp_process_after_failed_exec();
    return -1;
}

PROF_API int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
    return (int)gp_process_exec_number(SYS_execveat, fd, (long)path, (long)argv, (long)envp, flags);
}
