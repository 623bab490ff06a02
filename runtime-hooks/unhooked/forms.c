// SPDX-License-Identifier: MIT
#include "unhooked/forms.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#ifndef FNM_EXTMATCH
#define FNM_EXTMATCH (1 << 5) // glibc's
#endif

bool gp_form_is(const gp_form_t *form, const char *file, gp_form_defines_t *defines, const void *object)
{
    if (strncmp(file, "libgreenprof", strlen("libgreenprof")) == 0) // which stands in for some of these names
        return false;
    if (form->file[0] != '\0' && fnmatch(form->file, file, FNM_EXTMATCH) != 0)
        return false;
    if (form->has[0] != '\0' && !defines(object, form->has))
        return false;
    for (int i = 0; form->lacks[i] != NULL; i++)
        if (defines(object, form->lacks[i]))
            return false;
    return true;
}
