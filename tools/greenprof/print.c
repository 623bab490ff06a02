// SPDX-License-Identifier: MIT
#include "print.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "export/write/text.h"

enum { ROOM_MIN = 16 };

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

size_t gp_print_columns(void)
{
    struct winsize size;
    bool is_known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    return is_known ? size.ws_col : 0;
}

static size_t print_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void gp_print_tail(const char *text, size_t room)
{
    size_t width = print_width(text), gap = room > 2 ? 2 : 0;
    bool is_cut = room > 0 && width > room;
    for (size_t left = is_cut ? width - (room - gap) : 0; left > 0; left--)
        for (text++; ((unsigned char)*text & 0xc0) == 0x80;)
            text++;
    if (is_cut && gap > 0)
        fputs("..", stdout);
    gp_print_text(text);
}

void gp_print_name(const char *text, size_t before)
{
    size_t columns = gp_print_columns();
    gp_print_tail(text, columns >= before + ROOM_MIN ? columns - before : 0);
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
