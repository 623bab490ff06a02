// SPDX-License-Identifier: MIT
#include "wire/keys.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hex.h"
#include "base/key_list.h"
#include "wire/digest.h"

static struct {
    gp_key_list_t used, fresh;
    char text[GP_KEYS_TEXT_MAX + 1]; // of a file
} * secret;                          // mapped with the first keys

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; // of the keys
static atomic_bool exist;

// --- fork: a child has the keys, whole

static void keys_before_fork(void)
{
    pthread_rwlock_rdlock(&lock);
}

static void keys_in_parent(void)
{
    pthread_rwlock_unlock(&lock);
}

static void keys_in_child(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;
    lock = fresh;
}

// --- HMAC

static size_t keys_size_of(gp_mac_t mac)
{
    return mac == GP_MAC_SHA1 ? 20 : 32;
}

// Load before any coroutine does what OpenSSL's first HMAC needs: loading takes more stack than a coroutine may have.
static bool keys_warm_up(void)
{
    static const gp_key_t key = {.len = 1, .bytes = "k"};
    unsigned char out[GP_DIGEST_MAX];
    return gp_digest(GP_MAC_SHA256, &key, "", 0, out) &&
           (gp_digest(GP_MAC_SHA1, &key, "", 0, out) || !gp_digest_has(GP_MAC_SHA1));
}

// --- setting

static void keys_prepare(void)
{
    void *room = mmap(NULL, sizeof(*secret), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return;
    madvise(room, sizeof(*secret), MADV_DONTDUMP);
    pthread_atfork(keys_before_fork, keys_in_parent, keys_in_child);
    secret = room;
}

static int keys_set_locked(const char *text, size_t len)
{
    int error = len <= GP_KEYS_TEXT_MAX ? gp_key_list_parse(&secret->fresh, text, len) : -E2BIG;
    if (error == 0 && secret->fresh.count > 0 && !keys_warm_up())
        error = -ENOTSUP;
    if (error == 0) {
        secret->used = secret->fresh;
        // Release: partner of the acquire in gp_keys_exist().
        atomic_store_explicit(&exist, secret->used.count > 0, memory_order_release);
    }
    explicit_bzero(&secret->fresh, sizeof(secret->fresh));
    return error;
}

static bool keys_is_prepared(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, keys_prepare);
    return secret != NULL;
}

int gp_keys_set(const char *text, size_t len)
{
    if (!keys_is_prepared())
        return -ENOMEM;
    pthread_rwlock_wrlock(&lock);
    int error = keys_set_locked(text, len);
    pthread_rwlock_unlock(&lock);
    return error;
}

int gp_keys_set_file(const char *path)
{
    if (!keys_is_prepared())
        return -ENOMEM;
    size_t len = 0;
    pthread_rwlock_wrlock(&lock);
    int error = gp_key_list_read_text(path, secret->text, &len, NULL);
    if (error == 0)
        error = keys_set_locked(secret->text, len);
    explicit_bzero(secret->text, sizeof(secret->text));
    pthread_rwlock_unlock(&lock);
    return error;
}

bool gp_keys_exist(void)
{
    return atomic_load_explicit(&exist, memory_order_acquire);
}

// --- use

int gp_keys_sign(gp_mac_t mac, const char *text, size_t len, char hex[GP_MAC_HEX_MAX])
{
    unsigned char made[GP_DIGEST_MAX];
    if (!gp_keys_exist())
        return -ENOKEY;
    pthread_rwlock_rdlock(&lock);
    int error = secret->used.count == 0 ? -ENOKEY : gp_digest(mac, &secret->used.list[0], text, len, made) ? 0 : -EIO;
    pthread_rwlock_unlock(&lock);
    if (error == 0)
        gp_hex_write(hex, made, keys_size_of(mac));
    return error;
}

// In a time that does not tell where they differ.
static bool keys_is_same(const char *one, const char *other, size_t len)
{
    unsigned char differ = 0;
    for (size_t i = 0; i < len; i++)
        differ |= (unsigned char)(one[i] ^ other[i]);
    return differ == 0;
}

bool gp_keys_verify(gp_mac_t mac, const char *text, size_t len, const char *hex, size_t hex_len)
{
    unsigned char made[GP_DIGEST_MAX];
    char made_hex[GP_MAC_HEX_MAX];
    bool is_good = false;
    if (!gp_keys_exist() || hex_len != 2 * keys_size_of(mac))
        return false;
    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < secret->used.count; i++) { // all of them, so that the time does not tell which
        if (!gp_digest(mac, &secret->used.list[i], text, len, made))
            continue;
        gp_hex_write(made_hex, made, keys_size_of(mac));
        is_good |= keys_is_same(made_hex, hex, hex_len);
    }
    pthread_rwlock_unlock(&lock);
    return is_good;
}
