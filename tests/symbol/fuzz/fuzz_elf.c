// SPDX-License-Identifier: MIT
// Any bytes as an ELF file: sections, build-id, both symbol tables, unwind tables, PLT stubs,
// .gnu_debuglink, .gnu_debugaltlink, .gnu_debugdata.
#include <errno.h>
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/debug_file.h"
#include "symbol/symbol_table.h"

int __wrap_open(const char *path, int flags, ...);
long __wrap_syscall(long number, ...);

// The names of files in the input are the fuzzer's: none is opened.
int __wrap_open(const char *path, int flags, ...)
{
    (void)path;
    (void)flags;
    errno = ENOENT;
    return -1;
}

long __wrap_syscall(long number, ...)
{
    (void)number;
    errno = ENOENT;
    return -1;
}

static void check(const gp_symbol_table_t *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const gp_range_t *range = &table->ranges[i];
        if (range->lo >= range->hi || (i > 0 && range[-1].hi > range->lo) ||
            gp_symbol_table_find(table, range->lo) != range || gp_symbol_table_find(table, range->hi - 1) != range)
            abort();
    }
}

static void read_symbols(const gp_elf_t *elf)
{
    gp_elf_t inner;
    const gp_symbol_source_t sources[] = {{elf, false}, {elf, true}, {&inner, false}};
    gp_eh_functions_t functions = {0};
    gp_symbol_table_t table = {0};
    bool mini = gp_elf_open_debugdata(&inner, elf) == 0;
    gp_eh_functions_load(&functions, elf);
    gp_symbol_table_load(&table, sources, mini ? 3 : 2, &functions);
    check(&table);
    gp_symbol_table_add_plt(&table, elf);
    check(&table);
    gp_symbol_table_free(&table);
    gp_eh_functions_free(&functions);
    if (mini)
        gp_elf_close(&inner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[GP_DEBUG_PATH_SIZE];
    uint8_t build_id[GP_BUILD_ID_MAX];
    gp_elf_t elf, found;
    if (gp_elf_open_image(&elf, data, size) < 0)
        return 0;
    gp_elf_build_id(&elf, build_id);
    if (gp_debug_file_open(&elf, "/nowhere/file", &found, path) == 0 ||
        gp_debug_supplement_open(&elf, "/nowhere/file", &found) == 0)
        abort();
    read_symbols(&elf);
    gp_elf_close(&elf);
    return 0;
}
