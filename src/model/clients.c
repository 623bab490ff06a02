// SPDX-License-Identifier: MIT
#include "model/clients.h"

#include <stdbool.h>
#include <string.h>

#define NAME(id, name, is_named) [GP_CLIENT_##id] = (name),
const char *const gp_client_names[GP_CLIENTS_COUNT] = {GP_CLIENTS(NAME)};
#undef NAME

static const char between[] = ", \t\r\n";

uint64_t gp_clients_standard(void)
{
#define BIT(id, name, is_named) | ((is_named) ? 0 : GP_CLIENT_BIT(GP_CLIENT_##id))
    return 0 GP_CLIENTS(BIT);
#undef BIT
}

static bool clients_is_word(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(word, name, len) == 0;
}

// The bits that a word without its sign stands for; 0 = none.
static uint64_t clients_bits_of(const char *word, size_t len)
{
    for (gp_client_t i = 0; i < GP_CLIENTS_COUNT; i++)
        if (clients_is_word(word, len, gp_client_names[i]))
            return GP_CLIENT_BIT(i);
    return clients_is_word(word, len, "all") ? gp_clients_standard() : 0;
}

static bool clients_is_change(const char *list)
{
    for (const char *at = list + strspn(list, between); *at != '\0'; at += strspn(at, between)) {
        if (*at == '-')
            return true;
        at += strcspn(at, between);
    }
    return false;
}

const char *gp_clients_obey(const char *list, uint64_t *on, size_t *len)
{
    const char *unknown = NULL;
    uint64_t all = clients_is_change(list) ? *on : 0;
    for (const char *at = list + strspn(list, between); *at != '\0'; at += strspn(at, between)) {
        size_t word = strcspn(at, between), sign = *at == '-';
        uint64_t bits = clients_bits_of(at + sign, word - sign);
        if (clients_is_word(at, word, "none"))
            all = 0;
        else if (bits != 0)
            all = sign ? all & ~bits : all | bits;
        else if (unknown == NULL) {
            unknown = at;
            *len = word;
        }
        at += word;
    }
    *on = all;
    return unknown;
}
