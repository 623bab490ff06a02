// SPDX-License-Identifier: MIT
// Writing on a host's thread: a failed write is an error, never a signal that ends the program.
#pragma once

#include <sys/uio.h>

// Write all bytes of `count` parts; changes them. A limit on the size of files raises no SIGXFSZ, and a pipe without a
// reader no SIGPIPE; either of them that was pending before stays so.
// Returns 0 or a negative errno value. Threads: any. Cost: five system calls.
int gp_write_parts(int fd, struct iovec *parts, int count);
