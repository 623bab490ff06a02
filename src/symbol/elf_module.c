// SPDX-License-Identifier: MIT
#include "symbol/elf_module.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/file_stamp.h"
#include "symbol/debug_file.h"
#include "symbol/live_image.h"
#include "symbol/symbolizer.h"
#include "symbol/symfs.h"

typedef struct gp_expected {
    size_t count;
    uint64_t addresses[];
} expected_t;

typedef struct loading {
    gp_job_t job;
    gp_elf_module_t module;
    expected_t *_Atomic late;
} loading_t;

// Where neither has a build-id, the file's stamp decides; without a stamp, the file may be the module's, unless its
// name says that it is gone.
static const char deleted[] = " (deleted)"; // proc_pid_exe(5): what the kernel puts behind a path

static bool elf_module_ends_with_deleted(const char *path)
{
    const char *end = strrchr(path, deleted[0]);
    return end != NULL && strcmp(end, deleted) == 0;
}

static bool elf_module_is_the_one(const gp_elf_t *elf, const gp_elf_module_t *module)
{
    uint8_t build_id[GP_BUILD_ID_MAX];
    gp_file_stamp_t stamp;
    size_t len = gp_elf_build_id(elf, build_id);
    if (len > 0 || module->build_id_len > 0)
        return len == module->build_id_len && memcmp(build_id, module->build_id, len) == 0;
    memcpy(&stamp, module->build_id, sizeof(stamp));
    if (stamp.bytes == 0)
        return !elf_module_ends_with_deleted(module->path);
    return stamp.bytes == elf->size && stamp.changed_ns == elf->changed_ns;
}

// The kernel maps the vDSO whole: all of its pages, up to the end of its last segment, can be read.
static size_t elf_module_vdso_size(const Elf64_Ehdr *header)
{
    const Elf64_Phdr *segments = (const void *)((const char *)header + header->e_phoff);
    uint64_t end = 0;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_memsz > end)
            end = segments[i].p_offset + segments[i].p_memsz;
    return (size_t)((end + 4095) & ~4095ull);
}

// This process's own vDSO is the module's when the build-ids are equal: the same kernel made both.
static void elf_module_load_vdso(gp_elf_module_t *module)
{
    const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
    gp_elf_t elf;
    if (image == NULL || gp_elf_open_image(&elf, image, elf_module_vdso_size(image)) < 0)
        return;
    const gp_symbol_source_t source = {&elf, true};
    if (module->build_id_len > 0 && elf_module_is_the_one(&elf, module))
        gp_symbol_table_load(&module->symbols, &source, 1, &module->functions);
    gp_elf_close(&elf);
}

// Without a full table: what the dynamic linker needs, and the mini debug information with the rest.
static void elf_module_load_small_tables(gp_elf_module_t *module, const gp_elf_t *elf)
{
    gp_elf_t inner;
    const gp_symbol_source_t sources[] = {{elf, true}, {&inner, false}};
    bool mini = gp_elf_open_debugdata(&inner, elf) == 0;
    gp_symbol_table_load(&module->symbols, sources, mini ? 2 : 1, &module->functions);
    if (mini)
        gp_elf_close(&inner);
}

typedef struct symbols_job {
    gp_job_t job;
    gp_elf_module_t *module;
    const gp_elf_t *elf, *debug; // `debug` may be NULL
} symbols_job_t;

// They come from the best table there is.
static void elf_module_load_symbols(gp_job_t *job)
{
    gp_elf_module_t *module = ((symbols_job_t *)job)->module;
    const gp_elf_t *elf = ((symbols_job_t *)job)->elf;
    const gp_symbol_source_t sources[] = {{elf, false}, {((symbols_job_t *)job)->debug, false}};
    int result = -ENOENT;
    gp_eh_functions_load(&module->functions, elf);
    for (size_t i = 0; i < 2 && result == -ENOENT; i++)
        if (sources[i].elf != NULL)
            result = gp_symbol_table_load(&module->symbols, &sources[i], 1, &module->functions);
    if (result == -ENOENT)
        elf_module_load_small_tables(module, elf);
    gp_symbol_table_add_plt(&module->symbols, elf);
}

// Returns what is replaced.
static expected_t *elf_module_exchange_late(expected_t *_Atomic *late, expected_t *expected)
{
    return atomic_exchange_explicit(late, expected, memory_order_acq_rel); // synchronizes with the other thread's
}

// Take addresses told since: the last ones told count.
static void elf_module_take_late(gp_elf_module_t *module)
{
    expected_t *late = module->late != NULL ? elf_module_exchange_late(module->late, NULL) : NULL;
    if (late == NULL)
        return;
    free(module->expected);
    module->expected = late;
}

static void elf_module_expect_lines(const gp_elf_module_t *module)
{
    if (module->dwarf != NULL && module->expected != NULL)
        gp_dwarf_expect(module->dwarf, module->expected->addresses, module->expected->count);
}

static void elf_module_expect_names(gp_elf_module_t *module)
{
    const expected_t *expected = module->expected;
    if (module->names == NULL && expected != NULL)
        module->names = gp_symbol_names_expect(&module->symbols, module->helpers, expected->addresses, expected->count);
}

static const uint64_t *elf_module_expected_addresses(void *owner, size_t *count)
{
    gp_elf_module_t *module = owner;
    elf_module_take_late(module);
    *count = module->expected != NULL ? module->expected->count : 0;
    return module->expected != NULL ? module->expected->addresses : NULL;
}

// Lines come from whichever file has them, while a helper loads the symbols.
static void elf_module_load_tables(gp_elf_module_t *module, const gp_elf_t *elf, const char *path,
                                   const gp_elf_t *debug, const char *debug_path)
{
    symbols_job_t symbols = {{.work = elf_module_load_symbols}, module, elf, debug};
    const gp_dwarf_asked_t much = {elf_module_expected_addresses, module},
                           *asked = module->is_asked_much ? &much : NULL;
    gp_dwarf_t *dwarf = NULL;
    gp_helpers_give(module->helpers, &symbols.job);
    if (gp_elf_section(elf, ".debug_info") != NULL)
        dwarf = gp_dwarf_begin(elf, path, module->path, module->helpers, asked);
    else if (debug != NULL)
        dwarf = gp_dwarf_begin(debug, debug_path, module->path, module->helpers, asked);
    module->dwarf = gp_dwarf_end(dwarf);
    elf_module_take_late(module);
    elf_module_expect_lines(module);
    gp_helpers_take_within(module->helpers, &symbols.job);
    elf_module_expect_names(module);
}

// Without the module's own file its debug file says nearly as much.
static void elf_module_load_debug_only(gp_elf_module_t *module)
{
    char path[GP_DEBUG_PATH_SIZE];
    gp_elf_t debug;
    if (gp_debug_file_open_by_build_id(module->build_id, module->build_id_len, &debug, path) < 0)
        return;
    elf_module_load_tables(module, &debug, path, NULL, NULL);
    gp_elf_close(&debug);
    module->changed = false;
    module->error = 0;
}

// The file by the module's name below a directory that stands for the process' root.
static bool elf_module_open_below(const gp_elf_module_t *module, gp_elf_t *elf, char path[GP_DEBUG_PATH_SIZE])
{
    for (size_t i = 0; i < gp_symfs_count(); i++) {
        if (gp_symfs_path(i, module->path, path, GP_DEBUG_PATH_SIZE) == 0 || gp_elf_open(elf, path) < 0)
            continue;
        if (elf_module_is_the_one(elf, module))
            return true;
        gp_elf_close(elf);
    }
    return false;
}

//   path: where it was found.
static void elf_module_load_file(gp_elf_module_t *module, const gp_elf_t *elf, const char *path)
{
    char debug_path[GP_DEBUG_PATH_SIZE];
    gp_elf_t debug;
    bool separate = gp_debug_file_open(elf, module->path, &debug, debug_path) == 0;
    module->loaded = module->most_bytes == 0 || elf->size + (separate ? debug.size : 0) <= module->most_bytes;
    if (module->loaded)
        elf_module_load_tables(module, elf, path, separate ? &debug : NULL, debug_path);
    if (separate)
        gp_elf_close(&debug);
}

// Open the file by its name; for a deleted file, the one that has the name since, which may be a copy.
// Returns 0, -ESTALE where it is another one, or as gp_elf_open().
static int elf_module_open_named(const gp_elf_module_t *module, gp_elf_t *elf, char path[GP_DEBUG_PATH_SIZE])
{
    int len = snprintf(path, GP_DEBUG_PATH_SIZE, "%s", module->path);
    if (module->path[0] != '/' || len >= GP_DEBUG_PATH_SIZE)
        return -ENOEXEC;
    int result = gp_elf_open(elf, path);
    if (result == -ENOENT && elf_module_ends_with_deleted(path)) {
        path[(size_t)len - strlen(deleted)] = '\0';
        result = gp_elf_open(elf, path);
    }
    if (result < 0 || elf_module_is_the_one(elf, module))
        return result;
    gp_elf_close(elf);
    return -ESTALE;
}

// Is a file that is not the module's certainly another one? Without a build-id it may be a copy, unless its size
// differs.
static bool elf_module_is_changed(const gp_elf_module_t *module, const char *path)
{
    struct stat status;
    gp_file_stamp_t stamp;
    memcpy(&stamp, module->build_id, sizeof(stamp));
    return module->build_id_len > 0 ||
           (stamp.bytes > 0 && stat(path, &status) == 0 && (uint64_t)status.st_size != stamp.bytes);
}

static void elf_module_load(gp_elf_module_t *module)
{
    char path[GP_DEBUG_PATH_SIZE], below[GP_DEBUG_PATH_SIZE];
    gp_elf_t elf;
    module->loaded = true;
    if (strcmp(module->path, "[vdso]") == 0) {
        elf_module_load_vdso(module);
        return;
    }
    int error = elf_module_open_named(module, &elf, path);
    if (error == 0) {
        elf_module_load_file(module, &elf, path);
        gp_elf_close(&elf);
        return;
    }
    if (elf_module_open_below(module, &elf, below) || gp_live_image_open(module, &elf, below)) {
        elf_module_load_file(module, &elf, below);
        gp_elf_close(&elf);
        return;
    }
    module->changed = error == -ESTALE && elf_module_is_changed(module, path);
    module->unsure = error == -ESTALE && !module->changed;
    // A file that is no ELF file has no names to lose; a lost file is another matter than an unreadable one.
    module->error = error != -ENOEXEC && error != -ENOENT && error != -ESTALE ? -error : 0;
    elf_module_load_debug_only(module);
}

// Returns NULL where memory is short: each address is read when it is asked about.
static expected_t *elf_module_make_expected(const uint64_t *addresses, size_t count)
{
    expected_t *expected = malloc(sizeof(*expected) + count * sizeof(*addresses));
    if (expected == NULL)
        return NULL;
    expected->count = count;
    for (size_t i = 0; i < count; i++)
        expected->addresses[i] = addresses[i];
    return expected;
}

void gp_elf_module_expect(gp_elf_module_t *module, const uint64_t *addresses, size_t count)
{
    expected_t *expected = elf_module_make_expected(addresses, count);
    if (module->loading != NULL) {
        free(elf_module_exchange_late(&module->loading->late, expected));
        return;
    }
    free(module->expected);
    module->expected = expected;
    module->is_asked_much = module->is_asked_much || count >= GP_SYMBOLIZER_MANY;
    if (module->loaded) {
        elf_module_expect_lines(module);
        elf_module_expect_names(module);
    }
}

static void elf_module_load_ahead(gp_job_t *job)
{
    elf_module_load(&((loading_t *)job)->module);
}

void gp_elf_module_begin(gp_elf_module_t *module, gp_helpers_t *helpers)
{
    loading_t *loading = !module->loaded && module->loading == NULL ? calloc(1, sizeof(*loading)) : NULL;
    if (loading == NULL)
        return;
    module->helpers = helpers;
    loading->job.work = elf_module_load_ahead;
    loading->job.takes_others = true;
    loading->module = *module;
    loading->module.late = &loading->late;
    module->expected = NULL; // the other one's now
    module->loading = loading;
    // -Wanalyzer-malloc-leak: elf_module_end(), gp_elf_module_free()
    gp_helpers_give(helpers, &loading->job);
}

// Have what a helper loads.
static void elf_module_end(gp_elf_module_t *module)
{
    loading_t *loading = module->loading;
    gp_helpers_take_helping(module->helpers, &loading->job);
    *module = loading->module;
    expected_t *late = elf_module_exchange_late(&loading->late, NULL);
    module->late = NULL;
    free(loading);
    if (late == NULL)
        return;
    free(module->expected);
    module->expected = late;
    elf_module_expect_lines(module);
    elf_module_expect_names(module);
}

void gp_elf_module_load(gp_elf_module_t *module)
{
    if (module->loading != NULL)
        elf_module_end(module);
    else
        elf_module_load(module);
}

void gp_elf_module_free(gp_elf_module_t *module)
{
    if (module->loading != NULL) {
        gp_helpers_withdraw(module->helpers, &module->loading->job);
        free(elf_module_exchange_late(&module->loading->late, NULL));
        gp_elf_module_free(&module->loading->module);
        free(module->loading);
    }
    free(module->expected);
    gp_symbol_names_free(module->names);
    gp_symbol_table_free(&module->symbols);
    gp_eh_functions_free(&module->functions);
    gp_dwarf_close(module->dwarf);
    module->dwarf = NULL;
}
