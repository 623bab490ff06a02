// SPDX-License-Identifier: MIT
#include "symbol/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/hex.h"
#include "symbol/demangle_d.h"

enum {
    NAME_MAX_LEN = 16384,  // the demanglers' stack grows with the length of the name
    TEXT_MAX_LEN = 0xffff, // back references multiply: a short name can stand for gigabytes
};

typedef struct output {
    char text[TEXT_MAX_LEN + 1];
    size_t len;
    jmp_buf too_long;
} output_t;

static void demangle_append(const char *text, size_t len, void *context)
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
static bool demangle_may_be_rust(const char *name)
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
    if (demangle_may_be_rust(name) && rust_demangle_callback(name, DMGL_PARAMS | DMGL_ANSI, demangle_append, output))
        return output->len > 0;
    output->len = 0;
    return cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_TYPES, demangle_append, output) != 0 && output->len > 0;
}

static bool demangle_is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

// ".avx2", ".arch_haswell", ".sse4_2", ".default": what gcc and clang call a copy for some processors. No other words:
// Go's "runtime.aeshash" is no copy of "runtime".
static size_t demangle_processor_suffix(const char *name)
{
    static const char *const words[] = {"arch_", "avx512", "avx2", "avx", "sse4", "ssse3", "sse3", "sse2", "default"};
    static const size_t families = 2; // which have more behind them
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);
        if (strncmp(name + 1, words[i], len) == 0)
            return 1 + len +
                   (i < families ? strspn(name + 1 + len, "abcdefghijklmnopqrstuvwxyz0123456789_-")
                                 : strspn(name + 1 + len, "_12a"));
    }
    return 0;
}

static size_t demangle_word_suffix(const char *name)
{
    static const char *const words[] = {".cold", ".constprop", ".isra",       ".lto_priv",
                                        ".llvm", ".__uniq",    ".localalias", ".specialized"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strncmp(name, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return 0;
}

// Does a suffix ".word" or ".word.12" start here that says: this is the same function?
static size_t demangle_clone_suffix(const char *name)
{
    size_t len = demangle_word_suffix(name);
    if (len == 0)
        len = demangle_processor_suffix(name);
    if (len == 0)
        return 0;
    if (name[len] == '.' && demangle_is_digit(name[len + 1]))
        len += 1 + strspn(name + len + 1, "0123456789");
    return name[len] == '\0' || name[len] == '.' || name[len] == '@' ? len : 0;
}

// Copy the name without such suffixes. Returns the length.
static size_t demangle_copy_without_clones(char *to, const char *name)
{
    size_t len = 0;
    for (const char *at = name; *at != '\0';) {
        size_t skip = at > name && *at == '.' ? demangle_clone_suffix(at) : 0;
        if (skip == 0)
            to[len++] = *at++;
        at += skip;
    }
    to[len] = '\0';
    return len;
}

// --- OCaml: "camlModule__name_123", "camlModule.name_123" since 5.1. Source: asmcomp/compilenv.ml, cmm_helpers.ml

// Without the stamp "_123", which a function without a name keeps; flambda has two, and "_code" behind them.
static size_t demangle_length_without_stamps(const char *name, size_t len)
{
    static const char code[] = "_code";
    bool flambda = len > strlen(code) && strncmp(name + len - strlen(code), code, strlen(code)) == 0;
    len -= flambda ? strlen(code) : 0;
    for (int stamps = flambda ? 2 : 1; stamps > 0; stamps--) {
        size_t end = len;
        while (end > 0 && demangle_is_digit(name[end - 1]))
            end--;
        bool is_nameless =
            end > 4 && strncmp(name + end - 4, "fun_", 4) == 0 && (name[end - 5] == '_' || name[end - 5] == '.');
        if (end < 2 || end == len || name[end - 1] != '_' || is_nameless)
            break;
        len = end - 1;
    }
    return len;
}

// Writes over the name. Returns whether it is one of OCaml's.
static bool demangle_decode_ocaml(char *name)
{
    static const char caml[] = "caml";
    const char *from = name + strlen(caml);
    if (strncmp(name, caml, strlen(caml)) != 0 || *from < 'A' || *from > 'Z' ||
        (strstr(from, "__") == NULL && strchr(from, '.') == NULL))
        return false;
    const char *end = name + demangle_length_without_stamps(name, strlen(name));
    uint8_t letter;
    char *to = name;
    while (from < end) {
        if (from[0] == '$' && gp_hex_read(from + 1, &letter, 1) != NULL && letter != 0) {
            *to++ = (char)letter;
            from += 3;
        } else if (from[0] == '_' && from[1] == '_' && from > name + strlen(caml) && from + 2 < end) {
            *to++ = '.';
            from += 2;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return true;
}

static bool demangle_may_be_mangled(const char *name)
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
    size_t len = demangle_copy_without_clones(bare, name);
    if (demangle_decode_ocaml(bare))
        return gp_arena_text(arena, bare, strlen(bare));
    const char *d = gp_demangle_d(arena, bare);
    if (d != NULL)
        return d;
    if (!demangle_may_be_mangled(bare))
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
