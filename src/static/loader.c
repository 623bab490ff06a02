// SPDX-License-Identifier: MIT
// libgreenprof.a's replacement of the dynamic loader (cmake/static.cmake gives the calls these names). A statically
// linked program has one object, which nothing was loaded into: libc's functions that the shared library would find
// behind its own are these, and no runtime, library or plugin is found.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
#endif
void *gp_static_dlsym(void *handle, const char *name);
void *gp_static_dlopen(const char *path, int flags);
char *gp_static_dlerror(void);
int gp_static_dladdr(const void *address, Dl_info *info);
int gp_static_dladdr1(const void *address, Dl_info *info, void **extra, int flags);

#define ROW(function)                                                                                                  \
    {                                                                                                                  \
        .name = #function, .address = (void (*)(void))function                                                         \
    }

static const struct {
    const char *name;
    void (*address)(void);
} functions[] = {
    ROW(pthread_create),    ROW(fork),    ROW(_exit),        ROW(_Exit),       ROW(execve), ROW(execvpe),
    ROW(fexecve),           ROW(sigwait), ROW(sigtimedwait), ROW(sigwaitinfo), ROW(mmap),
#ifdef __GLIBC__
    ROW(__register_atfork), ROW(mmap64),
#else
    ROW(sigaction), // which has another name in glibc
#endif
};

void *gp_static_dlsym(void *handle, const char *name)
{
    if (handle != RTLD_NEXT)
        return NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(functions[i].name, name) == 0)
            return (void *)(uintptr_t)functions[i].address;
    return NULL;
}

void *gp_static_dlopen(const char *path, int flags)
{
    (void)path;
    (void)flags;
    return NULL;
}

char *gp_static_dlerror(void)
{
    static char text[] = "the program is linked statically";
    return text;
}

int gp_static_dladdr(const void *address, Dl_info *info)
{
    (void)address;
    (void)info;
    return 0;
}

int gp_static_dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
    (void)extra;
    (void)flags;
    return gp_static_dladdr(address, info);
}
