// SPDX-License-Identifier: MIT
#include "symbolize_store.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "debuginfod.h"
#include "export/write/text.h"
#include "message.h"
#include "missing_symbols.h"
#include "ship/send/clickhouse/clickhouse.h"
#include "symbol/debug_file.h"
#include "symbol/symbolizer.h"

enum { INSERT_BYTES = 4 << 20, CHAIN_MAX = 64, ANSWER_MAX = 1 << 30 };

#define COLUMNS "tenant, stack, names, files, lines, modules, addresses, builds, inlined"
static const char insert_head[] = "INSERT INTO greenprof_stacks (" COLUMNS ") FORMAT JSONEachRow\n";

typedef struct store {
    gp_clickhouse_t *clickhouse;
    gp_symbolizer_t *symbolizer;
    gp_debuginfod_t *debuginfod;
    char where[300]; // which stacks
    gp_text_t rows;  // to be put in
    size_t stacks, named, fetched, absent;
    int failed; // of fetching: the last one
    char error[GP_FLEET_ERROR_SIZE];
} store_t;

// Ask, and take the answer line by line.
static int symbolize_store_ask(store_t *store, const char *question, int (*take)(store_t *store, const char *line))
{
    char query[1024];
    gp_http_answer_t answer;
    snprintf(query, sizeof(query), question, store->where);
    int result = gp_clickhouse_ask(store->clickhouse, query, ANSWER_MAX, &answer, store->error);
    char *rest = answer.text;
    for (char *line; result == 0 && (line = strsep(&rest, "\n")) != NULL;)
        result = line[0] != '\0' ? take(store, line) : 0;
    gp_http_answer_free(&answer);
    return result;
}

static int symbolize_store_put_in(store_t *store)
{
    if (store->rows.failed)
        return -ENOMEM;
    if (store->rows.len == 0)
        return 0;
    gp_http_answer_t answer;
    int result = gp_clickhouse_ask(store->clickhouse, store->rows.data, 0, &answer, store->error);
    gp_http_answer_free(&answer);
    gp_text_clear(&store->rows);
    return result;
}

// A module's build-id: its debug file is fetched, unless this host has it.
static int symbolize_store_fetch(store_t *store, const char *build)
{
    uint8_t build_id[GP_BUILD_ID_MAX];
    char path[GP_DEBUG_PATH_SIZE];
    gp_elf_t elf;
    size_t len = strlen(build) / 2;
    if (len == 0 || len > sizeof(build_id) || gp_hex_read(build, build_id, len) == NULL)
        return 0;
    if (gp_debug_file_open_by_build_id(build_id, len, &elf, path) == 0) {
        gp_elf_close(&elf);
        return 0;
    }
    int result = gp_debuginfod_fetch(store->debuginfod, build_id, len);
    store->fetched += result == 0;
    store->absent += result == -ENOENT;
    if (result < 0 && result != -ENOENT)
        store->failed = result;
    return 0;
}

typedef struct frame { // of a stack in the store
    json_t *name, *file, *line, *module, *address, *build, *inlined;
} frame_t;

static json_t *symbolize_store_item(const json_t *row, const char *column, size_t number)
{
    return json_array_get(json_object_get(row, column), number);
}

static frame_t symbolize_store_frame_at(const json_t *row, size_t i)
{
    return (frame_t){symbolize_store_item(row, "names", i),     symbolize_store_item(row, "files", i),
                     symbolize_store_item(row, "lines", i),     symbolize_store_item(row, "modules", i),
                     symbolize_store_item(row, "addresses", i), symbolize_store_item(row, "builds", i),
                     symbolize_store_item(row, "inlined", i)};
}

static int symbolize_store_append(json_t *row, const char *name, const char *file, uint32_t line, const frame_t *old,
                                  bool is_inlined)
{
    int result = json_array_append_new(json_object_get(row, "names"), json_string(name));
    result |= json_array_append_new(json_object_get(row, "files"), json_string(file));
    result |= json_array_append_new(json_object_get(row, "lines"), json_integer(line));
    result |= json_array_append(json_object_get(row, "modules"), old->module);
    result |= json_array_append_new(json_object_get(row, "addresses"), json_integer(0));
    result |= json_array_append_new(json_object_get(row, "builds"), json_string(""));
    return result | json_array_append_new(json_object_get(row, "inlined"), json_integer(is_inlined));
}

static int symbolize_store_append_old(json_t *row, const frame_t *old)
{
    int result = json_array_append(json_object_get(row, "names"), old->name);
    result |= json_array_append(json_object_get(row, "files"), old->file);
    result |= json_array_append(json_object_get(row, "lines"), old->line);
    result |= json_array_append(json_object_get(row, "modules"), old->module);
    result |= json_array_append(json_object_get(row, "addresses"), old->address);
    result |= json_array_append(json_object_get(row, "builds"), old->build);
    return result | json_array_append(json_object_get(row, "inlined"), old->inlined);
}

// The symbol of a frame's address; NULL: unknown, or the frame has a name.
static const gp_symbol_t *symbolize_store_symbol_of(store_t *store, const frame_t *frame)
{
    const char *build = json_string_value(frame->build), *module = json_string_value(frame->module);
    const char *address = json_string_value(frame->address); // 64-bit numbers are texts
    uint8_t build_id[GP_BUILD_ID_MAX];
    size_t len = build != NULL ? strlen(build) / 2 : 0;
    if (len == 0 || len > sizeof(build_id) || module == NULL || gp_hex_read(build, build_id, len) == NULL)
        return NULL;
    uint32_t number = gp_symbolizer_module(store->symbolizer, module, strlen(module), build_id, len);
    if (number == GP_SYMBOLIZER_NO_MODULE)
        return NULL;
    const gp_symbol_t *symbol = gp_symbolizer_resolve(store->symbolizer, number,
                                                      address != NULL ? strtoull(address, NULL, 10)
                                                                      : (uint64_t)json_integer_value(frame->address));
    if (symbol == NULL)
        return NULL;
    const gp_report_frame_t found = {.function = symbol->function, .module = module};
    return gp_missing_symbols_frame(&found) ? NULL : symbol;
}

// Append a symbol, behind the functions it is inlined into.
static int symbolize_store_append_symbol(json_t *row, const gp_symbol_t *symbol, const frame_t *old)
{
    const gp_symbol_t *chain[CHAIN_MAX];
    size_t count = 0;
    int result = 0;
    for (; symbol != NULL && count < CHAIN_MAX; symbol = symbol->outer)
        chain[count++] = symbol;
    for (size_t i = count; i > 0; i--) {
        const gp_symbol_t *one = chain[i - 1];
        result |= symbolize_store_append(row, one->function, strcmp(one->file, one->module) != 0 ? one->file : "",
                                         one->line, old, i < count);
    }
    return result;
}

// A row like `old` with names where there are some; NULL: there are none, or memory is short.
static json_t *symbolize_store_named_row(store_t *store, json_t *old)
{
    static const char *const arrays[] = {"names", "files", "lines", "modules", "addresses", "builds", "inlined"};
    json_t *row = json_object();
    size_t count = json_array_size(json_object_get(old, "names")), named = 0;
    int result = row == NULL;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]) && result == 0; i++)
        result = json_object_set_new(row, arrays[i], json_array());
    if (result == 0)
        result = json_object_set(row, "tenant", json_object_get(old, "tenant")) |
                 json_object_set(row, "stack", json_object_get(old, "stack"));
    for (size_t i = 0; i < count && result == 0; i++) {
        const frame_t frame = symbolize_store_frame_at(old, i);
        const gp_symbol_t *symbol = symbolize_store_symbol_of(store, &frame);
        named += symbol != NULL;
        result = symbol != NULL ? symbolize_store_append_symbol(row, symbol, &frame)
                                : symbolize_store_append_old(row, &frame);
    }
    if (result == 0 && named > 0)
        return row;
    json_decref(row);
    return NULL;
}

// A stack as JSON.
static int symbolize_store_name_stack(store_t *store, const char *line)
{
    json_t *old = json_loads(line, 0, NULL), *row = old != NULL ? symbolize_store_named_row(store, old) : NULL;
    char *text = row != NULL ? json_dumps(row, JSON_COMPACT) : NULL;
    store->stacks++;
    if (text != NULL) {
        store->named++;
        if (store->rows.len == 0)
            gp_text_add(&store->rows, insert_head, strlen(insert_head));
        gp_text_add(&store->rows, text, strlen(text));
        gp_text_add(&store->rows, "\n", 1);
    }
    free(text);
    json_decref(row);
    json_decref(old);
    return store->rows.failed ? -ENOMEM : store->rows.len > INSERT_BYTES ? symbolize_store_put_in(store) : 0;
}

static int symbolize_store_open_store(store_t *store, const gp_fleet_url_t *url)
{
    const char *tenant = gp_fleet_url_option(url, "tenant"), *end = store->where + sizeof(store->where);
    const char *unknown = gp_fleet_url_unknown(url, gp_clickhouse_option_names);
    char *at = store->where + snprintf(store->where, sizeof(store->where), "arrayExists(x -> x != '', builds)");
    if (unknown != NULL) {
        snprintf(store->error, sizeof(store->error), "%.200s: unknown option", unknown);
        return -EINVAL;
    }
    if (tenant != NULL) {
        at += snprintf(at, (size_t)(end - at), " AND tenant = ");
        if (gp_clickhouse_quote(at, end, tenant) == NULL)
            return -EINVAL;
    }
    store->symbolizer = gp_symbolizer_create();
    return store->symbolizer != NULL ? gp_clickhouse_open(&store->clickhouse, url, store->error) : -ENOMEM;
}

static int symbolize_store_name_all(store_t *store)
{
    int result = 0;
    if (store->debuginfod != NULL)
        result = symbolize_store_ask(
            store,
            "SELECT DISTINCT build FROM greenprof_stacks ARRAY JOIN builds AS build WHERE %s AND build != '' "
            "FORMAT TabSeparatedRaw",
            symbolize_store_fetch);
    if (result == 0)
        result =
            symbolize_store_ask(store, "SELECT DISTINCT " COLUMNS " FROM greenprof_stacks WHERE %s FORMAT JSONEachRow",
                                symbolize_store_name_stack);
    return result == 0 ? symbolize_store_put_in(store) : result;
}

static void symbolize_store_close_store(store_t *store)
{
    gp_clickhouse_close(store->clickhouse);
    gp_symbolizer_destroy(store->symbolizer);
    gp_debuginfod_close(store->debuginfod);
    gp_text_free(&store->rows);
}

static int symbolize_store_tell(const store_t *store, const char *shown)
{
    printf("%zu stacks without some names, %zu of them have more now", store->stacks, store->named);
    if (store->debuginfod != NULL)
        printf("; %zu debug files fetched, %zu on no server", store->fetched, store->absent);
    putchar('\n');
    int status = gp_finish_stdout();
    if (store->failed < 0)
        return gp_fail(shown, "debuginfod cannot be asked at %s: %s", getenv("DEBUGINFOD_URLS"),
                       strerror(-store->failed));
    return status;
}

int gp_symbolize_no_servers(int error)
{
    if (error == ENOTSUP)
        return gp_fail("--debuginfod", "this greenprof was built without libdebuginfod");
    if (error == EDESTADDRREQ)
        return gp_fail("--debuginfod", "DEBUGINFOD_URLS is not set: name a server");
    if (error == ELIBACC)
        return gp_fail("--debuginfod", "there is no libdebuginfod.so.1 on this machine");
    return gp_fail("--debuginfod", "%s", strerror(error));
}

int gp_symbolize_store(const char *text, const char *servers)
{
    store_t store = {0};
    gp_fleet_url_t url;
    int status, result = gp_fleet_url_parse(&url, text, store.error);
    if (servers != NULL)
        store.debuginfod = gp_debuginfod_open(strcmp(servers, "env") == 0 ? NULL : servers);
    if (servers != NULL && store.debuginfod == NULL) {
        status = gp_symbolize_no_servers(errno);
    } else {
        if (result == 0)
            result = symbolize_store_open_store(&store, &url);
        if (result == 0)
            result = symbolize_store_name_all(&store);
        const char *shown = url.shown != NULL ? url.shown : text;
        status = result == 0 ? symbolize_store_tell(&store, shown)
                             : gp_fail(shown, "%s", store.error[0] != '\0' ? store.error : strerror(-result));
    }
    symbolize_store_close_store(&store);
    gp_fleet_url_free(&url);
    return status;
}
