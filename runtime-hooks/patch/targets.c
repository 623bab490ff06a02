// SPDX-License-Identifier: MIT
#include "patch/targets.h"

#include <string.h>

enum { UNKNOWN_SIZE = 256 }; // looked through of a function of unknown size

// Boost.Context 1.74, {jump,ontop,make}_x86_64_sysv_elf_gas.S.
static const unsigned char boost_jump[] = {
    0x48, 0x8d, 0x64, 0x24, 0xc8, 0x0f, 0xae, 0x1c, 0x24, 0xd9, 0x7c, 0x24, 0x04, 0x4c, 0x89, 0x64, 0x24, 0x08,
    0x4c, 0x89, 0x6c, 0x24, 0x10, 0x4c, 0x89, 0x74, 0x24, 0x18, 0x4c, 0x89, 0x7c, 0x24, 0x20, 0x48, 0x89, 0x5c,
    0x24, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x89, 0xfc, 0x4c, 0x8b, 0x44, 0x24, 0x38,
};
static const unsigned char boost_ontop[] = {
    0x49, 0x89, 0xd0, 0x48, 0x8d, 0x64, 0x24, 0xc8, 0x0f, 0xae, 0x1c, 0x24, 0xd9, 0x7c, 0x24, 0x04, 0x4c, 0x89,
    0x64, 0x24, 0x08, 0x4c, 0x89, 0x6c, 0x24, 0x10, 0x4c, 0x89, 0x74, 0x24, 0x18, 0x4c, 0x89, 0x7c, 0x24, 0x20,
    0x48, 0x89, 0x5c, 0x24, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x89, 0xfc,
};
static const unsigned char boost_make[] = {
    0x48, 0x89, 0xf8, 0x48, 0x83, 0xe0, 0xf0, 0x48, 0x8d, 0x40, 0xc0, 0x48, 0x89, 0x50, 0x28,
    0x0f, 0xae, 0x18, 0xd9, 0x78, 0x04, 0x48, 0x8d, 0x0d, 0x10, 0x00, 0x00, 0x00, 0x48, 0x89,
    0x48, 0x38, 0x48, 0x8d, 0x0d, 0x08, 0x00, 0x00, 0x00, 0x48, 0x89, 0x48, 0x30, 0xc3,
};

const gp_patch_runtime_t gp_patch_runtimes[] = {
    {
        .name = "tarantool",
        .title = "Tarantool fibers",
        .functions = {{.symbol = "coro_transfer"},
                      {.symbol = "coro_create"},
                      {.symbol = "fiber_new_ex"},
                      {.symbol = "fiber_set_name", .optional = true},
                      {.symbol = "fiber_recycle", .optional = true}},
    },
    {
        .name = "lua",
        .title = "Lua 5.4, linked in",
        .unless = {"__wrap_lua_resume", "luaJIT_setmode"}, // the latter has other ways to resume coroutines
        .functions = {{.symbol = "lua_resume"}},
    },
    {
        .name = "boost",
        .title = "Boost.Context, linked in",
        .unless = {"__wrap_jump_fcontext", "zend_observer_fiber_switch_register"},
        .functions =
            {{.symbol = "jump_fcontext", .code = boost_jump, .code_size = sizeof(boost_jump)},
             {.symbol = "ontop_fcontext", .optional = true, .code = boost_ontop, .code_size = sizeof(boost_ontop)},
             {.symbol = "make_fcontext", .code = boost_make, .code_size = sizeof(boost_make)}},
    },
    {
        .name = "minicoro",
        .title = "minicoro, linked in",
        .unless = {"__wrap_mco_resume"},
        .functions = {{.symbol = "_mco_switch"}, {.symbol = "mco_create"}},
    },
    {0},
};

// The next word of a comma-separated list; its length, 0 at the end.
static size_t next_word(const char **at)
{
    *at += strspn(*at, ",");
    return strcspn(*at, ",");
}

static bool is_word(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && strncmp(word, name, len) == 0;
}

bool gp_patch_is_requested(const char *request, const gp_patch_runtime_t *runtime, bool *by_name)
{
    bool all = false;
    size_t len;
    *by_name = false;
    for (const char *at = request; at != NULL && (len = next_word(&at)) > 0; at += len) {
        all |= is_word(at, len, "auto");
        *by_name |= is_word(at, len, runtime->name);
    }
    return all || *by_name;
}

bool gp_patch_request_is_known(const char *request, const char **word)
{
    size_t len;
    for (*word = request; (len = next_word(word)) > 0; *word += len) {
        bool known = is_word(*word, len, "auto") || is_word(*word, len, "none");
        for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; !known && runtime->name != NULL; runtime++)
            known = is_word(*word, len, runtime->name);
        if (!known)
            return false;
    }
    return true;
}

static bool find_function(const gp_elf_image_t *image, const gp_patch_function_t *what, bool by_code,
                          gp_elf_function_t *out)
{
    *out = (gp_elf_function_t){0};
    if (gp_elf_function(image, what->symbol, out))
        return true;
    if (by_code && what->code != NULL && gp_elf_find_code(image, what->code, what->code_size, out))
        return true;
    out->code = NULL;
    return false;
}

bool gp_patch_find(const gp_elf_image_t *image, const gp_patch_runtime_t *runtime, bool by_name,
                   gp_patch_found_t *found)
{
    for (int i = 0; i < GP_PATCH_FUNCTIONS_MAX && runtime->functions[i].symbol != NULL; i++) {
        const gp_patch_function_t *what = &runtime->functions[i];
        if (!find_function(image, what, by_name, &found->functions[i]) && !what->optional)
            return false;
    }
    for (int i = 0; i < 2 && runtime->unless[i] != NULL; i++)
        if (gp_elf_mentions(image, runtime->unless[i]))
            return false;
    return true;
}

size_t gp_patch_function_size(const gp_elf_function_t *function)
{
    size_t size = function->size != 0 ? function->size : UNKNOWN_SIZE;
    return size < function->code_size ? size : function->code_size;
}
