// SPDX-License-Identifier: MIT
// Reads the first bytes of functions, one a line in hexadecimal digits; says of each how many would be taken, 0 =
// refused.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patch/prologue.h"

int main(void)
{
    char line[256];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        unsigned char code[sizeof(line) / 2];
        size_t size = strcspn(line, "\n") / 2;
        gp_prologue_t moved;
        for (size_t i = 0; i < size; i++) {
            char digits[3] = {line[2 * i], line[2 * i + 1], '\0'};
            code[i] = (unsigned char)strtoul(digits, NULL, 16);
        }
        int error = gp_prologue_move(code, size, 0x10000000, 0x10100000, &moved);
        printf("%zu\n", error == 0 ? moved.taken : 0);
    }
    return 0;
}
