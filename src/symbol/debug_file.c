// SPDX-License-Identifier: MIT
#include "symbol/debug_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <libdeflate.h>

#include "base/hex.h"
#include "symbol/symfs.h"

#define DEBUG_ROOT "/usr/lib/debug"

typedef struct wanted {
    uint8_t build_id[GP_BUILD_ID_MAX];
    size_t build_id_len;
    uint32_t crc; // used where there is no build-id
} wanted_t;

static bool debug_file_crc_matches(const gp_elf_t *file, uint32_t crc)
{
    uint8_t bytes[16384];
    uint32_t sum = 0;
    for (uint64_t at = 0; at < file->size;) {
        size_t len = file->size - at < sizeof(bytes) ? (size_t)(file->size - at) : sizeof(bytes);
        if (gp_elf_read(file, at, bytes, len) < 0)
            return false;
        sum = libdeflate_crc32(sum, bytes, len);
        at += len;
    }
    return sum == crc;
}

static int debug_file_open_if_right(const char *path, const wanted_t *wanted, gp_elf_t *found)
{
    uint8_t build_id[GP_BUILD_ID_MAX];
    if (gp_elf_open(found, path) < 0)
        return -ENOENT;
    size_t len = gp_elf_build_id(found, build_id);
    bool right = wanted->build_id_len > 0 ? len == wanted->build_id_len && memcmp(build_id, wanted->build_id, len) == 0
                                          : debug_file_crc_matches(found, wanted->crc);
    if (right)
        return 0;
    gp_elf_close(found);
    return -ENOENT;
}

// Where debuginfod's client keeps what it has fetched. Returns whether there may be such a place.
// Source: debuginfod_find_debuginfo(3), "CACHE".
static bool debug_file_cache_place(char path[GP_DEBUG_PATH_SIZE])
{
    const char *named = secure_getenv("DEBUGINFOD_CACHE_PATH"), *home = secure_getenv("HOME");
    const char *caches = secure_getenv("XDG_CACHE_HOME");
    struct stat status;
    int len = -1;
    if (named != NULL && named[0] != '\0')
        return snprintf(path, GP_DEBUG_PATH_SIZE, "%s", named) < GP_DEBUG_PATH_SIZE;
    if (home != NULL)
        len = snprintf(path, GP_DEBUG_PATH_SIZE, "%s/.debuginfod_client_cache", home);
    if (len > 0 && len < GP_DEBUG_PATH_SIZE && stat(path, &status) == 0)
        return true;
    if (caches != NULL && caches[0] != '\0')
        len = snprintf(path, GP_DEBUG_PATH_SIZE, "%s/debuginfod_client", caches);
    else if (home != NULL)
        len = snprintf(path, GP_DEBUG_PATH_SIZE, "%s/.cache/debuginfod_client", home);
    return len > 0 && len < GP_DEBUG_PATH_SIZE;
}

// A file that `greenprof symbolize` or another client of debuginfod has fetched; nothing is fetched here.
static int debug_file_open_cached(const wanted_t *wanted, const char *hex, gp_elf_t *found,
                                  char path[GP_DEBUG_PATH_SIZE])
{
    char place[GP_DEBUG_PATH_SIZE];
    if (!debug_file_cache_place(place) ||
        snprintf(path, GP_DEBUG_PATH_SIZE, "%s/%s/debuginfo", place, hex) >= GP_DEBUG_PATH_SIZE)
        return -ENOENT;
    return debug_file_open_if_right(path, wanted, found);
}

// A file at the path that the process has for it: here, else below what stands for its root directory.
static int debug_file_open_in_place(const char *place, const wanted_t *wanted, gp_elf_t *found,
                                    char path[GP_DEBUG_PATH_SIZE])
{
    snprintf(path, GP_DEBUG_PATH_SIZE, "%s", place);
    int result = debug_file_open_if_right(path, wanted, found);
    for (size_t i = 0; i < gp_symfs_count() && result != 0; i++)
        if (gp_symfs_path(i, place, path, GP_DEBUG_PATH_SIZE) > 0)
            result = debug_file_open_if_right(path, wanted, found);
    return result;
}

static int debug_file_open_by_build_id(const wanted_t *wanted, gp_elf_t *found, char path[GP_DEBUG_PATH_SIZE])
{
    char hex[2 * GP_BUILD_ID_MAX + 1], usual[sizeof(DEBUG_ROOT "/.build-id//.debug") + sizeof(hex)];
    if (wanted->build_id_len < 2)
        return -ENOENT;
    gp_hex_write(hex, wanted->build_id, wanted->build_id_len);
    snprintf(usual, sizeof(usual), DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
    return debug_file_open_in_place(usual, wanted, found, path) == 0 ? 0
                                                                     : debug_file_open_cached(wanted, hex, found, path);
}

// .gnu_debuglink: a NUL-terminated name, padding to 4, the CRC of the debug file.
static char *debug_file_read_debuglink(const gp_elf_t *elf, uint32_t *crc)
{
    const Elf64_Shdr *section = gp_elf_section(elf, ".gnu_debuglink");
    size_t len = 0;
    char *name = section ? gp_elf_section_read(elf, section, &len) : NULL;
    if (name == NULL)
        return NULL;
    size_t at = (strlen(name) + 4) & ~(size_t)3;
    if (at + sizeof(*crc) > len || strchr(name, '/') != NULL || name[0] == '\0') {
        free(name);
        return NULL;
    }
    memcpy(crc, name + at, sizeof(*crc));
    return name;
}

static int debug_file_open_by_debuglink(const gp_elf_t *elf, const char *of, wanted_t *wanted, gp_elf_t *found,
                                        char path[GP_DEBUG_PATH_SIZE])
{
    static const char *const forms[] = {"%.*s/%s", "%.*s/.debug/%s", DEBUG_ROOT "%.*s/%s"};
    char place[GP_DEBUG_PATH_SIZE];
    const char *slash = strrchr(of, '/');
    char *name = debug_file_read_debuglink(elf, &wanted->crc);
    int result = -ENOENT;
    for (size_t i = 0; name != NULL && slash != NULL && i < 3 && result < 0; i++) {
        int len = snprintf(place, sizeof(place), forms[i], (int)(slash - of), of, name);
        if (len > 0 && len < GP_DEBUG_PATH_SIZE && strcmp(place, of) != 0)
            result = debug_file_open_in_place(place, wanted, found, path);
    }
    free(name);
    return result;
}

int gp_debug_file_open_by_build_id(const uint8_t *build_id, size_t build_id_len, gp_elf_t *found,
                                   char found_path[GP_DEBUG_PATH_SIZE])
{
    wanted_t wanted = {.build_id_len = build_id_len};
    memcpy(wanted.build_id, build_id, build_id_len);
    return debug_file_open_by_build_id(&wanted, found, found_path);
}

int gp_debug_file_open(const gp_elf_t *elf, const char *path, gp_elf_t *found, char found_path[GP_DEBUG_PATH_SIZE])
{
    wanted_t wanted = {0};
    wanted.build_id_len = gp_elf_build_id(elf, wanted.build_id);
    if (debug_file_open_by_build_id(&wanted, found, found_path) == 0)
        return 0;
    return debug_file_open_by_debuglink(elf, path, &wanted, found, found_path);
}

// .gnu_debugaltlink: a NUL-terminated name, the build-id.
static char *debug_file_read_altlink(const gp_elf_t *elf, wanted_t *wanted)
{
    const Elf64_Shdr *section = gp_elf_section(elf, ".gnu_debugaltlink");
    size_t len = 0;
    char *name = section ? gp_elf_section_read(elf, section, &len) : NULL;
    if (name == NULL)
        return NULL;
    size_t at = strlen(name) + 1;
    if (at >= len || name[0] == '\0' || len - at > GP_BUILD_ID_MAX) {
        free(name);
        return NULL;
    }
    wanted->build_id_len = len - at;
    memcpy(wanted->build_id, name + at, len - at);
    return name;
}

size_t gp_debug_supplement_id(const gp_elf_t *elf, uint8_t build_id[GP_BUILD_ID_MAX])
{
    wanted_t wanted = {0};
    char *name = debug_file_read_altlink(elf, &wanted);
    if (name == NULL)
        return 0;
    free(name);
    memcpy(build_id, wanted.build_id, wanted.build_id_len);
    return wanted.build_id_len;
}

int gp_debug_supplement_open(const gp_elf_t *elf, const char *path, gp_elf_t *found)
{
    char there[GP_DEBUG_PATH_SIZE], opened[GP_DEBUG_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    wanted_t wanted = {0};
    char *name = debug_file_read_altlink(elf, &wanted);
    int result = -ENOENT;
    if (name == NULL)
        return -ENOENT;
    int directory_len = name[0] != '/' && slash != NULL ? (int)(slash - path) + 1 : 0;
    int len = snprintf(there, sizeof(there), "%.*s%s", directory_len, path, name);
    if (len > 0 && len < GP_DEBUG_PATH_SIZE)
        result = debug_file_open_in_place(there, &wanted, found, opened);
    if (result < 0)
        result = debug_file_open_by_build_id(&wanted, found, opened);
    free(name);
    return result;
}
