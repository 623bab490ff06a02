// SPDX-License-Identifier: MIT
#include "symbol/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

enum {
    NAME_MAX_LEN = 16384,  // the demanglers' stack grows with the length of the name
    TEXT_MAX_LEN = 0xffff, // back references multiply: a short name can stand for gigabytes
};

typedef struct output {
    char text[TEXT_MAX_LEN + 1];
    size_t len;
    jmp_buf too_long;
} output_t;

static void append(const char *text, size_t len, void *context)
{
    output_t *output = context;
    // The demanglers keep everything on the stack while they print: nothing is lost by leaving.
    if (len > TEXT_MAX_LEN - output->len)
        longjmp(output->too_long, 1);
    if (len > 0) // the text may be NULL else
        memcpy(output->text + output->len, text, len);
    output->len += len;
}

// "_R..." or "_ZN...17h0123456789abcdefE".
static bool may_be_rust(const char *name)
{
    return name[strspn(name, "_")] == 'R' || strstr(name, "17h") != NULL;
}

// Returns whether `name` was a mangled one; its text is then in `output`.
static bool demangle(const char *name, output_t *output)
{
    output->len = 0;
    if (setjmp(output->too_long) != 0)
        return false;
    // Rust first: its legacy names are C++ names with a hash for a last part.
    if (may_be_rust(name) && rust_demangle_callback(name, DMGL_PARAMS | DMGL_ANSI, append, output))
        return output->len > 0;
    output->len = 0;
    return cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_TYPES, append, output) != 0 && output->len > 0;
}

// Does a suffix ".word" or ".word.12" start here that says: this is the same function?
static size_t clone_suffix(const char *name)
{
    static const char *const words[] = {".cold", ".constprop", ".isra", ".lto_priv", ".llvm"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);
        if (strncmp(name, words[i], len) != 0)
            continue;
        if (name[len] == '.')
            len += 1 + strspn(name + len + 1, "0123456789");
        if (name[len] == '\0' || name[len] == '.' || name[len] == '@')
            return len;
    }
    return 0;
}

// Copy the name without such suffixes. Returns the length.
static size_t copy_without_clones(char *to, const char *name)
{
    size_t len = 0;
    for (const char *at = name; *at != '\0';) {
        size_t skip = at > name && *at == '.' ? clone_suffix(at) : 0;
        if (skip == 0)
            to[len++] = *at++;
        at += skip;
    }
    to[len] = '\0';
    return len;
}

static bool may_be_mangled(const char *name)
{
    name += strspn(name, "_");
    return name[0] == 'Z' || name[0] == 'R';
}

const char *gp_demangle(gp_arena_t *arena, const char *name)
{
    char bare[NAME_MAX_LEN];
    output_t output;
    if (strlen(name) >= sizeof(bare))
        return gp_arena_text(arena, name, strlen(name));
    size_t len = copy_without_clones(bare, name);
    if (!may_be_mangled(bare))
        return gp_arena_text(arena, bare, len);
    char *suffix = strchr(bare, '@'); // "name@plt" demangles only without its suffix
    if (suffix != NULL)
        *suffix = '\0';
    bool demangled = demangle(bare, &output);
    if (suffix != NULL)
        *suffix = '@';
    if (!demangled)
        return gp_arena_text(arena, bare, len);
    size_t suffix_len = suffix ? strlen(suffix) : 0;
    char *copy = gp_arena_alloc(arena, output.len + suffix_len + 1);
    if (copy != NULL) {
        memcpy(copy, output.text, output.len);
        memcpy(copy + output.len, bare + len - suffix_len, suffix_len);
    }
    return copy;
}
