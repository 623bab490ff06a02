// SPDX-License-Identifier: MIT
// ask_libdwarf FILE < ADDRESSES: the names that libdwarf_reader.h gives ELF addresses (hex, one a line), innermost
// first, with tabs between them, "??" where there is none. For tools/bench/symbols.
#include <stdio.h>
#include <stdlib.h>

#include "libdwarf_reader.h"

static void answer(const oracle_t *oracle, uint64_t address)
{
    const oracle_function_t *function = oracle_has_code(oracle, address) ? oracle_function(oracle, address) : NULL;
    if (function == NULL)
        fputs("??", stdout);
    for (; function != NULL; function = function->outer) {
        fputs(function->name ? function->name : "??", stdout);
        if (function->outer != NULL)
            putchar('\t');
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    char line[64];
    oracle_t *oracle = argc == 2 ? oracle_open(argv[1]) : NULL;
    if (oracle == NULL)
        return 2;
    while (fgets(line, sizeof(line), stdin) != NULL)
        answer(oracle, strtoull(line, NULL, 16));
    return 0;
}
