// SPDX-License-Identifier: MIT
// greenprof symbolize: names, later, for code that had none where the capture was made.
//
// Model: a capture has build-ids and addresses; names are looked up when it is read. So nothing is written beside it:
// debug files are fetched into the cache of debuginfod's client, where every command finds them by the build-id.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "command.h"
#include "debuginfod.h"
#include "input.h"
#include "message.h"
#include "missing_symbols.h"
#include "print.h"
#include "progress.h"
#include "symbol/elf_file.h"
#include "symbolize_store.h"

enum { BUILD_TEXT_SIZE = 2 * GP_BUILD_ID_MAX + 1 };

typedef struct module {
    char *path;
    char build[BUILD_TEXT_SIZE]; // "" = not known
    uint64_t places, nameless;   // distinct addresses, and those without a name: at first
    uint64_t nameless_now;
    int result; // of fetching its debug file; 1 = it was not tried
} module_t;

typedef struct modules {
    module_t *items;
    size_t count, capacity;
} modules_t;

static module_t *symbolize_find_module(modules_t *modules, const char *path, const char *build)
{
    for (size_t i = 0; i < modules->count; i++)
        if (strcmp(modules->items[i].path, path) == 0 && strcmp(modules->items[i].build, build) == 0)
            return &modules->items[i];
    if (gp_grow(&modules->items, &modules->capacity, modules->count, sizeof(*modules->items)) < 0)
        return NULL;
    char *copy = strdup(path);
    if (copy == NULL)
        return NULL;
    module_t *module = &modules->items[modules->count++];
    *module = (module_t){.path = copy, .result = 1}; // -Wanalyzer-malloc-leak: symbolize_free_modules()
    snprintf(module->build, sizeof(module->build), "%s", build);
    return module;
}

static int symbolize_count_frame(modules_t *modules, const gp_report_t *report, const gp_report_frame_t *frame,
                                 bool is_first)
{
    const char *build = frame->mapping != 0 ? report->mappings[frame->mapping - 1].build_id : "";
    if (frame->pseudo || frame->inlined || frame->module[0] != '/')
        return 0;
    module_t *module = symbolize_find_module(modules, frame->module, build);
    if (module == NULL)
        return -ENOMEM;
    bool nameless = gp_missing_symbols_frame(frame);
    module->places += is_first;
    module->nameless += is_first && nameless;
    module->nameless_now += !is_first && nameless;
    return 0;
}

static int symbolize_count(modules_t *modules, const gp_arguments_t *arguments, bool is_first)
{
    gp_input_t source;
    int status = gp_input_open(&source, arguments, GP_WANT_ADDRESSES), result = 0;
    if (status != 0)
        return status;
    source.options.measure = GP_MEASURE_WALL; // waiting stacks count as well
    gp_report_t *report = gp_input_report(&source, &source.options);
    if (report == NULL)
        status = gp_input_fail(&source, errno);
    for (uint32_t i = 0; report != NULL && i < report->frame_count && result == 0; i++)
        result = symbolize_count_frame(modules, report, &report->frames[i], is_first);
    if (result < 0)
        status = gp_input_fail(&source, -result);
    gp_report_free(report);
    gp_input_close(&source);
    return status;
}

static int symbolize_fetch(gp_debuginfod_t *debuginfod, module_t *module)
{
    uint8_t build_id[GP_BUILD_ID_MAX];
    size_t len = strlen(module->build) / 2;
    if (module->nameless == 0 || len == 0 || gp_hex_read(module->build, build_id, len) == NULL)
        return 0;
    gp_progress_begin("fetching the debug file of", module->path, -1);
    module->result = gp_debuginfod_fetch(debuginfod, build_id, len);
    gp_progress_end();
    return module->result == -ENOENT ? 0 : module->result;
}

// Returns an exit status: the network's failure is one, a server without the file is none.
static int symbolize_fetch_all(modules_t *modules, const char *servers)
{
    gp_debuginfod_t *debuginfod = gp_debuginfod_open(strcmp(servers, "env") == 0 ? NULL : servers);
    int status = 0;
    if (debuginfod == NULL)
        return gp_symbolize_no_servers(errno);
    for (size_t i = 0; i < modules->count; i++) {
        int result = symbolize_fetch(debuginfod, &modules->items[i]);
        if (result < 0)
            status = gp_fail(modules->items[i].path, "cannot be asked for at %s: %s", getenv("DEBUGINFOD_URLS"),
                             strerror(-result));
    }
    gp_debuginfod_close(debuginfod);
    return status;
}

static int symbolize_by_nameless(const void *a, const void *b)
{
    const module_t *x = a, *y = b;
    if (x->nameless != y->nameless)
        return x->nameless < y->nameless ? 1 : -1;
    return strcmp(x->path, y->path);
}

static const char *symbolize_outcome(const module_t *module)
{
    if (module->result == 0)
        return "  fetched";
    if (module->result == -ENOENT)
        return "  no server has it";
    return module->result < 0 ? "  not fetched" : "";
}

static int symbolize_print(modules_t *modules)
{
    qsort(modules->items, modules->count, sizeof(*modules->items), symbolize_by_nameless);
    printf("%10s %10s %10s  %s\n", "addresses", "no name", "now", "module, build-id");
    for (size_t i = 0; i < modules->count; i++) {
        const module_t *module = &modules->items[i];
        printf("%10llu %10llu %10llu  ", (unsigned long long)module->places, (unsigned long long)module->nameless,
               (unsigned long long)module->nameless_now);
        gp_print_text(module->path);
        printf(" %s%s\n", module->build[0] != '\0' ? module->build : "(no build-id)", symbolize_outcome(module));
    }
    return gp_finish_stdout();
}

static void symbolize_free_modules(modules_t *modules)
{
    for (size_t i = 0; i < modules->count; i++)
        free(modules->items[i].path);
    free(modules->items);
}

static bool symbolize_is_store(const char *operand)
{
    return strncmp(operand, GP_STORE_SCHEME, strlen(GP_STORE_SCHEME)) == 0;
}

int gp_command_symbolize(const gp_arguments_t *arguments)
{
    if (symbolize_is_store(arguments->operands[0]) && arguments->operand_count == 1)
        return gp_symbolize_store(arguments->operands[0], arguments->debuginfod);
    modules_t modules = {0};
    int status = symbolize_count(&modules, arguments, true), fetched = 0;
    if (status == 0 && arguments->debuginfod != NULL)
        fetched = symbolize_fetch_all(&modules, arguments->debuginfod);
    if (status == 0)
        status = symbolize_count(&modules, arguments, false);
    if (status == 0)
        status = symbolize_print(&modules);
    symbolize_free_modules(&modules);
    return status != 0 ? status : fetched;
}
