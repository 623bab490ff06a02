// SPDX-License-Identifier: MIT
#include "control/keys.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "live/control_sign.h"
#include "settings.h"

typedef struct keys {
    bool are_missing; // they were asked for
    bool are_of_environment;
    gp_key_list_t list;
} keys_t;

static keys_t *current;       // control's thread's
static keys_t *_Atomic fresh; // not taken by it yet
static atomic_bool is_set;    // by the program: what the environment says is out of date

static keys_t *keys_make(void)
{
    keys_t *keys = mmap(NULL, sizeof(*keys), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (keys == MAP_FAILED)
        return NULL;
    madvise(keys, sizeof(*keys), MADV_DONTDUMP);
    return keys;
}

static keys_t none_to_be_had = {.are_missing = true}; // stands for a list without memory

static void keys_drop(keys_t *keys)
{
    if (keys == NULL || keys == &none_to_be_had)
        return;
    explicit_bzero(keys, sizeof(*keys));
    munmap(keys, sizeof(*keys));
}

static void keys_hand_over(keys_t *keys)
{
    // Release and acquire: partners of those in keys_take(), and of another that hands over.
    keys_drop(atomic_exchange_explicit(&fresh, keys, memory_order_acq_rel));
}

static void keys_take(void)
{
    // Acquire: partner of the release in keys_hand_over().
    keys_t *taken = atomic_exchange_explicit(&fresh, NULL, memory_order_acq_rel);
    if (taken == NULL)
        return;
    keys_drop(current);
    current = taken;
}

void gp_control_keys_read(void)
{
    const char *text = gp_setting(GP_SETTING_HMAC_KEYS), *path = gp_setting(GP_SETTING_HMAC_KEYS_FILE);
    if ((text == NULL && path == NULL) || atomic_load_explicit(&is_set, memory_order_relaxed))
        return;
    int saved = errno;
    keys_t *keys = keys_make();
    if (keys != NULL) {
        int error =
            text != NULL ? gp_key_list_parse(&keys->list, text, strlen(text)) : gp_key_list_read(&keys->list, path);
        keys->are_missing = error != 0 || keys->list.count == 0;
        keys->are_of_environment = true;
    }
    keys_hand_over(keys != NULL ? keys : &none_to_be_had);
    errno = saved;
}

void gp_control_keys_set(const char *text, size_t len)
{
    keys_t *keys = keys_make();
    atomic_store_explicit(&is_set, true, memory_order_relaxed);
    if (keys != NULL)
        keys->are_missing = gp_key_list_parse(&keys->list, text, len) != 0;
    keys_hand_over(keys != NULL ? keys : &none_to_be_had);
}

int gp_control_keys_check(const gp_control_request_t *request, const uint8_t *nonce)
{
    keys_take();
    if (current == NULL || (!current->are_missing && current->list.count == 0))
        return 0;
    if (current->are_missing)
        return -EKEYREVOKED;
    if (nonce == NULL)
        return -ENOKEY;
    return gp_control_is_signed(&current->list, nonce, request) ? 0 : -EKEYREJECTED;
}

void gp_control_keys_forget(void)
{
    keys_take();
    if (current == NULL || !current->are_of_environment)
        return;
    keys_drop(current);
    current = NULL;
}
