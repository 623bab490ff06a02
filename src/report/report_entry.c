// SPDX-License-Identifier: MIT
#include "report/report_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/report_names.h"

enum { LONG_NAME = 100 };

static const char *const runtimes[] = {
    "boost::asio::", "boost::context::", "boost::coroutines::", "boost::coroutines2::", "boost::fibers::",
    "folly::",   // on Boost.Context
    "libboost_", // code without symbols
    "std::",
};

// Where no function of the program's own is: the runtimes' libraries, and those of C and C++ that they wait in.
static const char *const libraries[] = {
    "libboost_", "libfolly", "libc.so", "libpthread.so", "ld-linux", "libstdc++.so", "libgcc_s.so", "libc++",
};

// Functions of coroutines that the runtime itself runs: its dispatcher.
static const char *const dispatchers[] = {"boost::fibers::", "boost::asio::", "folly::"};

// A character's step in the depth of template arguments. `at` is not the first character of its name.
static int report_entry_template_step(const char *at)
{
    return (*at == '<') - (*at == '>' && at[-1] != '-');
}

// The text behind "decltype (...)", whose parentheses hold no parameters.
static const char *report_entry_after_decltype(const char *function)
{
    int depth = 0;
    const char *at = function + strcspn(function, "(");
    for (; *at != '\0'; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0)
            return at + 1;
    }
    return function;
}

// Without its result: what stands after the last space outside of all brackets, before its parameters.
static const char *report_entry_qualified_name(const char *function)
{
    int depth = 0;
    const char *start = strncmp(function, "decltype", 8) == 0 ? report_entry_after_decltype(function) : function;
    for (const char *at = start; *at != '\0' && !(depth == 0 && *at == '('); at++) {
        if (*at == ' ' && depth == 0)
            start = at + 1;
        depth += report_entry_template_step(at) + (*at == '{') - (*at == '}');
    }
    return start;
}

static bool report_entry_begins_with(const char *text, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

#define BEGINS_WITH(text, list) report_entry_begins_with(text, list, sizeof(list) / sizeof(*(list)))

bool gp_report_is_runtimes(const char *function)
{
    return BEGINS_WITH(report_entry_qualified_name(function), runtimes);
}

static bool report_entry_is_runtimes(const gp_symbol_t *symbol)
{
    // Inlined functions may have no more than the last part of their names.
    return gp_report_is_runtimes(symbol->function) || strstr(symbol->file, "/boost/") != NULL ||
           strstr(symbol->file, "/c++/") != NULL;
}

static const gp_symbol_t *report_entry_symbol_at(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, gp_loc_t loc)
{
    gp_namer_t namer = {.facts = &dataset->facts, .symbolizer = symbolizer};
    gp_name_t name;
    return gp_facts_name(&namer, loc, &name) == 0 ? name.symbol : NULL; // of code: it stays
}

static bool report_entry_is_in_library(const gp_dataset_t *dataset, gp_loc_t loc)
{
    const gp_module_info_t *module = gp_facts_module(&dataset->facts, loc);
    const char *path = module != NULL ? module->path : "", *slash = strrchr(path, '/');
    return BEGINS_WITH(slash != NULL ? slash + 1 : path, libraries);
}

static bool report_entry_is_code(gp_loc_t loc)
{
    return loc != 0 && GP_LOC_MODULE(loc) != GP_MODULE_PSEUDO && GP_LOC_MODULE(loc) != GP_MODULE_LANGUAGE;
}

// The outermost function of a frame, inlined ones included, that is not a runtime's. NULL = all are.
static const gp_symbol_t *report_entry_own_function(const gp_symbol_t *symbol)
{
    const gp_symbol_t *own = NULL;
    for (; symbol != NULL; symbol = symbol->outer)
        if (!report_entry_is_runtimes(symbol))
            own = symbol;
    return own;
}

// The first function on a stack that begins with a runtime's, and is not a runtime's. NULL = there is none.
static const gp_symbol_t *report_entry_first_own(const gp_dataset_t *dataset, const gp_facts_stack_t *stack,
                                                 gp_symbolizer_t *symbolizer)
{
    const gp_symbol_t *own = NULL;
    for (size_t i = stack->depth; i > 0 && own == NULL && report_entry_is_code(stack->frames[i - 1]); i--) {
        bool is_library = report_entry_is_in_library(dataset, stack->frames[i - 1]);
        const gp_symbol_t *symbol = report_entry_symbol_at(dataset, symbolizer, stack->frames[i - 1]);
        if (symbol == NULL && is_library)
            continue;
        if (symbol == NULL ||
            (i == stack->depth && !is_library && !report_entry_is_runtimes(gp_symbol_outermost(symbol))))
            return NULL;
        own = is_library ? NULL : report_entry_own_function(symbol);
    }
    return own;
}

// The first dispatcher on a stack without a function of the program's. NULL = there is none.
static const gp_symbol_t *report_entry_first_of_runtime(const gp_dataset_t *dataset, const gp_facts_stack_t *stack,
                                                        gp_symbolizer_t *symbolizer)
{
    const gp_symbol_t *found = NULL;
    for (size_t i = stack->depth; i > 0 && found == NULL && report_entry_is_code(stack->frames[i - 1]); i--)
        for (const gp_symbol_t *symbol = report_entry_symbol_at(dataset, symbolizer, stack->frames[i - 1]);
             symbol != NULL; symbol = symbol->outer)
            if (BEGINS_WITH(report_entry_qualified_name(symbol->function), dispatchers))
                found = symbol;
    return found;
}

// Of an entry function's parameters the first that is a lambda, "main::{lambda(int)#3}": the whole of its name.
// Returns its length, 0 where there is none.
static size_t report_entry_lambda_in(const char *entry, const char **name)
{
    int depth = 0;
    const char *brace = strstr(entry, "{lambda("), *start = brace, *end = brace;
    if (brace == NULL)
        return 0;
    for (; start > entry && !(depth == 0 && strchr("<, ", start[-1]) != NULL); start--)
        depth += (start[-1] == '>' || start[-1] == ')') - (start[-1] == '<' || start[-1] == '(');
    do
        depth += (*end == '{') - (*end == '}');
    while (*end++ != '\0' && depth > 0);
    *name = start;
    return depth == 0 ? (size_t)(end - start) : 0;
}

// Write so many characters of a name, a long one without its template arguments: "f<>(int)".
static void report_entry_write_short(const char *name, size_t len, char *text, size_t size)
{
    size_t written = 0;
    int depth = 0;
    for (size_t i = 0; i < len && written + 1 < size; i++) {
        int step = len > LONG_NAME && i > 0 ? report_entry_template_step(name + i) : 0;
        if (depth == 0 || depth + step == 0)
            text[written++] = name[i];
        depth = depth + step > 0 ? depth + step : 0; // `>` may be of an operator
    }
    text[written] = '\0';
}

// Name a coroutine that begins with a function of a runtime.
//   own: its first function of the program's; NULL = not known.
static void report_entry_write_own(const gp_symbol_t *own, const char *entry, char *text, size_t size)
{
    const char *name = NULL;
    size_t len = 0;
    if (own == NULL || strcmp(own->function, "operator()") == 0) // inlined: the rest of its name is not known of it
        len = report_entry_lambda_in(entry, &name);
    if (len > 0)
        report_entry_write_short(name, len, text, size);
    else if (own != NULL)
        report_entry_write_short(own->function, strlen(own->function), text, size);
    else
        snprintf(text, size, "%s", entry);
}

bool gp_report_coro_entry(const gp_dataset_t *dataset, uint32_t coro, gp_symbolizer_t *symbolizer, char *text,
                          size_t size)
{
    const gp_facts_coro_t *one = &dataset->facts.coros.items[coro];
    if (one->record.entry == 0 || GP_LOC_MODULE(one->record.entry) == GP_MODULE_PSEUDO)
        return false;
    const char *entry = gp_report_loc_name(dataset, symbolizer, one->record.entry);
    if (gp_report_is_runtimes(entry)) {
        const gp_facts_stack_t *stack = &dataset->facts.stacks.items[dataset->coros.items[coro].stack];
        const gp_symbol_t *own = report_entry_first_own(dataset, stack, symbolizer);
        bool has_lambda = strstr(entry, "{lambda(") != NULL;
        report_entry_write_own(own != NULL || has_lambda ? own
                                                         : report_entry_first_of_runtime(dataset, stack, symbolizer),
                               entry, text, size);
    } else
        snprintf(text, size, "%s", entry);
    return true;
}
