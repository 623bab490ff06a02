// SPDX-License-Identifier: MIT
#include "nearest.h"

#include <stdbool.h>
#include <string.h>

enum { LETTERS_MAX = 31, LETTERS_AN_ERROR = 3 };

static size_t nearest_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Optimal string alignment: Levenshtein's distance, and neighbours exchanged count as one.
static size_t nearest_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[LETTERS_MAX + 1][LETTERS_MAX + 1];
    for (size_t i = 0; i <= a_len; i++)
        for (size_t j = 0; j <= b_len; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            size_t changed = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[i][j] = nearest_least(changed, nearest_least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = nearest_least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    return rows[a_len][b_len];
}

// Names of perf, py-spy, samply and others, and the names here.
static bool nearest_is_synonym(const char *word, const char *name)
{
    static const char *const words[][2] = {
        {"record", "run"},
        {"profile", "run"},
        {"stat", "info"},
        {"view", "flamegraph"},
        {"dump-stacks", "coroutines"},
        {"ps", "coroutines"},
        {"rate", "frequency"},
        {"hz", "frequency"},
        {"limit", "rows"},
        {"top", "rows"},
        {"wall", "clock"},
        {"timeout", "duration"},
        {"perfetto", "chrome"},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i][0], word) == 0 && strcmp(words[i][1], name) == 0)
            return true;
    return false;
}

void gp_nearest_try(gp_nearest_t *nearest, const char *name)
{
    size_t word_len = strlen(nearest->word), len = strlen(name);
    if (word_len == 0 || word_len > LETTERS_MAX || len > LETTERS_MAX)
        return;
    bool is_synonym = nearest_is_synonym(nearest->word, name);
    bool is_exchanged = nearest->word[0] == name[1] && nearest->word[1] == name[0];
    if (!is_synonym && nearest->word[0] != name[0] && !is_exchanged)
        return; // nobody mistypes the first letter, but for its neighbour
    size_t apart = is_synonym ? 0 : nearest_distance(nearest->word, word_len, name, len);
    if (apart > (len + LETTERS_AN_ERROR - 1) / LETTERS_AN_ERROR ||
        (nearest->name != NULL && apart >= nearest->distance))
        return;
    nearest->name = name;
    nearest->distance = apart;
}
