// SPDX-License-Identifier: MIT
#include "symbol/symbolizer.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "symbol/demangle.h"
#include "symbol/elf_module.h"
#include "symbol/perf_map.h"
#include "symbol/symfs.h"

enum { NAME_SIZE = 512, PERF_MAPS_MAX = 2 + GP_SYMFS_MAX, ANSWERS_IN_BLOCK = 256 };

// Modules' numbers are far below: says that a key is a text's address.
#define TEXT_KEY 0x80000000u

typedef struct answer { // with its question
    uint64_t address;
    uint32_t module;
    gp_symbol_t symbol; // the innermost one
} answer_t;

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
    gp_index_t module_index;
    answer_t **answers; // blocks of them, in the arena
    size_t answer_count, answer_capacity;
    gp_index_t answer_index;
    function_t *functions;
    size_t function_count, function_capacity;
    gp_index_t function_index;
    gp_perf_map_t perf_maps[PERF_MAPS_MAX];
    size_t perf_map_count;
    bool perf_maps_stale; // to be looked at before the next use
    bool helpers_asked_for;
    gp_helpers_t *helpers; // NULL = none
};

gp_symbolizer_t *gp_symbolizer_create(void)
{
    gp_symbolizer_t *symbolizer = calloc(1, sizeof(*symbolizer));
    if (symbolizer != NULL)
        pthread_mutex_init(&symbolizer->lock, NULL);
    return symbolizer;
}

typedef struct module_key {
    const char *path;
    size_t path_len;
    uint8_t build_id[GP_BUILD_ID_MAX]; // zeroed behind its end
    size_t build_id_len;
} module_key_t;

static bool symbolizer_same_module(const void *owner, uint32_t number, const void *key)
{
    const gp_elf_module_t *module = &((const gp_symbolizer_t *)owner)->modules[number];
    const module_key_t *wanted = key;
    return module->build_id_len == wanted->build_id_len &&
           memcmp(module->build_id, wanted->build_id, sizeof(wanted->build_id)) == 0 &&
           strlen(module->path) == wanted->path_len && memcmp(module->path, wanted->path, wanted->path_len) == 0;
}

static uint32_t symbolizer_module_add(gp_symbolizer_t *symbolizer, const module_key_t *key, uint64_t hash)
{
    char *copy = gp_arena_text(&symbolizer->arena, key->path, key->path_len);
    if (copy == NULL ||
        gp_grow(&symbolizer->modules, &symbolizer->module_capacity, symbolizer->module_count,
                sizeof(*symbolizer->modules)) < 0 ||
        gp_index_add(&symbolizer->module_index, hash, (uint32_t)symbolizer->module_count) < 0)
        return GP_SYMBOLIZER_NO_MODULE;
    gp_elf_module_t *module = &symbolizer->modules[symbolizer->module_count];
    char *slash = strrchr(copy, '/');
    *module = (gp_elf_module_t){
        .path = copy,
        .basename = slash ? slash + 1 : copy,
        .build_id_len = key->build_id_len,
    };
    memcpy(module->build_id, key->build_id, sizeof(key->build_id));
    return (uint32_t)symbolizer->module_count++;
}

uint32_t gp_symbolizer_module(gp_symbolizer_t *symbolizer, const char *path, size_t path_len, const uint8_t *build_id,
                              size_t build_id_len)
{
    module_key_t key = {path, path_len, {0}, build_id_len < GP_BUILD_ID_MAX ? build_id_len : GP_BUILD_ID_MAX};
    if (build_id != NULL)
        memcpy(key.build_id, build_id, build_id_len > 0 ? key.build_id_len : sizeof(key.build_id));
    uint64_t hash = gp_hash_more(gp_hash_bytes(path, path_len), gp_hash_bytes(key.build_id, sizeof(key.build_id)));
    pthread_mutex_lock(&symbolizer->lock);
    uint32_t module = gp_index_find(&symbolizer->module_index, hash, symbolizer_same_module, symbolizer, &key);
    if (module == GP_INDEX_NONE)
        module = symbolizer_module_add(symbolizer, &key, hash);
    pthread_mutex_unlock(&symbolizer->lock);
    return module;
}

void gp_symbolizer_prepare(gp_symbolizer_t *symbolizer, uint32_t module)
{
    gp_elf_module_t prepared = {.loaded = true};
    pthread_mutex_lock(&symbolizer->lock);
    if (module < symbolizer->module_count)
        prepared = symbolizer->modules[module]; // its path lives as long as the symbolizer
    pthread_mutex_unlock(&symbolizer->lock);
    if (prepared.loaded)
        return;
    prepared.most_bytes = GP_SYMBOLIZER_PREPARED_MAX;
    gp_elf_module_load(&prepared);
    pthread_mutex_lock(&symbolizer->lock);
    bool is_late = symbolizer->modules[module].loaded;
    prepared.most_bytes = 0;
    if (!is_late)
        symbolizer->modules[module] = prepared;
    pthread_mutex_unlock(&symbolizer->lock);
    if (is_late)
        gp_elf_module_free(&prepared);
}

bool gp_symbolizer_is_prepared(gp_symbolizer_t *symbolizer, uint32_t module)
{
    pthread_mutex_lock(&symbolizer->lock);
    bool is_prepared = module < symbolizer->module_count && symbolizer->modules[module].loaded;
    pthread_mutex_unlock(&symbolizer->lock);
    return is_prepared;
}

typedef struct place { // key of both indexes: a module and an address in it
    uint32_t module;
    uint64_t address;
} place_t;

// Places near one another lie near one another in the index: 64 bytes of code begin at the same cache line of it.
// Callers with many addresses go through them in order, or come back to the same ones.
static uint64_t symbolizer_place_hash(place_t place)
{
    uint64_t line = gp_hash_more(gp_hash_u64(place.address >> 6), place.module);
    uint64_t within = place.address & 63; // tells apart the places of a line
    return (line & 0x03fffff800000000ull) | within << 58;
}

static answer_t *symbolizer_answer_at(const gp_symbolizer_t *symbolizer, size_t number)
{
    return &symbolizer->answers[number / ANSWERS_IN_BLOCK][number % ANSWERS_IN_BLOCK];
}

static bool symbolizer_same_answer(const void *owner, uint32_t number, const void *key)
{
    const answer_t *item = symbolizer_answer_at(owner, number);
    const place_t *place = key;
    return item->address == place->address && item->module == place->module;
}

static bool symbolizer_same_function(const void *owner, uint32_t number, const void *key)
{
    const function_t *item = &((const gp_symbolizer_t *)owner)->functions[number];
    const place_t *place = key;
    return item->start == place->address && item->module == place->module;
}

// The name of the function that starts at place.address: made once.
//   made: ahead; NULL = it was not.
static const char *symbolizer_function_name(gp_symbolizer_t *symbolizer, place_t place, const char *name,
                                            const char *made)
{
    uint64_t hash = symbolizer_place_hash(place);
    uint32_t number = gp_index_find(&symbolizer->function_index, hash, symbolizer_same_function, symbolizer, &place);
    if (number != GP_INDEX_NONE)
        return symbolizer->functions[number].name;
    if (made == NULL)
        made = gp_demangle(&symbolizer->arena, name);
    if (made == NULL ||
        gp_grow(&symbolizer->functions, &symbolizer->function_capacity, symbolizer->function_count,
                sizeof(*symbolizer->functions)) < 0 ||
        gp_index_add(&symbolizer->function_index, hash, (uint32_t)symbolizer->function_count) < 0)
        return made;
    symbolizer->functions[symbolizer->function_count++] = (function_t){place.address, place.module, made};
    return made;
}

static const char *symbolizer_no_name(gp_symbolizer_t *symbolizer, const char *module, uint64_t address)
{
    char text[NAME_SIZE];
    int len = module != NULL ? snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, module, address)
                             : snprintf(text, sizeof(text), "0x%" PRIx64, address);
    return gp_arena_text(&symbolizer->arena, text, (size_t)len);
}

// Is it the same file? Names from one compilation are the same pointer. Names from another (link-time optimization,
// which runs elsewhere) may have a prefix that the build cut off with -ffile-prefix-map.
static bool symbolizer_same_file(const char *a, const char *b)
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
static void symbolizer_fill_place(gp_symbol_t *symbol, const gp_dwarf_place_t *place)
{
    const char *file = place->first_file ? place->first_file : place->file;
    if (file == NULL)
        return;
    symbol->file = file;
    symbol->first_line = place->first_line;
    if (symbolizer_same_file(place->file, file))
        symbol->line = place->line;
}

// A name that is no symbol's, but DWARF's: its text is its identity.
static const char *symbolizer_text_name(gp_symbolizer_t *symbolizer, uint32_t module, const gp_dwarf_place_t *known)
{
    if (known->name == NULL)
        return "[inlined]";
    if (*known->shown == NULL)
        *known->shown = symbolizer_function_name(symbolizer, (place_t){module | TEXT_KEY, (uintptr_t)known->name},
                                                 known->name, NULL);
    return *known->shown;
}

// The name of the function that has the code: its symbol's, by which others call it; else DWARF's; else
// "module+0x1234".
static const char *symbolizer_outermost_name(gp_symbolizer_t *symbolizer, gp_elf_module_t *module, place_t place,
                                             gp_range_t *range, const gp_dwarf_place_t *known)
{
    if (range != NULL && range->shown == NULL) {
        gp_symbol_names_settle(module->names, range);
        range->shown =
            symbolizer_function_name(symbolizer, (place_t){place.module, range->start}, range->name, range->made);
        if (range->twin != NULL && module->folded++ == 0)
            module->folded_one = range;
    }
    if (range != NULL)
        return range->shown;
    if (known != NULL && known->name != NULL)
        return symbolizer_text_name(symbolizer, place.module, known);
    // A function without a symbol is one function all the same, if .eh_frame knows it: named by its start.
    const gp_eh_function_t *function = gp_eh_functions_find(&module->functions, place.address);
    return symbolizer_no_name(symbolizer, module->basename, function ? function->lo : place.address);
}

typedef struct question { // for symbolizer_make_outer() and symbolizer_make_chain()
    gp_symbolizer_t *symbolizer;
    gp_elf_module_t *module;
    place_t place;
    gp_range_t *range; // of the symbol that covers it; NULL = none
    gp_dwarf_place_t known[GP_DWARF_PLACES_MAX];
    size_t count; // of those
} question_t;

// Fill in what is known of one place.
static bool symbolizer_fill_symbol(const question_t *question, size_t number, gp_symbol_t *symbol)
{
    const gp_dwarf_place_t *known = number < question->count ? &question->known[number] : NULL;
    symbol->file = symbol->module = question->module->path;
    if (known != NULL)
        symbolizer_fill_place(symbol, known);
    if (known != NULL && number + 1 < question->count)
        symbol->function = symbolizer_text_name(question->symbolizer, question->place.module, known);
    else
        symbol->function =
            symbolizer_outermost_name(question->symbolizer, question->module, question->place, question->range, known);
    return symbol->function != NULL;
}

// The functions around an inlined one: the same for all of its addresses within one symbol, so made once. Places before
// `number` are inside. Returns NULL when memory is short.
static const gp_symbol_t *symbolizer_make_outer(const question_t *question, size_t number)
{
    const gp_symbol_t *outer = NULL;
    size_t at = number;
    while (at < question->count && (question->range == NULL || question->known[at].memo->key != question->range))
        at++;
    if (at < question->count)
        outer = question->known[at].memo->value;
    while (at-- > number) {
        gp_symbol_t *symbol = gp_arena_alloc(&question->symbolizer->arena, sizeof(*symbol));
        if (symbol == NULL || !symbolizer_fill_symbol(question, at, symbol))
            return NULL;
        symbol->outer = outer;
        outer = symbol;
        *question->known[at].memo = (gp_dwarf_memo_t){question->range, symbol};
    }
    return outer;
}

// A function that has only lines is of the file of its first one, whatever is inlined further on.
static const char *symbolizer_first_file(const gp_elf_module_t *module, uint64_t address, const gp_range_t *range)
{
    const gp_eh_function_t *function = range == NULL ? gp_eh_functions_find(&module->functions, address) : NULL;
    uint64_t start = range != NULL      ? gp_symbol_table_entry(&module->symbols, range)
                     : function != NULL ? function->lo
                                        : address;
    gp_dwarf_place_t places[GP_DWARF_PLACES_MAX];
    return gp_dwarf_find(module->dwarf, start, places) > 0 ? places[0].file : NULL;
}

// Make a symbol for each place, the innermost first, each leading to the next.
static bool symbolizer_make_chain(gp_symbolizer_t *symbolizer, gp_elf_module_t *module, place_t place,
                                  gp_symbol_t *symbol)
{
    question_t question; // `known` is filled in as far as found
    question.symbolizer = symbolizer;
    question.module = module;
    question.place = place;
    question.range = gp_symbol_table_find(&module->symbols, place.address);
    question.count = module->dwarf ? gp_dwarf_find(module->dwarf, place.address, question.known) : 0;
    if (question.count == 1 && question.known[0].name == NULL && question.known[0].first_file == NULL)
        question.known[0].first_file = symbolizer_first_file(module, place.address, question.range);
    if (question.count > 1) {
        symbol->outer = symbolizer_make_outer(&question, 1);
        if (symbol->outer == NULL)
            return false;
    }
    return symbolizer_fill_symbol(&question, 0, symbol);
}

static bool symbolizer_make_unknown(gp_symbolizer_t *symbolizer, uint64_t address, gp_symbol_t *symbol)
{
    symbol->file = symbol->module = "[unknown]";
    symbol->function = symbolizer_no_name(symbolizer, NULL, address);
    return symbol->function != NULL;
}

// The helpers for work under the lock.
static gp_helpers_t *symbolizer_helpers_of(gp_symbolizer_t *symbolizer)
{
    if (!symbolizer->helpers_asked_for)
        symbolizer->helpers = gp_helpers_open();
    symbolizer->helpers_asked_for = true;
    return symbolizer->helpers;
}

static gp_elf_module_t *symbolizer_loaded_module(gp_symbolizer_t *symbolizer, uint32_t number)
{
    gp_elf_module_t *module = &symbolizer->modules[number];
    if (module->loaded)
        return module;
    module->helpers = symbolizer_helpers_of(symbolizer);
    gp_elf_module_load(module);
    return module;
}

static bool symbolizer_make_symbol(gp_symbolizer_t *symbolizer, place_t place, gp_symbol_t *symbol)
{
    if (place.module >= symbolizer->module_count)
        return symbolizer_make_unknown(symbolizer, place.address, symbol);
    return symbolizer_make_chain(symbolizer, symbolizer_loaded_module(symbolizer, place.module), place, symbol);
}

static const gp_symbol_t *symbolizer_piece_symbol(gp_symbolizer_t *symbolizer, gp_perf_piece_t *piece)
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

// The symbol of an address by a just-in-time compiler's map; NULL when none has it.
static const gp_symbol_t *symbolizer_resolve_compiled(gp_symbolizer_t *symbolizer, uint64_t address)
{
    const gp_symbol_t *symbol = NULL;
    for (size_t i = 0; i < symbolizer->perf_map_count && symbolizer->perf_maps_stale; i++)
        gp_perf_map_update(&symbolizer->perf_maps[i]);
    symbolizer->perf_maps_stale = false;
    for (size_t i = 0; i < symbolizer->perf_map_count && symbol == NULL; i++) {
        gp_perf_piece_t *piece = gp_perf_map_find(&symbolizer->perf_maps[i], address);
        if (piece != NULL)
            symbol = symbolizer_piece_symbol(symbolizer, piece);
    }
    return symbol;
}

// Returns room for one more answer, or NULL.
static answer_t *symbolizer_next_answer(gp_symbolizer_t *symbolizer)
{
    size_t block = symbolizer->answer_count / ANSWERS_IN_BLOCK;
    if (symbolizer->answer_count % ANSWERS_IN_BLOCK == 0) {
        answer_t *answers = gp_arena_alloc(&symbolizer->arena, ANSWERS_IN_BLOCK * sizeof(*answers));
        if (answers == NULL ||
            gp_grow(&symbolizer->answers, &symbolizer->answer_capacity, block, sizeof(*symbolizer->answers)) < 0)
            return NULL;
        symbolizer->answers[block] = answers;
    }
    return symbolizer_answer_at(symbolizer, symbolizer->answer_count);
}

static const gp_symbol_t *symbolizer_resolve_locked(gp_symbolizer_t *symbolizer, place_t place)
{
    const gp_symbol_t *compiled =
        place.module < symbolizer->module_count ? NULL : symbolizer_resolve_compiled(symbolizer, place.address);
    if (compiled != NULL)
        return compiled;
    uint64_t hash = symbolizer_place_hash(place);
    uint32_t number = gp_index_find(&symbolizer->answer_index, hash, symbolizer_same_answer, symbolizer, &place);

    if (number != GP_INDEX_NONE)
        return &symbolizer_answer_at(symbolizer, number)->symbol;
    answer_t *answer = symbolizer_next_answer(symbolizer);
    if (answer == NULL)
        return NULL;
    *answer = (answer_t){.address = place.address, .module = place.module};
    if (!symbolizer_make_symbol(symbolizer, place, &answer->symbol) ||
        gp_index_add(&symbolizer->answer_index, hash, (uint32_t)symbolizer->answer_count) < 0)
        return NULL;
    symbolizer->answer_count++;
    return &answer->symbol;
}

const gp_symbol_t *gp_symbolizer_resolve(gp_symbolizer_t *symbolizer, uint32_t module, uint64_t address)
{
    pthread_mutex_lock(&symbolizer->lock);
    const gp_symbol_t *symbol = symbolizer_resolve_locked(symbolizer, (place_t){module, address});
    pthread_mutex_unlock(&symbolizer->lock);
    return symbol;
}

void gp_symbolizer_resolve_all(gp_symbolizer_t *symbolizer, uint32_t module, const uint64_t *addresses, size_t count,
                               const gp_symbol_t **symbols)
{
    enum { AHEAD = 8 };
    pthread_mutex_lock(&symbolizer->lock);
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            gp_index_prefetch(&symbolizer->answer_index,
                              symbolizer_place_hash((place_t){module, addresses[i + AHEAD]}));
        symbols[i] = symbolizer_resolve_locked(symbolizer, (place_t){module, addresses[i]});
    }
    pthread_mutex_unlock(&symbolizer->lock);
}

void gp_symbolizer_begin(gp_symbolizer_t *symbolizer, uint32_t module)
{
    pthread_mutex_lock(&symbolizer->lock);
    if (module < symbolizer->module_count && symbolizer_helpers_of(symbolizer) != NULL) {
        symbolizer->modules[module].is_asked_much = true;
        gp_elf_module_begin(&symbolizer->modules[module], symbolizer->helpers);
    }
    pthread_mutex_unlock(&symbolizer->lock);
}

void gp_symbolizer_expect(gp_symbolizer_t *symbolizer, uint32_t module, const uint64_t *addresses, size_t count)
{
    pthread_mutex_lock(&symbolizer->lock);
    gp_index_reserve(&symbolizer->answer_index, symbolizer->answer_count + count); // else it grows
    if (module < symbolizer->module_count && symbolizer_helpers_of(symbolizer) != NULL) {
        gp_elf_module_expect(&symbolizer->modules[module], addresses, count);
        gp_elf_module_begin(&symbolizer->modules[module], symbolizer->helpers);
    }
    pthread_mutex_unlock(&symbolizer->lock);
}

void gp_symbolizer_perf_map(gp_symbolizer_t *symbolizer, const char *path, uint64_t from_ns, uint64_t to_ns)
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

static void symbolizer_look_at_nameless(gp_symbolizer_t *symbolizer, const gp_elf_module_t *module,
                                        gp_missing_symbols_t *nameless)
{
    char place[GP_DEBUG_PATH_SIZE] = "";
    *nameless = (gp_missing_symbols_t){.path = module->path};
    nameless->why = module->changed ? GP_NAMELESS_CHANGED : module->unsure ? GP_NAMELESS_UNSURE : module->error;
    if (nameless->why == 0 && module->dwarf != NULL)
        nameless->count = gp_dwarf_missing(module->dwarf, place);
    if (nameless->count > 0) {
        nameless->why = GP_NAMELESS_SPLIT;
        nameless->example = gp_arena_text(&symbolizer->arena, place, strlen(place));
    }
}

static void symbolizer_look_at_folded(gp_symbolizer_t *symbolizer, const gp_elf_module_t *module,
                                      gp_missing_symbols_t *nameless)
{
    if (module->folded == 0)
        return;
    *nameless = (gp_missing_symbols_t){.path = module->path, .why = GP_NAMELESS_FOLDED, .count = module->folded};
    nameless->example = module->folded_one->shown;
    nameless->other = gp_demangle(&symbolizer->arena, module->folded_one->twin);
}

bool gp_symbolizer_nameless(gp_symbolizer_t *symbolizer, uint32_t *next, gp_missing_symbols_t *nameless)
{
    nameless->why = 0;
    pthread_mutex_lock(&symbolizer->lock);
    for (; *next < 2 * symbolizer->module_count && nameless->why == 0; ++*next)
        if (*next % 2 == 0)
            symbolizer_look_at_nameless(symbolizer, &symbolizer->modules[*next / 2], nameless);
        else
            symbolizer_look_at_folded(symbolizer, &symbolizer->modules[*next / 2], nameless);
    pthread_mutex_unlock(&symbolizer->lock);
    return nameless->why != 0;
}

bool gp_symbolizer_is_crowded(gp_symbolizer_t *symbolizer)
{
    pthread_mutex_lock(&symbolizer->lock);
    size_t kept = symbolizer->arena.bytes + symbolizer->function_capacity * sizeof(*symbolizer->functions) +
                  symbolizer->answer_index.size * sizeof(*symbolizer->answer_index.slots) +
                  symbolizer->function_index.size * sizeof(*symbolizer->function_index.slots);
    bool crowded = kept > GP_SYMBOLIZER_KEPT_MAX || symbolizer->module_count > GP_SYMBOLIZER_MODULES_MAX;
    pthread_mutex_unlock(&symbolizer->lock);
    return crowded;
}

void gp_symbolizer_destroy(gp_symbolizer_t *symbolizer)
{
    if (symbolizer == NULL)
        return;
    for (size_t i = 0; i < symbolizer->module_count; i++)
        gp_elf_module_free(&symbolizer->modules[i]);
    gp_helpers_close(symbolizer->helpers);
    free(symbolizer->modules);
    free(symbolizer->answers);
    free(symbolizer->functions);
    for (size_t i = 0; i < symbolizer->perf_map_count; i++)
        gp_perf_map_clear(&symbolizer->perf_maps[i]);
    gp_index_free(&symbolizer->answer_index);
    gp_index_free(&symbolizer->module_index);
    gp_index_free(&symbolizer->function_index);
    gp_arena_free(&symbolizer->arena);
    pthread_mutex_destroy(&symbolizer->lock);
    free(symbolizer);
}
