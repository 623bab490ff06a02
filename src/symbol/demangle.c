#include "symbol/demangle.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 4096 };

// Declared here: <cxxabi.h> is for C++ only. Source: Itanium C++ ABI, 3.4 "Demangler API".
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

// Length of the name without ".cold" or ".cold.12" at its end.
static size_t without_cold(const char *name)
{
    size_t len = strlen(name);
    const char *cold = strstr(name, ".cold");

    if (cold != NULL && strspn(cold + 5, ".0123456789") == strlen(cold + 5) && cold > name)
        return (size_t)(cold - name);
    return len;
}

static bool is_mangled(const char *name)
{
    return strncmp(name, "_Z", 2) == 0 || strncmp(name, "___Z", 4) == 0;
}

const char *gp_demangle(gp_arena_t *arena, const char *name)
{
    char bare[NAME_MAX_LEN];
    size_t len = without_cold(name);

    // The demangler recurses with the length of the name; what is longer stays as it is.
    if (is_mangled(name) && len < sizeof(bare)) {
        memcpy(bare, name, len);
        bare[len] = '\0';
        // "name@plt" demangles only without its suffix.
        char *suffix = strchr(bare, '@');
        if (suffix != NULL)
            *suffix = '\0';
        int status = -1;
        char *text = __cxa_demangle(bare, NULL, NULL, &status);
        if (status == 0 && text != NULL) {
            size_t text_len = strlen(text), suffix_len = suffix ? len - (size_t)(suffix - bare) : 0;
            char *copy = gp_arena_alloc(arena, text_len + suffix_len + 1);
            if (copy != NULL) {
                memcpy(copy, text, text_len);
                memcpy(copy + text_len, name + len - suffix_len, suffix_len);
            }
            free(text);
            return copy;
        }
        free(text);
    }
    return gp_arena_text(arena, name, len);
}
