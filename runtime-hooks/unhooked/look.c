// SPDX-License-Identifier: MIT
// Looks for forms of runtimes without a hook among the loaded files, as often as more are loaded.
#include <link.h>
#include <string.h>

#include "base/loaded.h"
#include "base/main_file.h"
#include "interface.h"
#include "not_known.h"
#include "unhooked/forms.h"

enum { FORMS_MAX = 24 };

static gp_not_known_t facts[FORMS_MAX];

static bool look_defines(const void *object, const char *name)
{
    return gp_loaded_one_defines(object, name);
}

static int look_into(struct dl_phdr_info *info, size_t size, void *unused)
{
    static unsigned long long looked; // into what was loaded by then; guarded by the drain lock
    static bool is_again;
    char program[GP_MAIN_FILE_SIZE];
    const char *path = info->dlpi_name;
    (void)size, (void)unused;
    if (path == NULL || path[0] == '\0') { // the first is the program; the vDSO of old has no name either
        is_again = looked != info->dlpi_adds;
        looked = info->dlpi_adds;
        path = is_again ? gp_main_file(program) : "";
    }
    if (!is_again)
        return 1;
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < FORMS_MAX && gp_forms[i].title != NULL; i++)
        if (gp_form_is(&gp_forms[i], file, look_defines, info))
            gp_not_known_tell(&facts[i], "%s: %s", gp_forms[i].title, gp_forms[i].unseen);
    return 0;
}

static void look(void)
{
    dl_iterate_phdr(look_into, NULL);
}

__attribute__((constructor)) static void look_load(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    static gp_not_known_look_t here = {.look = look};
    if (first() == gp_core_own_interface())
        gp_not_known_look_add(&here);
}
