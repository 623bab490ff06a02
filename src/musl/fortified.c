// SPDX-License-Identifier: MIT
// Checked functions that archives which were built for glibc (zstd, zlib, xz, libiberty) call. The sizes were checked
// by the compiler as far as it knew them; a call that fails the check ends the program, as in glibc.
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __fprintf_chk(FILE *file, int flag, const char *format, ...);
int __snprintf_chk(char *to, size_t most, int flag, size_t size, const char *format, ...);
int __sprintf_chk(char *to, int flag, size_t size, const char *format, ...);
int __vsnprintf_chk(char *to, size_t most, int flag, size_t size, const char *format, va_list list);
void *__memcpy_chk(void *to, const void *from, size_t count, size_t size);
char *__strncpy_chk(char *to, const char *from, size_t count, size_t size);

int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    va_list list;
    (void)flag;
    va_start(list, format);
    int result = vfprintf(file, format, list);
    va_end(list);
    return result;
}

int __vsnprintf_chk(char *to, size_t most, int flag, size_t size, const char *format, va_list list)
{
    (void)flag;
    if (size < most)
        abort();
    return vsnprintf(to, most, format, list);
}

int __snprintf_chk(char *to, size_t most, int flag, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = __vsnprintf_chk(to, most, flag, size, format, list);
    va_end(list);
    return result;
}

int __sprintf_chk(char *to, int flag, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = __vsnprintf_chk(to, size, flag, size, format, list);
    va_end(list);
    return result;
}

void *__memcpy_chk(void *to, const void *from, size_t count, size_t size)
{
    if (size < count)
        abort();
    return memcpy(to, from, count);
}

char *__strncpy_chk(char *to, const char *from, size_t count, size_t size)
{
    if (size < count)
        abort();
    return strncpy(to, from, count);
}
