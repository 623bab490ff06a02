#include "symbol/symbolizer.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "symbol/elf_module.h"
#include "symbol/index.h"
#include "symbol/perf_map.h"

enum { NAME_SIZE = 512, PERF_MAPS_MAX = 2 };

// Modules' numbers are far below: says that a key is a text's address.
#define TEXT_KEY 0x80000000u

typedef struct resolved {
    uint64_t address;
    uint32_t module;
    const gp_symbol_t *symbol;
} resolved_t;

typedef struct function { // texts are made once a function, not once an address
    uint64_t start;
    uint32_t module;
    const char *name;
} function_t;

struct gp_symbolizer {
    pthread_mutex_t lock;
    gp_arena_t arena;
    gp_elf_module_t *modules;
    size_t module_count, module_capacity;
    resolved_t *resolved;
    size_t resolved_count, resolved_capacity;
    gp_index_t resolved_index;
    function_t *functions;
    size_t function_count, function_capacity;
    gp_index_t function_index;
    gp_perf_map_t perf_maps[PERF_MAPS_MAX];
    size_t perf_map_count;
    bool perf_maps_stale; // to be looked at before the next use
};

gp_symbolizer_t *gp_symbolizer_create(void)
{
    gp_symbolizer_t *symbolizer = calloc(1, sizeof(*symbolizer));

    if (symbolizer != NULL)
        pthread_mutex_init(&symbolizer->lock, NULL);
    return symbolizer;
}

static uint32_t module_find(const gp_symbolizer_t *symbolizer, const char *path, size_t path_len,
                            const uint8_t *build_id, size_t build_id_len)
{
    for (size_t i = 0; i < symbolizer->module_count; i++) {
        const gp_elf_module_t *module = &symbolizer->modules[i];
        if (module->build_id_len == build_id_len &&
            memcmp(module->build_id, build_id, build_id_len) == 0 &&
            strlen(module->path) == path_len && memcmp(module->path, path, path_len) == 0)
            return (uint32_t)i;
    }
    return GP_SYMBOLIZER_NO_MODULE;
}

static uint32_t module_add(gp_symbolizer_t *symbolizer, const char *path, size_t path_len,
                           const uint8_t *build_id, size_t build_id_len)
{
    char *copy = gp_arena_text(&symbolizer->arena, path, path_len);

    if (copy == NULL || gp_grow(&symbolizer->modules, &symbolizer->module_capacity,
                                symbolizer->module_count, sizeof(*symbolizer->modules)) < 0)
        return GP_SYMBOLIZER_NO_MODULE;
    gp_elf_module_t *module = &symbolizer->modules[symbolizer->module_count];
    char *slash = strrchr(copy, '/');
    *module = (gp_elf_module_t){
        .path = copy,
        .basename = slash ? slash + 1 : copy,
        .build_id_len = build_id_len,
    };
    memcpy(module->build_id, build_id, build_id_len);
    return (uint32_t)symbolizer->module_count++;
}

uint32_t gp_symbolizer_module(gp_symbolizer_t *symbolizer, const char *path, size_t path_len,
                              const uint8_t *build_id, size_t build_id_len)
{
    if (build_id_len > GP_BUILD_ID_MAX)
        build_id_len = GP_BUILD_ID_MAX;
    pthread_mutex_lock(&symbolizer->lock);
    uint32_t module = module_find(symbolizer, path, path_len, build_id, build_id_len);
    if (module == GP_SYMBOLIZER_NO_MODULE)
        module = module_add(symbolizer, path, path_len, build_id, build_id_len);
    pthread_mutex_unlock(&symbolizer->lock);
    return module;
}

typedef struct place { // key of both indexes: a module and an address in it
    uint32_t module;
    uint64_t address;
} place_t;

static uint64_t place_hash(place_t place)
{
    return gp_hash_more(gp_hash_u64(place.address), place.module);
}

static bool same_resolved(const void *owner, uint32_t number, const void *key)
{
    const resolved_t *item = &((const gp_symbolizer_t *)owner)->resolved[number];
    const place_t *place = key;

    return item->address == place->address && item->module == place->module;
}

static bool same_function(const void *owner, uint32_t number, const void *key)
{
    const function_t *item = &((const gp_symbolizer_t *)owner)->functions[number];
    const place_t *place = key;

    return item->start == place->address && item->module == place->module;
}

// The name of the function that starts at place.address: made once.
static const char *function_name(gp_symbolizer_t *symbolizer, place_t place, const char *name)
{
    uint64_t hash = place_hash(place);
    uint32_t number =
        gp_index_find(&symbolizer->function_index, hash, same_function, symbolizer, &place);

    if (number != GP_INDEX_NONE)
        return symbolizer->functions[number].name;
    const char *made = gp_demangle(&symbolizer->arena, name);
    if (made == NULL ||
        gp_grow(&symbolizer->functions, &symbolizer->function_capacity, symbolizer->function_count,
                sizeof(*symbolizer->functions)) < 0 ||
        gp_index_add(&symbolizer->function_index, hash, (uint32_t)symbolizer->function_count) < 0)
        return made;
    symbolizer->functions[symbolizer->function_count++] =
        (function_t){place.address, place.module, made};
    return made;
}

static const char *no_name(gp_symbolizer_t *symbolizer, const char *module, uint64_t address)
{
    char text[NAME_SIZE];
    int len = module != NULL ? snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, module, address)
                             : snprintf(text, sizeof(text), "0x%" PRIx64, address);

    return gp_arena_text(&symbolizer->arena, text, (size_t)len);
}

// Is it the same file? Names from one compilation are the same pointer. Those from another
// (link-time optimization, which runs elsewhere) may have what the build cut off with
// -ffile-prefix-map.
static bool same_file(const char *a, const char *b)
{
    size_t a_len, b_len;

    if (a == b || a == NULL || b == NULL)
        return a == b;
    a_len = strlen(a);
    b_len = strlen(b);
    if (b[0] == '/' || b_len >= a_len)
        return false;
    return a[a_len - b_len - 1] == '/' && memcmp(a + a_len - b_len, b, b_len) == 0;
}

// A function is identified by where it is defined. Code of another file in it (from a macro or an
// #include) keeps the function but not a line number, which would be read as one of the wrong file.
static void fill_place(gp_symbol_t *symbol, const gp_dwarf_place_t *place)
{
    const char *file = place->first_file ? place->first_file : place->file;

    if (file == NULL)
        return;
    symbol->file = file;
    symbol->first_line = place->first_line;
    if (same_file(place->file, file))
        symbol->line = place->line;
}

// A name that is no symbol's, but DWARF's: its text is its identity.
static const char *text_name(gp_symbolizer_t *symbolizer, uint32_t module,
                             const gp_dwarf_place_t *known)
{
    if (known->name == NULL)
        return "[inlined]";
    if (*known->shown == NULL)
        *known->shown = function_name(
            symbolizer, (place_t){module | TEXT_KEY, (uintptr_t)known->name}, known->name);
    return *known->shown;
}

// The function that has the code: its symbol's name, which is the one that others call it by; else
// the one that DWARF knows; else "module+0x1234".
static const char *outermost_name(gp_symbolizer_t *symbolizer, const gp_elf_module_t *module,
                                  place_t place, const gp_dwarf_place_t *known)
{
    gp_range_t *range = gp_symbol_table_find(&module->symbols, place.address);

    if (range != NULL && range->shown == NULL)
        range->shown =
            function_name(symbolizer, (place_t){place.module, range->start}, range->name);
    if (range != NULL)
        return range->shown;
    if (known != NULL && known->name != NULL)
        return text_name(symbolizer, place.module, known);
    // A function without a symbol is one function all the same, if .eh_frame knows it: named by its
    // start.
    const gp_eh_function_t *function = gp_eh_functions_find(&module->functions, place.address);
    return no_name(symbolizer, module->basename, function ? function->lo : place.address);
}

// One symbol for each place, the innermost first, each leading to the next.
static gp_symbol_t *make_chain(gp_symbolizer_t *symbolizer, const gp_elf_module_t *module,
                               place_t place, const gp_dwarf_place_t *known, size_t count)
{
    size_t total = count > 0 ? count : 1;
    gp_symbol_t *chain = gp_arena_alloc(&symbolizer->arena, total * sizeof(*chain));

    for (size_t i = 0; chain != NULL && i < total; i++) {
        gp_symbol_t *symbol = &chain[i];
        bool outermost = i + 1 == total;
        symbol->file = symbol->module = module->path;
        symbol->outer = outermost ? NULL : symbol + 1;
        if (count > 0)
            fill_place(symbol, &known[i]);
        if (outermost)
            symbol->function =
                outermost_name(symbolizer, module, place, count > 0 ? &known[i] : NULL);
        else
            symbol->function = text_name(symbolizer, place.module, &known[i]);
        if (symbol->function == NULL)
            return NULL;
    }
    return chain;
}

static gp_symbol_t *unknown_symbol(gp_symbolizer_t *symbolizer, uint64_t address)
{
    gp_symbol_t *symbol = gp_arena_alloc(&symbolizer->arena, sizeof(*symbol));

    if (symbol == NULL)
        return NULL;
    symbol->file = symbol->module = "[unknown]";
    symbol->function = no_name(symbolizer, NULL, address);
    return symbol->function ? symbol : NULL;
}

static gp_symbol_t *make_symbol(gp_symbolizer_t *symbolizer, place_t place)
{
    gp_dwarf_place_t known[GP_DWARF_PLACES_MAX];

    if (place.module >= symbolizer->module_count)
        return unknown_symbol(symbolizer, place.address);
    gp_elf_module_t *module = &symbolizer->modules[place.module];
    if (!module->loaded)
        gp_elf_module_load(module);
    size_t count = module->dwarf ? gp_dwarf_find(module->dwarf, place.address, known) : 0;
    return make_chain(symbolizer, module, place, known, count);
}

static const gp_symbol_t *piece_symbol(gp_symbolizer_t *symbolizer, gp_perf_piece_t *piece)
{
    if (piece->symbol != NULL)
        return piece->symbol;
    gp_symbol_t *symbol = gp_arena_alloc(&symbolizer->arena, sizeof(*symbol));
    if (symbol == NULL)
        return NULL;
    symbol->file = symbol->module = "[jit]";
    symbol->function = gp_arena_text(&symbolizer->arena, piece->name, strlen(piece->name));
    piece->symbol = symbol->function ? symbol : NULL;
    return piece->symbol;
}

// What a just-in-time compiler says of an address; NULL when it says nothing.
static const gp_symbol_t *resolve_compiled(gp_symbolizer_t *symbolizer, uint64_t address)
{
    const gp_symbol_t *symbol = NULL;

    for (size_t i = 0; i < symbolizer->perf_map_count && symbolizer->perf_maps_stale; i++)
        gp_perf_map_update(&symbolizer->perf_maps[i]);
    symbolizer->perf_maps_stale = false;
    for (size_t i = 0; i < symbolizer->perf_map_count && symbol == NULL; i++) {
        gp_perf_piece_t *piece = gp_perf_map_find(&symbolizer->perf_maps[i], address);
        if (piece != NULL)
            symbol = piece_symbol(symbolizer, piece);
    }
    return symbol;
}

static const gp_symbol_t *resolve_locked(gp_symbolizer_t *symbolizer, place_t place)
{
    const gp_symbol_t *compiled = place.module < symbolizer->module_count
                                      ? NULL
                                      : resolve_compiled(symbolizer, place.address);
    if (compiled != NULL)
        return compiled;
    uint64_t hash = place_hash(place);
    uint32_t number =
        gp_index_find(&symbolizer->resolved_index, hash, same_resolved, symbolizer, &place);

    if (number != GP_INDEX_NONE)
        return symbolizer->resolved[number].symbol;
    const gp_symbol_t *symbol = make_symbol(symbolizer, place);
    if (symbol == NULL ||
        gp_grow(&symbolizer->resolved, &symbolizer->resolved_capacity, symbolizer->resolved_count,
                sizeof(*symbolizer->resolved)) < 0 ||
        gp_index_add(&symbolizer->resolved_index, hash, (uint32_t)symbolizer->resolved_count) < 0)
        return symbol;
    symbolizer->resolved[symbolizer->resolved_count++] =
        (resolved_t){place.address, place.module, symbol};
    return symbol;
}

const gp_symbol_t *gp_symbolizer_resolve(gp_symbolizer_t *symbolizer, uint32_t module,
                                         uint64_t address)
{
    pthread_mutex_lock(&symbolizer->lock);
    const gp_symbol_t *symbol = resolve_locked(symbolizer, (place_t){module, address});
    pthread_mutex_unlock(&symbolizer->lock);
    return symbol;
}

void gp_symbolizer_perf_map(gp_symbolizer_t *symbolizer, const char *path, uint64_t from_ns,
                            uint64_t to_ns)
{
    size_t i = 0;

    pthread_mutex_lock(&symbolizer->lock);
    symbolizer->perf_maps_stale = true;
    while (i < symbolizer->perf_map_count && strcmp(symbolizer->perf_maps[i].path, path) != 0)
        i++;
    if (i == symbolizer->perf_map_count && i < PERF_MAPS_MAX) {
        symbolizer->perf_maps[i].path = gp_arena_text(&symbolizer->arena, path, strlen(path));
        symbolizer->perf_maps[i].from_ns = from_ns;
        symbolizer->perf_maps[i].to_ns = to_ns;
        symbolizer->perf_map_count += symbolizer->perf_maps[i].path != NULL;
    }
    pthread_mutex_unlock(&symbolizer->lock);
}

void gp_symbolizer_refresh(gp_symbolizer_t *symbolizer)
{
    pthread_mutex_lock(&symbolizer->lock);
    symbolizer->perf_maps_stale = true;
    pthread_mutex_unlock(&symbolizer->lock);
}

const char *gp_symbolizer_changed(gp_symbolizer_t *symbolizer, uint32_t *next)
{
    const char *path = NULL;

    pthread_mutex_lock(&symbolizer->lock);
    for (; *next < symbolizer->module_count && path == NULL; ++*next)
        if (symbolizer->modules[*next].changed)
            path = symbolizer->modules[*next].path;
    pthread_mutex_unlock(&symbolizer->lock);
    return path;
}

void gp_symbolizer_destroy(gp_symbolizer_t *symbolizer)
{
    if (symbolizer == NULL)
        return;
    for (size_t i = 0; i < symbolizer->module_count; i++)
        gp_elf_module_free(&symbolizer->modules[i]);
    free(symbolizer->modules);
    free(symbolizer->resolved);
    free(symbolizer->functions);
    for (size_t i = 0; i < symbolizer->perf_map_count; i++)
        gp_perf_map_clear(&symbolizer->perf_maps[i]);
    gp_index_free(&symbolizer->resolved_index);
    gp_index_free(&symbolizer->function_index);
    gp_arena_free(&symbolizer->arena);
    pthread_mutex_destroy(&symbolizer->lock);
    free(symbolizer);
}
