// SPDX-License-Identifier: MIT
#include "base/number.h"

#include <stdbool.h>

enum { EXPONENT_MAX = 400, DIGITS_MAX = 18 }; // more digits than a double has

typedef struct number {
    uint64_t digits;
    int count, exponent; // of digits that were there; of ten
} number_t;

static bool number_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *number_read_digits(number_t *number, const char *at, bool is_behind_point)
{
    for (; number_is_digit(*at); at++, number->count++) {
        bool has_room = number->digits < UINT64_C(100000000000000000);
        if (has_room)
            number->digits = number->digits * 10 + (uint64_t)(*at - '0');
        number->exponent += !has_room - is_behind_point;
    }
    return at;
}

static const char *number_read_exponent(number_t *number, const char *at)
{
    bool is_signed = at[0] != '\0' && (at[1] == '-' || at[1] == '+');
    const char *digits = at + 1 + is_signed;
    int exponent = 0;
    if ((*at != 'e' && *at != 'E') || !number_is_digit(*digits))
        return at;
    for (; number_is_digit(*digits); digits++)
        exponent = exponent < EXPONENT_MAX ? exponent * 10 + (*digits - '0') : exponent;
    number->exponent += at[1] == '-' ? -exponent : exponent;
    return digits;
}

double gp_number_read(const char *text, const char **end)
{
    number_t number = {0};
    const char *at = text + (*text == '-' || *text == '+');
    at = number_read_digits(&number, at, false);
    if (*at == '.')
        at = number_read_digits(&number, at + 1, true);
    *end = text;
    if (number.count == 0)
        return 0;
    *end = number_read_exponent(&number, at);
    double value = (double)number.digits, power = 1;
    int steps = number.exponent < 0 ? -number.exponent : number.exponent;
    for (int i = 0; i < steps && i < EXPONENT_MAX + DIGITS_MAX; i++)
        power *= 10;
    value = value == 0 ? 0 : number.exponent < 0 ? value / power : value * power;
    return *text == '-' ? -value : value;
}

const char *gp_number_write(char out[GP_NUMBER_SIZE], uint64_t value, unsigned decimals)
{
    char digits[GP_NUMBER_SIZE] = {0}, *at = out;
    unsigned count = 0;
    for (; decimals > 0 && value % 10 == 0; decimals--)
        value /= 10;
    for (; value > 0 || count <= decimals; value /= 10)
        digits[count++] = (char)('0' + value % 10);
    while (count > 0) {
        *at++ = digits[--count];
        if (count == decimals && count > 0)
            *at++ = '.';
    }
    *at = '\0';
    return out;
}
