// SPDX-License-Identifier: MIT
#include "wire/policy.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "wire/keys.h"

enum policy { UNSET, ALWAYS, NEVER, SIGNED, ONE_IN, SLOWER };

#define NUMBER_MAX ((uint64_t)1 << 48)

// The policy in the low byte, its N or ns above: so both change at once.
static _Atomic uint64_t current;
static _Atomic uint64_t requests;

static uint64_t policy_packed(enum policy policy, uint64_t number)
{
    return number << 8 | policy;
}

static uint64_t policy_one_in(const char *text)
{
    char *end;
    uint64_t number = *text >= '1' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    return number > 0 && number < NUMBER_MAX && *end == '\0' ? policy_packed(ONE_IN, number) : UNSET;
}

static uint64_t policy_slower(const char *text)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    const char *unit;
    double number = (*text >= '0' && *text <= '9') || *text == '.' ? gp_number_read(text, &unit) : -1;
    if (!(number >= 0))
        return UNSET;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].unit) == 0 && number * units[i].ns < (double)NUMBER_MAX)
            return policy_packed(SLOWER, (uint64_t)(number * units[i].ns));
    return UNSET;
}

static uint64_t policy_parse(const char *text)
{
    static const char *const names[] = {[ALWAYS] = "always", [NEVER] = "never", [SIGNED] = "signed"};
    for (unsigned i = ALWAYS; i <= SIGNED; i++)
        if (strcmp(text, names[i]) == 0)
            return policy_packed(i, 0);
    if (strncmp(text, "1/", 2) == 0)
        return policy_one_in(text + 2);
    return strncmp(text, "slower=", 7) == 0 ? policy_slower(text + 7) : UNSET;
}

int gp_policy_set(const char *text)
{
    uint64_t policy = text != NULL ? policy_parse(text) : UNSET;
    if (policy == UNSET)
        return -EINVAL;
    atomic_store_explicit(&current, policy, memory_order_relaxed);
    return 0;
}

static enum policy policy_get(uint64_t *number)
{
    uint64_t policy = atomic_load_explicit(&current, memory_order_relaxed);
    *number = policy >> 8;
    return (enum policy)(policy & 0xff);
}

bool gp_policy_chooses(prof_span_kind_t kind, const char *name)
{
    uint64_t number;
    enum policy policy = policy_get(&number);
    (void)kind;
    (void)name;
    if (policy == ONE_IN)
        return atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed) % number == 0;
    if (policy == UNSET)
        return !gp_keys_exist();
    return policy != NEVER && policy != SIGNED;
}

bool gp_policy_obeys_signed(void)
{
    uint64_t number;
    return policy_get(&number) != NEVER;
}

uint64_t gp_policy_least_ns(void)
{
    uint64_t number;
    return policy_get(&number) == SLOWER ? number : 0;
}
