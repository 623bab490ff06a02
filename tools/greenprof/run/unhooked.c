// SPDX-License-Identifier: MIT
#include "unhooked.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cpython/interpreter/known.h"
#include "patch/elf_symbols.h"
#include "unhooked/forms.h"

static bool unhooked_defines(const void *object, const char *name)
{
    return gp_elf_exports(object, name);
}

static const void *unhooked_find_in_file(void *image, const char *name, size_t bytes)
{
    return bytes > 0 ? gp_elf_object(image, name, bytes) : gp_elf_exports(image, name) ? image : NULL;
}

static bool unhooked_is_unknown_python(gp_elf_image_t *image, char *text, size_t size)
{
    if (!gp_elf_exports(image, GP_CPYTHON_LOOP))
        return false;
    const gp_cpython_seen_t seen = gp_cpython_see(unhooked_find_in_file, image);
    return gp_cpython_is_unknown(&seen, text, size);
}

bool gp_unhooked_in(const char *path, size_t number, char *text, size_t size)
{
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    gp_elf_image_t image;
    if (gp_elf_map(path, &image) != 0)
        return false;
    bool is = unhooked_is_unknown_python(&image, text, size);
    size_t found = is;
    is = is && number == 0;
    for (const gp_form_t *form = gp_forms; form->title != NULL && !is; form++) {
        if (!gp_form_is(form, file, unhooked_defines, &image) || found++ != number)
            continue;
        snprintf(text, size, "%s: %s", form->title, form->unseen);
        is = true;
    }
    gp_elf_unmap(&image);
    return is;
}

bool gp_unhooked_is_python(const char *path)
{
    char text[256];
    gp_elf_image_t image;
    if (gp_elf_map(path, &image) != 0)
        return false;
    bool is = unhooked_is_unknown_python(&image, text, sizeof(text));
    gp_elf_unmap(&image);
    return is;
}
