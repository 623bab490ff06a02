// resolve FILE [BUILD-ID] < ADDRESSES: what the symbolizer says about ELF addresses (hex, one a
// line), for tests and benchmarks. Output: FUNCTION <tab> FILE <tab> LINE <tab> FIRST-LINE, of the
// innermost function first, then, behind more tabs, of those that it is inlined into.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    uint8_t id[GP_BUILD_ID_MAX];
    char line[64];

    if (argc < 2)
        return 2;
    size_t id_len = read_build_id(argv[1], argc > 2 ? argv[2] : NULL, id);
    uint32_t module = gp_symbolizer_module(symbolizer, argv[1], strlen(argv[1]), id, id_len);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        put_chain(gp_symbolizer_resolve(symbolizer, module, strtoull(line, NULL, 16)));
    }
    gp_symbolizer_destroy(symbolizer);
    return 0;
}
