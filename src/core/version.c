// SPDX-License-Identifier: MIT
#include <stddef.h>

#include "greenprof/prof.h"

#define TEXT(number)                #number
#define DOTTED(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *prof_version(int *major, int *minor, int *patch)
{
    if (major != NULL)
        *major = PROF_VERSION_MAJOR;
    if (minor != NULL)
        *minor = PROF_VERSION_MINOR;
    if (patch != NULL)
        *patch = PROF_VERSION_PATCH;
    return DOTTED(PROF_VERSION_MAJOR, PROF_VERSION_MINOR, PROF_VERSION_PATCH);
}
