// SPDX-License-Identifier: MIT
#include "not_known.h"

#include <stdarg.h>
#include <stdio.h>

static gp_not_known_look_t *looks;
static _Atomic(const gp_not_known_t *) latest;

void gp_not_known_tell(gp_not_known_t *fact, const char *format, ...)
{
    va_list arguments;
    if (atomic_flag_test_and_set_explicit(&fact->is_taken, memory_order_relaxed))
        return;
    va_start(arguments, format);
    vsnprintf(fact->text, sizeof(fact->text), format, arguments);
    va_end(arguments);
    fact->next = atomic_load_explicit(&latest, memory_order_relaxed);
    // Release: partner of the acquire below.
    while (
        !atomic_compare_exchange_weak_explicit(&latest, &fact->next, fact, memory_order_release, memory_order_relaxed))
        continue;
}

void gp_not_known_look_add(gp_not_known_look_t *look)
{
    look->next = looks;
    looks = look;
}

void gp_not_known_look(void)
{
    for (const gp_not_known_look_t *look = looks; look != NULL; look = look->next)
        look->look();
}

const gp_not_known_t *gp_not_known_latest(void)
{
    return atomic_load_explicit(&latest, memory_order_acquire);
}

void gp_not_known_list(const char *list[GP_NOT_KNOWN_LISTED + 1])
{
    size_t count = 0;
    for (const gp_not_known_t *fact = gp_not_known_latest(); fact != NULL && count < GP_NOT_KNOWN_LISTED;
         fact = fact->next)
        list[count++] = fact->text;
    list[count] = NULL;
}

size_t gp_not_known_words(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (const gp_not_known_t *fact = gp_not_known_latest(); fact != NULL && used < size; fact = fact->next)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", fact->text);
    return used < size ? used : size - 1;
}
