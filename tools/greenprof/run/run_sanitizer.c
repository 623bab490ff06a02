// SPDX-License-Identifier: MIT
#include "run_sanitizer.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_checks.h"
#include "symbol/elf_file.h"

static void *run_sanitizer_section(const gp_elf_t *elf, const Elf64_Shdr *section, size_t *len)
{
    return section != NULL ? gp_elf_section_read(elf, section, len) : NULL;
}

// Does the program name a library of this name among those that it needs?
static bool run_sanitizer_needs(const char *path, const char *prefix)
{
    size_t bytes = 0, len = 0;
    bool found = false;
    gp_elf_t elf;
    if (gp_elf_open(&elf, path) != 0)
        return false;
    Elf64_Dyn *entries = run_sanitizer_section(&elf, gp_elf_section_of_type(&elf, SHT_DYNAMIC), &bytes);
    char *strings = run_sanitizer_section(&elf, gp_elf_section(&elf, ".dynstr"), &len);
    for (size_t i = 0; entries != NULL && strings != NULL && i < bytes / sizeof(*entries) && !found; i++)
        found = entries[i].d_tag == DT_NEEDED && entries[i].d_un.d_val < len &&
                strncmp(strings + entries[i].d_un.d_val, prefix, strlen(prefix)) == 0;
    free(entries);
    free(strings);
    gp_elf_close(&elf);
    return found;
}

void gp_run_prepare_sanitizer(const char *program)
{
    char path[PATH_MAX], *options = NULL;
    const char *given = getenv("ASAN_OPTIONS");
    if ((given != NULL && strstr(given, "verify_asan_link_order") != NULL) || gp_run_find_program(program, path) != 0)
        return;
    if (run_sanitizer_needs(path, "libasan.so") &&
        asprintf(&options, "%s%sverify_asan_link_order=0", given != NULL ? given : "", given != NULL ? ":" : "") >= 0)
        setenv("ASAN_OPTIONS", options, 1);
    free(options);
}
