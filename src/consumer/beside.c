// SPDX-License-Identifier: MIT
#include "consumer/beside.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void *gp_beside_load(const char *name)
{
    static const char own_place;
    char path[PATH_MAX];
    Dl_info own;
    const char *slash = dladdr(&own_place, &own) != 0 ? strrchr(own.dli_fname, '/') : NULL;
    int len = slash != NULL ? (int)(slash + 1 - own.dli_fname) : 0;
    int bytes = snprintf(path, sizeof(path), "%.*s%s", len, len > 0 ? own.dli_fname : "", name);
    void *library = bytes < (int)sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
    return library != NULL ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}
