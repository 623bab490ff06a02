// SPDX-License-Identifier: MIT
#include "print.h"

#include <stdio.h>

#include "export/text.h"

void gp_print_text(const char *text)
{
    while (*text != '\0') {
        size_t len = gp_text_utf8_len(text);
        unsigned char c = (unsigned char)*text;
        if (len == 0 || c < ' ' || c == 0x7f || (c == 0xc2 && (unsigned char)text[1] < 0xa0))
            fputs("?", stdout); // C0 and C1 controls steer terminals
        else
            fwrite(text, 1, len, stdout);
        text += len ? len : 1;
    }
}

static void print_decimal(uint64_t ns, uint64_t unit, int width)
{
    char text[32];
    gp_text_decimal(text, ns, unit, 3);
    printf("%*s", width, text);
}

void gp_print_seconds(uint64_t ns, int width)
{
    print_decimal(ns, 1000000000, width);
}

void gp_print_ms(uint64_t ns, int width)
{
    print_decimal(ns, 1000000, width);
}
