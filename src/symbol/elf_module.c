#include "symbol/elf_module.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "symbol/debug_file.h"

static bool is_the_one(const gp_elf_t *elf, const gp_elf_module_t *module)
{
    uint8_t build_id[GP_BUILD_ID_MAX];
    size_t len = gp_elf_build_id(elf, build_id);

    return len == module->build_id_len && memcmp(build_id, module->build_id, len) == 0;
}

// The kernel maps the vDSO whole: all of its pages, up to the end of its last segment, can be read.
static size_t vdso_size(const Elf64_Ehdr *header)
{
    const Elf64_Phdr *segments = (const void *)((const char *)header + header->e_phoff);
    uint64_t end = 0;

    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_memsz > end)
            end = segments[i].p_offset + segments[i].p_memsz;
    return (size_t)((end + 4095) & ~4095ull);
}

// This process's own vDSO is the module's when the build-ids are equal: the same kernel made both.
static void load_vdso(gp_elf_module_t *module)
{
    const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
    gp_elf_t elf;

    if (image == NULL || gp_elf_open_image(&elf, image, vdso_size(image)) < 0)
        return;
    if (module->build_id_len > 0 && is_the_one(&elf, module))
        gp_symbol_table_load(&module->symbols, &elf, 1, &module->functions);
    gp_elf_close(&elf);
}

// Symbols come from the best table there is; lines from whichever file has them.
static void load_tables(gp_elf_module_t *module, const gp_elf_t *elf, const gp_elf_t *debug,
                        const char *debug_path)
{
    const gp_eh_functions_t *functions = &module->functions;

    gp_eh_functions_load(&module->functions, elf);
    int result = gp_symbol_table_load(&module->symbols, elf, 0, functions);
    if (result == -ENOENT && debug != NULL)
        result = gp_symbol_table_load(&module->symbols, debug, 0, functions);
    if (result == -ENOENT)
        gp_symbol_table_load(&module->symbols, elf, 1, functions);
    gp_symbol_table_add_plt(&module->symbols, elf);

    if (gp_elf_section(elf, ".debug_info") != NULL)
        module->dwarf = gp_dwarf_open(module->path);
    else if (debug != NULL && gp_elf_section(debug, ".debug_info") != NULL)
        module->dwarf = gp_dwarf_open(debug_path);
}

void gp_elf_module_load(gp_elf_module_t *module)
{
    char debug_path[GP_DEBUG_PATH_SIZE];
    gp_elf_t elf, debug;

    module->loaded = true;
    if (strcmp(module->path, "[vdso]") == 0) {
        load_vdso(module);
        return;
    }
    if (module->path[0] != '/' || gp_elf_open(&elf, module->path) < 0)
        return;
    module->changed = !is_the_one(&elf, module);
    if (!module->changed) {
        bool separate = gp_debug_file_open(&elf, module->path, &debug, debug_path) == 0;
        load_tables(module, &elf, separate ? &debug : NULL, debug_path);
        if (separate)
            gp_elf_close(&debug);
    }
    gp_elf_close(&elf);
}

void gp_elf_module_free(gp_elf_module_t *module)
{
    gp_symbol_table_free(&module->symbols);
    gp_eh_functions_free(&module->functions);
    gp_dwarf_close(module->dwarf);
    module->dwarf = NULL;
}
