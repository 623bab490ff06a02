// SPDX-License-Identifier: MIT
// resolve [--threads N] FILE [BUILD-ID] < ADDRESSES: what the symbolizer says about ELF addresses (hex, one a
// line), for tests and benchmarks. Output: FUNCTION <tab> FILE <tab> LINE <tab> FIRST-LINE, of the
// innermost function first, then, behind more tabs, of those that it is inlined into.
// N: threads that read ahead, beside the first one (0).
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

enum { LINE_BYTES = 20 }; // of a question, at most

static void *room_for(size_t count, size_t size)
{
    void *room = gp_memory_whole((count + 1) * size);
    if (room == NULL)
        exit(1);
    return room;
}

// --- output, which is most of the work if it is left to stdio

enum { PART = 512, OUTPUT_BYTES = 1 << 15 };

typedef struct output { // a part of the answers, and its text
    gp_job_t job;
    const gp_symbol_t *const *symbols;
    size_t count;
    size_t len, capacity;
    char *bytes;
} output_t;

static void make_room(output_t *output, size_t bytes)
{
    if (bytes > output->capacity - output->len &&
        gp_reserve(&output->bytes, &output->capacity, output->len * 2 + bytes + OUTPUT_BYTES, 1) < 0)
        exit(1);
}

// A text and a tab.
static void put_text(output_t *output, const char *text)
{
    size_t len = strlen(text);
    make_room(output, len + 1);
    memcpy(output->bytes + output->len, text, len);
    output->len += len;
    output->bytes[output->len++] = '\t';
}

// A number and what comes behind it.
static void put_number(output_t *output, uint32_t number, char end)
{
    enum { IN_WORD = 10000000 };
    uint64_t text = (uint8_t)end; // the first digit lowest
    size_t len = 1;
    make_room(output, 2 * sizeof(text));
    if (number >= IN_WORD) {
        put_number(output, number / IN_WORD, '\0');
        output->len--;
    }
    for (uint32_t left = number % IN_WORD; len == 1 || left > 0 || (number >= IN_WORD && len < sizeof(text)); len++) {
        text = text << 8 | ('0' + left % 10);
        left /= 10;
    }
    memcpy(output->bytes + output->len, &text, sizeof(text)); // quicker than just enough
    output->len += len;
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
static void put_answers(gp_job_t *job)
{
    enum { AHEAD = 16, CLOSER = 8 };
    output_t *output = (output_t *)job;
    const gp_symbol_t *const *symbols = output->symbols;
    for (size_t i = 0; i < output->count; i++) {
        if (i + AHEAD < output->count)
            __builtin_prefetch(symbols[i + AHEAD]);
        if (i + CLOSER < output->count) {
            __builtin_prefetch(symbols[i + CLOSER]->function);
            __builtin_prefetch(symbols[i + CLOSER]->file);
        }
        put_chain(output, symbols[i]);
    }
}

// While one part is written a helper makes the text of the next.
static void put_all_answers(const gp_symbol_t *const *symbols, size_t count)
{
    gp_helpers_t *helpers = count >= GP_SYMBOLIZER_MANY ? gp_helpers_open() : NULL;
    size_t part_count = (count + PART - 1) / PART;
    output_t *parts = room_for(part_count, sizeof(*parts));
    for (size_t i = 0; i < part_count; i++) {
        size_t first = i * PART;
        parts[i] = (output_t){.job = {.work = put_answers}, .symbols = symbols + first};
        parts[i].count = count - first < PART ? count - first : PART;
        gp_helpers_give(helpers, &parts[i].job);
    }
    for (size_t i = 0; i < part_count; i++) {
        gp_helpers_take_helping(helpers, &parts[i].job);
        if (fwrite_unlocked(parts[i].bytes, 1, parts[i].len, stdout) != parts[i].len)
            exit(1);
        free(parts[i].bytes);
    }
    gp_helpers_close(helpers);
    free(parts);
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
static char *read_input(size_t *length)
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
    *length = len;
    return text;
}

static void read_questions(questions_t *questions, const char *input)
{
    for (const char *text = input; *text != '\0'; text += *text == '\n') {
        if (gp_grow(&questions->items, &questions->capacity, questions->count, sizeof(*questions->items)) < 0)
            exit(1);
        question_t *question = &questions->items[questions->count];
        question->number = questions->count++;
        text = read_hex(text, &question->address);
        while (*text != '\n' && *text != '\0')
            text++;
    }
}

static int compare_questions(const void *left, const void *right)
{
    const question_t *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

// In the order of the addresses, in which tables are read through, not jumped about in: for very
// many of them that takes half the time. The answers are in the order of the questions.
static void answer(gp_symbolizer_t *symbolizer, uint32_t module, questions_t *questions)
{
    size_t count = questions->count;
    uint64_t *addresses = room_for(count, sizeof(*addresses));
    const gp_symbol_t **found = room_for(count, sizeof(*found)), **symbols = room_for(count, sizeof(*symbols));
    gp_sort(questions->items, count, sizeof(*questions->items), compare_questions);
    for (size_t i = 0; i < count; i++)
        addresses[i] = questions->items[i].address;
    gp_symbolizer_expect(symbolizer, module, addresses, count);
    gp_symbolizer_resolve_all(symbolizer, module, addresses, count, found);
    for (size_t i = 0; i < count; i++) {
        if (found[i] == NULL)
            exit(1);
        symbols[questions->items[i].number] = found[i];
    }
    put_all_answers(symbols, count);
    free(symbols);
    free(found);
    free(addresses);
}

static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    return pthread_create(thread, NULL, run, argument);
}

// The program is short: what it frees is taken again, and the kernel is not asked for it twice. The heap begins before
// a large page: malloc() touches that part before the rest can be asked for in large pages.
static void keep_memory(void)
{
    enum { BEFORE = 64 << 10, LARGE_PAGE = 2 << 20, BYTES = 8 * LARGE_PAGE };
    mallopt(M_MMAP_THRESHOLD, BYTES);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, BYTES);
    sbrk((intptr_t)((-(uintptr_t)sbrk(0) - BEFORE) & (LARGE_PAGE - 1)));
    char *heap = malloc(1);
    if (heap != NULL)
        madvise(heap + (size_t)(-(uintptr_t)heap & (LARGE_PAGE - 1)), BYTES - LARGE_PAGE, MADV_HUGEPAGE);
    free(heap);
}

int main(int argc, char **argv)
{
    keep_memory();
    if (argc > 2 && strcmp(argv[1], "--threads") == 0) {
        gp_helpers_use((unsigned)atoi(argv[2]), start_thread);
        argc -= 2;
        argv += 2;
    }
    static gp_symbolizer_t *symbolizer; // what it keeps goes when the process ends
    symbolizer = gp_symbolizer_create();
    questions_t questions = {0};
    size_t len;
    uint8_t id[GP_BUILD_ID_MAX];
    if (argc < 2)
        return 2;
    size_t id_len = read_build_id(argv[1], argc > 2 ? argv[2] : NULL, id);
    uint32_t module = gp_symbolizer_module(symbolizer, argv[1], strlen(argv[1]), id, id_len);
    char *input = read_input(&len);
    if (len >= (size_t)GP_SYMBOLIZER_MANY * LINE_BYTES) // while they are read
        gp_symbolizer_begin(symbolizer, module);
    read_questions(&questions, input);
    free(input);
    answer(symbolizer, module, &questions);
    free(questions.items);
    return 0;
}
