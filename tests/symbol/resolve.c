// resolve FILE [BUILD-ID] < ADDRESSES: what the symbolizer says about ELF addresses (hex, one a
// line), for tests and benchmarks. Output: FUNCTION <tab> FILE <tab> LINE <tab> FIRST-LINE, of the
// innermost function first, then, behind more tabs, of those that it is inlined into.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/elf_file.h"
#include "symbol/memory.h"
#include "symbol/symbolizer.h"

static size_t read_build_id(const char *path, const char *given, uint8_t id[GP_BUILD_ID_MAX])
{
    gp_elf_t elf;
    size_t len = 0;

    for (; given != NULL && sscanf(given + 2 * len, "%2" SCNx8, &id[len]) == 1; len++)
        ;
    if (given == NULL && gp_elf_open(&elf, path) == 0) {
        len = gp_elf_build_id(&elf, id);
        gp_elf_close(&elf);
    }
    return len;
}

// The output is most of the work otherwise.
static void put_number(uint32_t number)
{
    char digits[10];
    unsigned count = 0;

    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        putc_unlocked(digits[--count], stdout);
}

static void put_chain(const gp_symbol_t *symbol)
{
    for (; symbol != NULL; symbol = symbol->outer) {
        fputs_unlocked(symbol->function, stdout);
        putc_unlocked('\t', stdout);
        fputs_unlocked(symbol->file, stdout);
        putc_unlocked('\t', stdout);
        put_number(symbol->line);
        putc_unlocked('\t', stdout);
        put_number(symbol->first_line);
        putc_unlocked(symbol->outer != NULL ? '\t' : '\n', stdout);
    }
}

typedef struct question {
    uint64_t address;
    size_t number;
} question_t;

typedef struct questions {
    question_t *items;
    size_t count, capacity;
} questions_t;

static void read_questions(questions_t *questions)
{
    char line[64];

    while (fgets_unlocked(line, sizeof(line), stdin) != NULL) {
        if (gp_grow(&questions->items, &questions->capacity, questions->count,
                    sizeof(*questions->items)) < 0)
            exit(1);
        questions->items[questions->count] =
            (question_t){strtoull(line, NULL, 16), questions->count};
        questions->count++;
    }
}

static int compare_questions(const void *left, const void *right)
{
    const question_t *a = left, *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

// In the order of the addresses, in which tables are read through, not jumped about in: for very
// many of them that takes half the time. The answers are in the order of the questions.
static void answer(gp_symbolizer_t *symbolizer, uint32_t module, const questions_t *questions)
{
    const gp_symbol_t **symbols = calloc(questions->count + 1, sizeof(*symbols));

    if (symbols == NULL)
        exit(1);
    if (questions->count > 0)
        qsort(questions->items, questions->count, sizeof(*questions->items), compare_questions);
    for (size_t i = 0; i < questions->count; i++)
        symbols[questions->items[i].number] =
            gp_symbolizer_resolve(symbolizer, module, questions->items[i].address);
    for (size_t i = 0; i < questions->count; i++)
        put_chain(symbols[i]);
    free(symbols);
}

int main(int argc, char **argv)
{
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    questions_t questions = {0};
    uint8_t id[GP_BUILD_ID_MAX];

    if (argc < 2)
        return 2;
    size_t id_len = read_build_id(argv[1], argc > 2 ? argv[2] : NULL, id);
    uint32_t module = gp_symbolizer_module(symbolizer, argv[1], strlen(argv[1]), id, id_len);
    read_questions(&questions);
    answer(symbolizer, module, &questions);
    free(questions.items);
    gp_symbolizer_destroy(symbolizer);
    return 0;
}
