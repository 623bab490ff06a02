// SPDX-License-Identifier: MIT
// System calls of the program by their numbers: exec, and changes of its rights (privilege.c).
#pragma once

// Make the system call `number`, SYS_execve or SYS_execveat, with these arguments. Returns -1 and sets errno, if at
// all. Signals: safe as far as execve() is.
long gp_process_exec_number(long number, long a, long b, long c, long d, long e);

// syscall(), where host_syscall_*.S lists the number.
long gp_process_number(long number, long a, long b, long c, long d, long e);
