// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        if (in == NULL) {
            perror(argv[i]);
            return 1;
        }
        uint8_t *data = malloc(1 << 20);
        size_t len = data ? fread(data, 1, 1 << 20, in) : 0;
        fclose(in);
        uint8_t *exact = data ? realloc(data, len ? len : 1) : NULL; // a read past the end is seen
        LLVMFuzzerTestOneInput(exact, len);
        free(exact);
    }
    printf("%d inputs\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
