// SPDX-License-Identifier: MIT
#include "trace_headers.h"

#include <dlfcn.h>
#include <errno.h>
#include <greenprof/trace.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "live/live_keys.h"
#include "message.h"
#include "print.h"
#include "run/run_checks.h"

typedef int keys_t(const char *keys);
typedef ssize_t write_t(const char *format, const prof_context_t *context, char *text, size_t size);

static int trace_headers_id(const char *text, prof_trace_id_t *id)
{
    if (text != NULL && prof_trace_parse(text, id) != 0)
        return gp_usage_error("trace", "'%s' is no trace id: 32 hex digits, or a UUID", text);
    if (text == NULL && getrandom(id->bytes, sizeof(id->bytes), 0) != (ssize_t)sizeof(id->bytes))
        return gp_fail("random bytes", "%s", strerror(errno));
    return 0;
}

// The file's key, else the environment's: never an argument, as ps shows those.
static int trace_headers_key(const char *path, const gp_key_t **key)
{
    if (path != NULL) {
        unsetenv("GREENPROF_HMAC_KEYS");
        setenv("GREENPROF_HMAC_KEYS_FILE", path, 1);
    }
    int status = gp_live_key(key);
    if (status == 0 && *key == NULL)
        status =
            gp_fail("trace headers", "there is no key: --key FILE, GREENPROF_HMAC_KEYS_FILE or GREENPROF_HMAC_KEYS");
    return status;
}

// libgreenprof, which stands beside the core, signs; it is to obey nothing of the environment. NULL, with a message.
static void *trace_headers_load(void)
{
    char path[PATH_MAX], *core;
    if (gp_run_find_core("trace headers", false, path) != 0)
        return NULL;
    core = strstr(path, "-core.so");
    if (core != NULL)
        memmove(core, core + strlen("-core"), strlen(core + strlen("-core")) + 1);
    clearenv();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        gp_fail(path, "%s", dlerror());
    return library;
}

static int trace_headers_print(void *library, const gp_key_t *key, const prof_context_t *context)
{
    static const char *const formats[] = {"osprofiler", "greenprof"};
    keys_t *set_keys = (keys_t *)(uintptr_t)dlsym(library, "prof_hmac_keys");
    write_t *write_lines = (write_t *)(uintptr_t)dlsym(library, "prof_context_write");
    char text[PROF_CONTEXT_TEXT_SIZE], list[GP_KEY_BYTES_MAX + 1];
    snprintf(list, sizeof(list), "%.*s", (int)key->len, (const char *)key->bytes);
    int error = set_keys == NULL || write_lines == NULL ? -ENOSYS : set_keys(list);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && error == 0; i++) {
        ssize_t length = write_lines(formats[i], context, text, sizeof(text));
        error = length < 0 ? (int)length : 0;
        for (char *line = error == 0 ? strtok(text, "\r\n") : NULL; line != NULL; line = strtok(NULL, "\r\n"))
            printf("%s\n", line);
    }
    return error == 0 ? 0 : gp_fail("trace headers", "%s", strerror(-error));
}

int gp_trace_headers(const gp_arguments_t *arguments)
{
    prof_context_t context = PROF_CONTEXT_INIT;
    char uuid[PROF_TRACE_UUID_SIZE];
    const gp_key_t *key = NULL;
    if (arguments->operand_count > 2)
        return gp_usage_error("trace", "headers takes one ID at most");
    int status = trace_headers_id(arguments->operand_count > 1 ? arguments->operands[1] : NULL, &context.trace);
    if (status == 0)
        status = trace_headers_key(arguments->key, &key);
    void *library = status == 0 ? trace_headers_load() : NULL;
    if (library == NULL)
        return status != 0 ? status : EXIT_FAILED;
    status = trace_headers_print(library, key, &context);
    if (status != 0)
        return status;
    prof_trace_to_uuid(&context.trace, uuid);
    fprintf(stderr, "trace %s\n", uuid);
    return gp_finish_stdout();
}
