// SPDX-License-Identifier: MIT
// resolve [--threads N] FILE [BUILD-ID] < ADDRESSES: what the symbolizer says about ELF addresses (hex, one a
// line), for tests and benchmarks. Output: FUNCTION <tab> FILE <tab> LINE <tab> FIRST-LINE, of the
// innermost function first, then, behind more tabs, of those that it is inlined into.
// N: threads that read ahead, beside the first one (0).
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"
#include "base/helpers.h"
#include "base/memory.h"
#include "symbol/elf_file.h"
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

// --- output, which is most of the work if it is left to stdio

enum { OUTPUT_BYTES = 1 << 18, NUMBER_BYTES = 10 };

typedef struct output {
    size_t len;
    char bytes[OUTPUT_BYTES];
} output_t;

static void flush(output_t *output)
{
    if (fwrite_unlocked(output->bytes, 1, output->len, stdout) != output->len)
        exit(1);
    output->len = 0;
}

// A text and a tab.
static void put_text(output_t *output, const char *text)
{
    size_t len = strlen(text);
    if (len >= OUTPUT_BYTES - output->len)
        flush(output);
    if (len >= OUTPUT_BYTES)
        exit(1);
    memcpy(output->bytes + output->len, text, len);
    output->len += len;
    output->bytes[output->len++] = '\t';
}

// A number and what comes behind it.
static void put_number(output_t *output, uint32_t number, char end)
{
    char digits[2 * NUMBER_BYTES + 1];
    size_t at = NUMBER_BYTES;
    if (sizeof(digits) > OUTPUT_BYTES - output->len)
        flush(output);
    digits[at] = end;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(output->bytes + output->len, digits + at, NUMBER_BYTES + 1); // quicker than just enough
    output->len += NUMBER_BYTES + 1 - at;
}

static void put_chain(output_t *output, const gp_symbol_t *symbol)
{
    for (; symbol != NULL; symbol = symbol->outer) {
        put_text(output, symbol->function);
        put_text(output, symbol->file);
        put_number(output, symbol->line, '\t');
        put_number(output, symbol->first_line, symbol->outer != NULL ? '\t' : '\n');
    }
}

// The answers lie all over memory: they are asked for some way ahead.
static void put_answers(const gp_symbol_t *const *symbols, size_t count)
{
    enum { AHEAD = 16, CLOSER = 8 };
    static output_t output;
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            __builtin_prefetch(symbols[i + AHEAD]);
        if (i + CLOSER < count) {
            __builtin_prefetch(symbols[i + CLOSER]->function);
            __builtin_prefetch(symbols[i + CLOSER]->file);
        }
        put_chain(&output, symbols[i]);
    }
    flush(&output);
}

// --- questions

typedef struct question {
    uint64_t address;
    size_t number;
} question_t;

typedef struct questions {
    question_t *items;
    size_t count, capacity;
} questions_t;

static int hex_digit(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    letter |= 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// Returns what is behind the number.
static const char *read_hex(const char *text, uint64_t *number)
{
    int digit;
    text += text[0] == '0' && (text[1] | 0x20) == 'x' ? 2 : 0;
    for (*number = 0; (digit = hex_digit(*text)) >= 0; text++)
        *number = *number << 4 | (uint64_t)digit;
    return text;
}

// All of standard input, ended by a NUL.
static char *read_input(void)
{
    char *text = NULL;
    size_t len = 0, capacity = 0, got;
    do {
        if (gp_reserve(&text, &capacity, capacity * 2 + 65536, 1) < 0)
            exit(1);
        got = fread(text + len, 1, capacity - len - 1, stdin);
        len += got;
    } while (got > 0);
    text[len] = '\0';
    return text;
}

static void read_questions(questions_t *questions)
{
    char *input = read_input();
    for (const char *text = input; *text != '\0'; text += *text == '\n') {
        if (gp_grow(&questions->items, &questions->capacity, questions->count, sizeof(*questions->items)) < 0)
            exit(1);
        question_t *question = &questions->items[questions->count];
        question->number = questions->count++;
        text = read_hex(text, &question->address);
        while (*text != '\n' && *text != '\0')
            text++;
    }
    free(input);
}

static int compare_questions(const void *left, const void *right)
{
    const question_t *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void expect(gp_symbolizer_t *symbolizer, uint32_t module, const questions_t *questions)
{
    uint64_t *addresses = gp_memory_whole((questions->count + 1) * sizeof(*addresses));
    if (addresses == NULL)
        exit(1);
    for (size_t i = 0; i < questions->count; i++)
        addresses[i] = questions->items[i].address;
    gp_symbolizer_expect(symbolizer, module, addresses, questions->count);
    free(addresses);
}

// In the order of the addresses, in which tables are read through, not jumped about in: for very
// many of them that takes half the time. The answers are in the order of the questions.
static void answer(gp_symbolizer_t *symbolizer, uint32_t module, questions_t *questions)
{
    const gp_symbol_t **symbols = calloc(questions->count + 1, sizeof(*symbols));
    if (symbols == NULL)
        exit(1);
    gp_sort(questions->items, questions->count, sizeof(*questions->items), compare_questions);
    expect(symbolizer, module, questions);
    for (size_t i = 0; i < questions->count; i++) {
        const gp_symbol_t *symbol = gp_symbolizer_resolve(symbolizer, module, questions->items[i].address);
        if (symbol == NULL)
            exit(1);
        symbols[questions->items[i].number] = symbol;
    }
    put_answers(symbols, questions->count);
    free(symbols);
}

static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    return pthread_create(thread, NULL, run, argument);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--threads") == 0) {
        gp_helpers_use((unsigned)atoi(argv[2]), start_thread);
        argc -= 2;
        argv += 2;
    }
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
