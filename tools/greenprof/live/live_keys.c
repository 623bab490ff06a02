// SPDX-License-Identifier: MIT
#include "live_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/target_root.h"
#include "message.h"

#define KEYS      "GREENPROF_HMAC_KEYS"
#define KEYS_FILE "GREENPROF_HMAC_KEYS_FILE"

static const char *live_keys_why(int error)
{
    switch (-error) {
    case EPERM:
        return "other users may read or write it: chmod o= it";
    case ENOKEY:
        return "there is no key in it";
    case E2BIG:
        return "more than 16 keys, or one of more than 256 bytes";
    default:
        return strerror(-error);
    }
}

static const char *live_keys_get(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

int gp_live_key(const gp_key_t **key)
{
    static gp_key_list_t keys;
    const char *text = live_keys_get(KEYS), *path = live_keys_get(KEYS_FILE);
    *key = NULL;
    keys.count = 0;
    if (text == NULL && path == NULL)
        return 0;
    int error = text != NULL ? gp_key_list_parse(&keys, text, strlen(text)) : gp_key_list_read(&keys, path);
    if (error == 0 && keys.count == 0)
        error = -ENOKEY;
    if (error != 0)
        return gp_fail(text != NULL ? KEYS : path, "%s", live_keys_why(error));
    *key = &keys.list[0];
    return 0;
}

const char *gp_live_key_reason(int error)
{
    switch (-error) {
    case ENOKEY:
        return "it asks for a key: set " KEYS_FILE " to the file that has it, or " KEYS;
    case EKEYREJECTED:
        return "the key is none of those that it accepts: the first one of " KEYS ", or " KEYS_FILE ", signs";
    case EKEYREVOKED:
        return "it asks for a key, and cannot read its own: see " KEYS " and " KEYS_FILE " in its environment";
    default:
        return NULL;
    }
}

// --- of a process that is not attached to yet

static const char *live_keys_find(const char *environment, size_t length, const char *variable)
{
    size_t name_len = strlen(variable);
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1)
        if (strncmp(at, variable, name_len) == 0 && at[name_len] == '=' && at[name_len + 1] != '\0')
            return at + name_len + 1;
    return NULL;
}

// A file as the process would find it.
static int live_keys_read_file(pid_t pid, const char *path, gp_key_list_t *keys)
{
    char rooted[PATH_MAX], start[GP_TARGET_ENTRY_SIZE];
    gp_target_path(pid, path[0] == '/' ? "root" : "cwd", start);
    int length = snprintf(rooted, sizeof(rooted), "%s/%s", start, path);
    return length < (int)sizeof(rooted) ? gp_key_list_read(keys, rooted) : -ENAMETOOLONG;
}

static bool live_keys_has(const gp_key_list_t *keys, const gp_key_t *key)
{
    bool has = false;
    for (size_t i = 0; i < keys->count; i++)
        has |= keys->list[i].len == key->len && memcmp(keys->list[i].bytes, key->bytes, key->len) == 0;
    return has;
}

static int live_keys_fits(const gp_target_t *target, const char *environment, size_t length, const gp_key_t *key)
{
    static gp_key_list_t keys;
    const char *text = live_keys_find(environment, length, KEYS),
               *path = live_keys_find(environment, length, KEYS_FILE);
    if (text == NULL && path == NULL)
        return 0;
    keys.count = 0;
    int error =
        text != NULL ? gp_key_list_parse(&keys, text, strlen(text)) : live_keys_read_file(target->pid, path, &keys);
    if (error != 0 || keys.count == 0)
        return -EKEYREVOKED;
    return key == NULL ? -ENOKEY : live_keys_has(&keys, key) ? 0 : -EKEYREJECTED;
}

int gp_live_key_fits(const gp_target_t *target, const char *subject)
{
    enum { ENVIRONMENT_SIZE = 1 << 22 };
    const gp_key_t *key;
    size_t length = 0;
    int status = gp_live_key(&key);
    char *environment = malloc(ENVIRONMENT_SIZE);
    if (status == 0 && environment != NULL &&
        gp_target_read(target->pid, "environ", environment, ENVIRONMENT_SIZE, &length)) {
        int error = live_keys_fits(target, environment, length, key);
        status = error == 0 ? 0 : gp_fail(subject, "%s", gp_live_key_reason(error));
    }
    if (environment != NULL)
        explicit_bzero(environment, length);
    free(environment);
    return status;
}
