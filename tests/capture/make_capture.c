// SPDX-License-Identifier: MIT
// make_capture OUT < SCRIPT: see capture_script.h.
#include <stdio.h>
#include <stdlib.h>

#include "capture_script.h"

int main(int argc, char **argv)
{
    static char script[1 << 24];
    size_t len = fread(script, 1, sizeof(script) - 1, stdin);
    FILE *out = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (out == NULL) {
        fputs("usage: make_capture OUT < SCRIPT\n", stderr);
        return 2;
    }
    if (len == sizeof(script) - 1) {
        fputs("make_capture: the script is too long\n", stderr);
        return 2;
    }
    script[len] = '\0';
    uint8_t *capture = capture_from_script(script, &len);
    int status = fwrite(capture, 1, len, out) == len && fclose(out) == 0 ? 0 : 1;
    free(capture);
    return status;
}
