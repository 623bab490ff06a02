// SPDX-License-Identifier: MIT
// A library that is preloaded and replaces mmap(), as memory hooks do: how many stacks were mapped, at the end.
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int stacks;

__attribute__((visibility("default"))) void *mmap(void *address, size_t bytes, int protection, int flags, int fd,
                                                  off_t offset)
{
    stacks += (flags & MAP_STACK) != 0;
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

__attribute__((visibility("default"))) void *mmap64(void *address, size_t bytes, int protection, int flags, int fd,
                                                    off_t offset) __attribute__((alias("mmap")));

__attribute__((destructor)) static void say(void)
{
    printf("STACKS %d\n", stacks);
}
