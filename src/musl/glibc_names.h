// SPDX-License-Identifier: MIT
// Included before every source where the C library is musl (cmake/libc.cmake): names of glibc's that the sources use,
// and musl lacks. glibc_names.c has the functions, which nothing outside of the library sees.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>

#define RTLD_DEEPBIND 0 // every library looks into the program's names first

#define PR_SET_VMA           0x53564d41 // prctl(2), Linux 5.17
#define PR_SET_VMA_ANON_NAME 0

#define _r_debug (*gp_glibc_names_debug())
struct r_debug *gp_glibc_names_debug(void); // without modules in a program that is linked statically

// Its request is an int, the kernel's numbers are unsigned.
#define ioctl(fd, request, ...) (ioctl)((fd), (int)(request), ##__VA_ARGS__)

// libucontext's. Without it the walker is not tried before the first sample.
#define getcontext(context) ((void)(context), -1)

#ifndef STATX_BTIME // musl before 1.2.5
#include <linux/stat.h>
int statx(int at, const char *path, int flags, unsigned mask, struct statx *status);
#endif

const char *strerrordesc_np(int error);
const char *sigabbrev_np(int number);
int pthread_mutex_clocklock(pthread_mutex_t *lock, clockid_t clock, const struct timespec *until);
