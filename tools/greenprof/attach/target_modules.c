// SPDX-License-Identifier: MIT
#include "target_modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "patch/elf_symbols.h"
#include "target_root.h"

enum { PAGE_BYTES = 4096 };

static gp_target_module_t *target_modules_module_of(gp_target_modules_t *modules, const char *path)
{
    if (modules->count > 0 && strcmp(modules->items[modules->count - 1].path, path) == 0)
        return &modules->items[modules->count - 1];
    gp_target_module_t *grown = realloc(modules->items, (modules->count + 1) * sizeof(*grown));
    if (grown == NULL)
        return NULL;
    modules->items = grown;
    gp_target_module_t *module = &grown[modules->count];
    *module = (gp_target_module_t){.path = strdup(path), .lo = UINT64_MAX, .code_lo = UINT64_MAX};
    modules->count += module->path != NULL;
    return module->path != NULL ? module : NULL;
}

// The prefix of paths in /proc/PID/maps for us, but not for the process: its root directory, which lies below its mount
// namespace's after chroot(2). "" = nothing.
static void target_modules_read_root(pid_t pid, char root[GP_TARGET_PATH_SIZE])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    ssize_t length = readlink(path, root, GP_TARGET_PATH_SIZE - 1);
    root[length > 1 ? length : 0] = '\0';
}

// A line of /proc/PID/maps. Source: proc_pid_maps(5).
static int target_modules_add_line(gp_target_modules_t *modules, const char *root, char *line)
{
    uint64_t lo, hi;
    char access[5] = "";
    int path_at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &lo, &hi, access, &path_at) < 3 || path_at == 0 ||
        line[path_at] != '/')
        return 0;
    size_t above = strlen(root);
    if (strncmp(line + path_at, root, above) == 0 && line[(size_t)path_at + above] == '/')
        path_at += (int)above;
    gp_target_module_t *module = target_modules_module_of(modules, line + path_at);
    if (module == NULL)
        return -ENOMEM;
    if (lo < module->lo)
        module->first_hi = hi;
    module->lo = lo < module->lo ? lo : module->lo;
    module->hi = hi > module->hi ? hi : module->hi;
    if (access[2] != 'x')
        return 0;
    module->code_lo = lo < module->code_lo ? lo : module->code_lo;
    module->code_hi = hi > module->code_hi ? hi : module->code_hi;
    return 0;
}

int gp_target_modules_read(pid_t pid, gp_target_modules_t *modules)
{
    char path[64], root[GP_TARGET_PATH_SIZE], *line = NULL;
    size_t room = 0;
    int error = 0;
    *modules = (gp_target_modules_t){.pid = pid};
    target_modules_read_root(pid, root);
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -errno;
    while (error == 0 && getline(&line, &room, file) > 0)
        error = target_modules_add_line(modules, root, line);
    free(line);
    fclose(file);
    return error;
}

void gp_target_modules_free(gp_target_modules_t *modules)
{
    for (size_t i = 0; i < modules->count; i++)
        free(modules->items[i].path);
    free(modules->items);
    *modules = (gp_target_modules_t){0};
}

const gp_target_module_t *gp_target_module_named(const gp_target_modules_t *modules, const char *beginning)
{
    for (size_t i = 0; i < modules->count; i++)
        if (strncmp(strrchr(modules->items[i].path, '/') + 1, beginning, strlen(beginning)) == 0)
            return &modules->items[i];
    return NULL;
}

static bool target_modules_read_page(const char *path, uint64_t at, unsigned char page[PAGE_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = pread(fd, page, PAGE_BYTES, (off_t)at);
    close(fd);
    return got == PAGE_BYTES;
}

bool gp_target_module_is(const gp_target_modules_t *modules, const gp_target_module_t *module, const char *file)
{
    unsigned char mapped[PAGE_BYTES], stored[PAGE_BYTES];
    char memory[64];
    snprintf(memory, sizeof(memory), "/proc/%d/mem", (int)modules->pid);
    return target_modules_read_page(memory, module->lo, mapped) && target_modules_read_page(file, 0, stored) &&
           memcmp(mapped, stored, PAGE_BYTES) == 0;
}

// Map the file that is mapped there, whatever has its name now, where root may. Else by its name: a file replaced since
// is named "... (deleted)", and is not there. Source: proc_pid_map_files(5).
static int target_modules_map_file(const gp_target_modules_t *modules, const gp_target_module_t *module,
                                   gp_elf_image_t *image)
{
    char mapped[96];
    if (module->file != NULL)
        return gp_elf_map(module->file, image);
    snprintf(mapped, sizeof(mapped), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)modules->pid, module->lo,
             module->first_hi);
    int fd = gp_regular_file_open(AT_FDCWD, mapped, 0);
    if (fd < 0)
        fd = gp_target_root_read(modules->pid, module->path);
    int error = gp_elf_map_descriptor(fd, image);
    return error == -ENOENT ? -ESTALE : error;
}

// The difference of addresses to those as linked.
static uint64_t target_modules_bias_of(const gp_target_module_t *module, const gp_elf_image_t *image)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image->bytes;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(const void *)(image->bytes + header->e_phoff);
    bool fits = header->e_phoff % 8 == 0 && header->e_phoff <= image->size &&
                header->e_phnum <= (image->size - header->e_phoff) / sizeof(*segment);
    for (int i = 0; fits && i < header->e_phnum; i++)
        if (segment[i].p_type == PT_LOAD)
            return module->lo - segment[i].p_vaddr / PAGE_BYTES * PAGE_BYTES;
    return module->lo;
}

int gp_target_functions(const gp_target_modules_t *modules, const gp_target_module_t *module, const char *const *names,
                        size_t count, gp_target_function_t *functions)
{
    gp_elf_image_t image;
    int error = target_modules_map_file(modules, module, &image);
    memset(functions, 0, count * sizeof(*functions));
    if (error != 0)
        return error;
    for (size_t i = 0; i < count; i++) {
        gp_elf_function_t found;
        if (gp_elf_function(&image, names[i], &found))
            functions[i] = (gp_target_function_t){target_modules_bias_of(module, &image) + found.address, found.size};
    }
    gp_elf_unmap(&image);
    return 0;
}

uint64_t gp_target_find_code(const gp_target_modules_t *modules, const gp_target_module_t *module, const char *name,
                             const unsigned char *code, size_t size)
{
    gp_elf_image_t image;
    gp_elf_function_t found;
    uint64_t address = 0;
    if (target_modules_map_file(modules, module, &image) != 0)
        return 0;
    if (gp_elf_function(&image, name, &found)) {
        size_t bytes = found.size < found.code_size ? found.size : found.code_size;
        const unsigned char *at = memmem(found.code, bytes, code, size);
        if (at != NULL)
            address = target_modules_bias_of(module, &image) + found.address + (uint64_t)(at - found.code);
    }
    gp_elf_unmap(&image);
    return address;
}
