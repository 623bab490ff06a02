// SPDX-License-Identifier: MIT
#include "collect/modules.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_stamp.h"
#include "base/index.h"
#include "base/main_file.h"
#include "base/maps.h"
#include "collect/namespaces.h"
#include "signal/more_stack.h"

static gp_module_t *modules;
static size_t module_count, module_room;
static uint32_t *sorted; // indices of loaded modules by start
static size_t sorted_count;
static gp_index_t by_image; // numbers of modules by modules_image_hash()
static unsigned long long seen_adds, seen_subs;
static uint64_t new_loads, unlisted; // of the present look
static _Atomic uint64_t lost;
static _Atomic uint32_t looked_up;         // locations in modules
static gp_loc_t latest[GP_MODULES_LATEST]; // of these, location number n at n modulo the room
static struct {
    uintptr_t pc;
    gp_loc_t loc;
} cache[4096]; // program counter -> location, direct-mapped

static void modules_read_notes(gp_module_t *module, const struct dl_phdr_info *info, const ElfW(Phdr) * header)
{
    const char *at = (const char *)(info->dlpi_addr + header->p_vaddr), *end = at + header->p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
        const char *name = at + sizeof(*note), *desc = name + ((note->n_namesz + 3u) & ~3u);
        bool is_whole = note->n_namesz == 4 && desc + note->n_descsz <= end;
        if (is_whole && note->n_type == NT_GNU_BUILD_ID && memcmp(name, "GNU", 4) == 0) {
            module->build_id_len = note->n_descsz < 20 ? note->n_descsz : 20;
            memcpy(module->build_id, desc, module->build_id_len);
        } else if (is_whole && memcmp(name, "Go\0", 4) == 0) {
            atomic_store_explicit(&gp_more_stack_of_go, true, memory_order_relaxed);
        }
        at = desc + ((note->n_descsz + 3u) & ~3u);
    }
}

static void modules_measure(gp_module_t *module, const struct dl_phdr_info *info)
{
    memset(module, 0, sizeof(*module));
    module->bias = info->dlpi_addr;
    module->start = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD) {
            uintptr_t lo = info->dlpi_addr + header->p_vaddr, hi = lo + header->p_memsz;
            module->start = lo < module->start ? lo : module->start;
            module->end = hi > module->end ? hi : module->end;
        } else if (header->p_type == PT_NOTE) {
            modules_read_notes(module, info, header);
        }
    }
}

static char *modules_path_of(const struct dl_phdr_info *info, const gp_module_t *module)
{
    char path[GP_MAIN_FILE_SIZE];
    const char *name = info->dlpi_name != NULL ? info->dlpi_name : "";
    bool is_nameless = name[0] == '\0';
    if (strncmp(name, "linux-vdso", 10) == 0)
        return strdup("[vdso]");
    if (is_nameless && module_count > 0 && module->start > 0 && modules[0].bias != module->bias)
        return strdup("[vdso]"); // nameless but not the first: older loaders leave the vDSO's name empty
    if (name[0] == '/' && strncmp(name, "/proc/", 6) != 0)
        return strdup(name);
    // A relative name is from where the program was; by a descriptor's one it may have loaded a memfd.
    path[0] = '\0';
    if (is_nameless)
        gp_main_file(path);
    else
        gp_mapped_file(module->start, path);
    return strdup(is_nameless || path[0] == '/' ? path : name);
}

// Made by the linker, in libgreenprof.a only (cmake/static.cmake): what is ours of the one module that there is.
extern const char __start_gp_own_code[] __attribute__((weak, visibility("hidden")));
extern const char __stop_gp_own_code[] __attribute__((weak, visibility("hidden")));

static bool modules_is_own_code(uintptr_t pc)
{
    return pc >= (uintptr_t)__start_gp_own_code && pc < (uintptr_t)__stop_gp_own_code;
}

void gp_modules_own_code(uint64_t range[2])
{
    range[0] = (uintptr_t)__start_gp_own_code;
    range[1] = (uintptr_t)__stop_gp_own_code;
}

static bool modules_is_own(const gp_module_t *module)
{
    if (__start_gp_own_code != NULL)
        return false;
    uintptr_t here = (uintptr_t)gp_modules_locate;
    if (here >= module->start && here < module->end)
        return true;
    const char *base = strrchr(module->path, '/');
    base = base != NULL ? base + 1 : module->path;
    return strncmp(base, "libgreenprof.so", 15) == 0 || strncmp(base, "libgreenprof-core.so", 20) == 0;
}

typedef struct image { // what is looked for
    const gp_module_t *module;
    const char *path;
} image_t;

// A file without a build-id may be another one by now: it is told from others by where it is loaded, too.
static uint64_t modules_image_hash(const gp_module_t *module, const char *path)
{
    uint64_t hash = gp_hash_more(gp_hash_bytes(path, strlen(path)), gp_hash_bytes(module->build_id, 20));
    return module->build_id_len > 0 ? hash : gp_hash_more(hash, module->start);
}

static bool modules_is_same_image(const gp_module_t *other, const image_t *image)
{
    return other->build_id_len == image->module->build_id_len &&
           memcmp(other->build_id, image->module->build_id, sizeof(other->build_id)) == 0 &&
           strcmp(other->path, image->path) == 0;
}

static bool modules_is_same_place(const void *unused, uint32_t number, const void *image)
{
    const gp_module_t *other = &modules[number], *module = ((const image_t *)image)->module;
    (void)unused;
    return other->start == module->start && other->end == module->end && other->bias == module->bias &&
           modules_is_same_image(other, image);
}

static bool modules_is_free_copy(const void *unused, uint32_t number, const void *image)
{
    const gp_module_t *other = &modules[number];
    (void)unused;
    return !other->loaded && other->build_id_len > 0 && modules_is_same_image(other, image);
}

// The module as it is known already. A module loaded again at another address keeps its number: locations in it are
// addresses as in its file.
static gp_module_t *modules_find_same(const gp_module_t *module, const char *path)
{
    const image_t image = {module, path};
    uint64_t hash = modules_image_hash(module, path);
    uint32_t number = gp_index_find(&by_image, hash, modules_is_same_place, NULL, &image);
    if (number != GP_INDEX_NONE)
        return &modules[number];
    number = gp_index_find(&by_image, hash, modules_is_free_copy, NULL, &image);
    if (number == GP_INDEX_NONE)
        return NULL;
    modules[number].start = module->start;
    modules[number].end = module->end;
    modules[number].bias = module->bias;
    return &modules[number];
}

static bool modules_make_room(void)
{
    if (module_count < module_room)
        return true;
    size_t room = module_room > 0 ? module_room * 2 : 64;
    gp_module_t *grown = realloc(modules, room * sizeof(*grown));
    if (grown == NULL)
        return false;
    modules = grown;
    uint32_t *order = realloc(sorted, room * sizeof(*order));
    if (order == NULL)
        return false;
    sorted = order;
    module_room = room;
    return true;
}

// The stamp of the mapped file, not of a new one with its name.
static void modules_take_stamp(gp_module_t *module, const char *path)
{
    struct stat status;
    gp_mapping_t mapping;
    if (module->build_id_len > 0 || path[0] != '/' || stat(path, &status) < 0 ||
        gp_maps_find(module->start, &mapping) < 0 || mapping.inode != status.st_ino)
        return;
    gp_file_stamp_t stamp = gp_file_stamp(&status);
    memcpy(module->build_id, &stamp, sizeof(stamp));
}

static int modules_visit(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    gp_module_t module;
    modules_measure(&module, info);
    char *path = module.end != 0 ? modules_path_of(info, &module) : NULL;
    if (path == NULL)
        return 0;
    modules_take_stamp(&module, path);
    gp_module_t *same = modules_find_same(&module, path);
    if (same != NULL) {
        free(path);
    } else if (module_count < GP_MODULES_MAX && modules_make_room() &&
               gp_index_add(&by_image, modules_image_hash(&module, path), (uint32_t)module_count) == 0) {
        module.path = path;
        module.own = modules_is_own(&module);
        module.id = (uint32_t)module_count + 1;
        same = &modules[module_count++];
        *same = module;
    } else {
        free(path);
        unlisted++;
    }
    if (same != NULL && !same->loaded) {
        same->loaded = true;
        sorted[sorted_count++] = (uint32_t)(same - modules);
    }
    // -Wanalyzer-malloc-leak: the table keeps the path.
    return 0;
}

static int modules_look(struct dl_phdr_info *info, size_t size, void *changed)
{
    (void)size;
    *(bool *)changed = info->dlpi_adds != seen_adds || info->dlpi_subs != seen_subs;
    new_loads = info->dlpi_adds - seen_adds;
    seen_adds = info->dlpi_adds;
    seen_subs = info->dlpi_subs;
    return 1;
}

static int modules_by_start(const void *a, const void *b)
{
    uintptr_t x = modules[*(const uint32_t *)a].start, y = modules[*(const uint32_t *)b].start;
    return (x > y) - (x < y);
}

bool gp_modules_refresh(void)
{
    bool changed = false;
    dl_iterate_phdr(modules_look, &changed);
    if (!changed)
        return false;
    for (size_t i = 0; i < sorted_count; i++)
        modules[sorted[i]].loaded = false;
    sorted_count = unlisted = 0;
    dl_iterate_phdr(modules_visit, NULL);
    atomic_fetch_add_explicit(&lost, unlisted < new_loads ? unlisted : new_loads, memory_order_relaxed);
    if (sorted_count > 0)
        qsort(sorted, sorted_count, sizeof(*sorted), modules_by_start);
    memset(cache, 0, sizeof(cache));
    return true;
}

static gp_loc_t modules_location_in(gp_module_t *module, uintptr_t pc)
{
    gp_loc_t loc = GP_LOC(module->id, pc - module->bias);
    module->used = true;
    latest[atomic_fetch_add_explicit(&looked_up, 1, memory_order_relaxed) % GP_MODULES_LATEST] = loc;
    return loc;
}

// A module that dl_iterate_phdr() does not list, as it is in another namespace: dlmopen().
static int modules_visit_elsewhere(struct dl_phdr_info *unused, size_t size, void *pc)
{
    struct dl_phdr_info info;
    char path[GP_MAIN_FILE_SIZE];
    (void)unused;
    if (gp_namespace_module(*(const uintptr_t *)pc, &info)) {
        gp_mapped_file(*(const uintptr_t *)pc, path);
        info.dlpi_name = path;
        modules_visit(&info, size, NULL);
    }
    return 1;
}

static gp_module_t *modules_find_elsewhere(uintptr_t pc)
{
    size_t before = sorted_count;
    if (unlisted > 0 || !gp_namespace_has(pc))
        return NULL;
    dl_iterate_phdr(modules_visit_elsewhere, &pc);
    gp_module_t *module = sorted_count > before ? &modules[sorted[before]] : NULL;
    if (module != NULL)
        qsort(sorted, sorted_count, sizeof(*sorted), modules_by_start);
    return module;
}

static gp_loc_t modules_locate(uintptr_t pc)
{
    size_t lo = 0, hi = sorted_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        gp_module_t *module = &modules[sorted[mid]];
        if (pc < module->start)
            hi = mid;
        else if (pc >= module->end)
            lo = mid + 1;
        else
            return module->own || modules_is_own_code(pc) ? GP_LOC_OWN : modules_location_in(module, pc);
    }
    gp_module_t *elsewhere = modules_find_elsewhere(pc);
    return elsewhere != NULL ? modules_location_in(elsewhere, pc) : GP_LOC(0, pc);
}

gp_loc_t gp_modules_locate(uintptr_t pc)
{
    size_t slot = (pc * 0x9e3779b97f4a7c15ull) >> 52; // 4096 slots
    if (cache[slot].pc != pc) {
        cache[slot].loc = modules_locate(pc);
        cache[slot].pc = pc;
    }
    return cache[slot].loc;
}

const gp_module_t *gp_modules_all(size_t *count)
{
    *count = module_count;
    return modules;
}

uint32_t gp_modules_looked_up(void)
{
    return atomic_load_explicit(&looked_up, memory_order_relaxed);
}

size_t gp_modules_latest(uint32_t since, gp_loc_t locs[GP_MODULES_LATEST])
{
    uint32_t end = gp_modules_looked_up();
    uint32_t count = end - since < GP_MODULES_LATEST ? end - since : GP_MODULES_LATEST;
    for (uint32_t i = 0; i < count; i++)
        locs[i] = latest[(end - count + i) % GP_MODULES_LATEST];
    return count;
}

uint64_t gp_modules_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}
