// SPDX-License-Identifier: MIT
#include "signal/language.h"

gp_language_t *_Atomic gp_languages;
const gp_language_t *_Atomic gp_language;
_Atomic bool gp_language_reads;
_Atomic int gp_language_recorders;
_Atomic bool gp_language_is_left;
int (*_Atomic gp_language_attach)(void);
void (*_Atomic gp_language_attach_soon)(void);

void gp_language_add(gp_language_t *language)
{
    gp_language_t *_Atomic *end = &gp_languages;
    gp_language_t *other = NULL;
    // Release: partner of the acquires where the list is read.
    while (!atomic_compare_exchange_weak_explicit(end, &other, language, memory_order_acq_rel, memory_order_acquire))
        if (other != NULL) {
            end = &other->next;
            other = NULL;
        }
}

static const gp_language_t *language_after(const gp_language_t *before)
{
    return atomic_load_explicit(before != NULL ? &before->next : &gp_languages, memory_order_acquire);
}

const gp_language_t *gp_language_of(unsigned number)
{
    const gp_language_t *language = language_after(NULL);
    while (language != NULL && language->number != number)
        language = language_after(language);
    return language;
}

void gp_language_follow(bool is_attached)
{
    for (const gp_language_t *language = language_after(NULL); language != NULL; language = language_after(language))
        if (language->follow != NULL)
            language->follow(is_attached);
}

void gp_language_before_drain(void)
{
    for (const gp_language_t *language = language_after(NULL); language != NULL; language = language_after(language))
        if (language->before_drain != NULL)
            language->before_drain();
}

void gp_language_after_drain(void)
{
    for (const gp_language_t *language = language_after(NULL); language != NULL; language = language_after(language))
        if (language->after_drain != NULL)
            language->after_drain();
}
