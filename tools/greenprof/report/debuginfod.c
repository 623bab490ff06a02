// SPDX-License-Identifier: MIT
#include "debuginfod.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/debug_file.h"

#ifdef GP_DEBUGINFOD
#include <elfutils/debuginfod.h>

struct gp_debuginfod {
    debuginfod_client *client;
};

bool gp_debuginfod_is_there(void)
{
    return true;
}

static int debuginfod_name_servers(const char *urls)
{
    char *list = strdup(urls);
    for (char *comma = list; comma != NULL && (comma = strchr(comma, ',')) != NULL;)
        *comma = ' ';
    int result = list != NULL ? setenv("DEBUGINFOD_URLS", list, 1) : -1;
    free(list);
    return result;
}

gp_debuginfod_t *gp_debuginfod_open(const char *urls)
{
    if (urls != NULL && debuginfod_name_servers(urls) < 0)
        return NULL;
    const char *named = getenv("DEBUGINFOD_URLS");
    if (named == NULL || named[strspn(named, " ")] == '\0') {
        errno = EDESTADDRREQ;
        return NULL;
    }
    gp_debuginfod_t *debuginfod = calloc(1, sizeof(*debuginfod));
    if (debuginfod != NULL)
        debuginfod->client = debuginfod_begin();
    if (debuginfod != NULL && debuginfod->client == NULL) {
        int error = errno == ELIBACC ? ELIBACC : ENOMEM; // looked for now (tools/wheel/found.c)
        free(debuginfod);
        debuginfod = NULL;
        errno = error;
    }
    return debuginfod;
}

// Returns the file's path, which is the caller's to free; NULL and a negative errno value.
static char *debuginfod_fetch(gp_debuginfod_t *debuginfod, const uint8_t *build_id, size_t build_id_len, int *result)
{
    char *path = NULL;
    int fd = debuginfod_find_debuginfo(debuginfod->client, build_id, (int)build_id_len, &path);
    *result = fd < 0 ? fd : 0;
    if (fd >= 0)
        close(fd);
    return fd < 0 ? NULL : path;
}

int gp_debuginfod_fetch(gp_debuginfod_t *debuginfod, const uint8_t *build_id, size_t build_id_len)
{
    uint8_t shared[GP_BUILD_ID_MAX];
    gp_elf_t elf;
    int result;
    char *path = debuginfod_fetch(debuginfod, build_id, build_id_len, &result);
    if (path == NULL)
        return result;
    size_t len = 0;
    if (gp_elf_open(&elf, path) == 0) {
        len = gp_debug_supplement_id(&elf, shared);
        gp_elf_close(&elf);
    }
    free(path);
    if (len > 0) // without it some names are missing, which is no reason to have none
        free(debuginfod_fetch(debuginfod, shared, len, &result));
    return 0;
}

void gp_debuginfod_close(gp_debuginfod_t *debuginfod)
{
    if (debuginfod == NULL)
        return;
    debuginfod_end(debuginfod->client);
    free(debuginfod);
}

#else

bool gp_debuginfod_is_there(void)
{
    return false;
}

gp_debuginfod_t *gp_debuginfod_open(const char *urls)
{
    (void)urls;
    errno = ENOTSUP;
    return NULL;
}

int gp_debuginfod_fetch(gp_debuginfod_t *debuginfod, const uint8_t *build_id, size_t build_id_len)
{
    (void)debuginfod, (void)build_id, (void)build_id_len;
    return -ENOTSUP;
}

void gp_debuginfod_close(gp_debuginfod_t *debuginfod)
{
    (void)debuginfod;
}
#endif
