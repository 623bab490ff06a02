// SPDX-License-Identifier: MIT
// Which requests consumers get, by policy; and nonces, by time.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../core/cmocka_all.h"
#include "wire/keys.h"
#include "wire/nonces.h"
#include "wire/policy.h"

static bool chooses(void)
{
    return gp_policy_chooses(PROF_SPAN_REQUEST, "");
}

// Without a policy: all, and with keys the signed ones.
static void keys_restrict(void **state)
{
    (void)state;
    assert_true(chooses());
    assert_int_equal(gp_keys_set("key", 3), 0);
    assert_false(chooses());
    assert_true(gp_policy_obeys_signed());
    assert_int_equal(gp_policy_set("always"), 0);
    assert_true(chooses());
    assert_int_equal(gp_keys_set("", 0), 0);
}

static void one_in_n(void **state)
{
    (void)state;
    int chosen = 0;
    assert_int_equal(gp_policy_set("1/7"), 0);
    for (int i = 0; i < 700; i++)
        chosen += chooses();
    assert_int_equal(chosen, 100);
}

static void slower_is_decided_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(gp_policy_set("slower=20ms"), 0);
    assert_true(chooses());
    assert_int_equal(gp_policy_least_ns(), 20000000);
    assert_int_equal(gp_policy_set("slower=1.5us"), 0);
    assert_int_equal(gp_policy_least_ns(), 1500);
    assert_int_equal(gp_policy_set("always"), 0);
    assert_int_equal(gp_policy_least_ns(), 0);
}

static void never(void **state)
{
    (void)state;
    assert_int_equal(gp_policy_set("never"), 0);
    assert_false(chooses());
    assert_false(gp_policy_obeys_signed());
    assert_int_equal(gp_policy_set("nearly"), -EINVAL);
    assert_false(gp_policy_obeys_signed());
    assert_int_equal(gp_policy_set("signed"), 0);
    assert_false(chooses());
    assert_true(gp_policy_obeys_signed());
}

// A place is free again when what is in it would be too old to be accepted, and not before.
static void a_nonce_of_before_the_clock_was_set_back_is_refused(void **state)
{
    const uint64_t start = 1800000000000, step = GP_CONTEXT_AGE_MS + 1;
    uint8_t nonce[GP_NONCE_BYTES] = {2, [1] = 1}; // of other places than the other test's
    (void)state;
    assert_int_equal(gp_nonces_prepare(), 0);
    assert_int_equal(gp_nonce_take(nonce, start, start), 0);
    assert_int_equal(gp_nonce_take(nonce, start, start - 1000), -EALREADY);
    for (uint8_t i = 1; i <= GP_NONCE_PLACES; i++) { // every place is another's since
        nonce[15] = i;
        assert_int_equal(gp_nonce_take(nonce, start + step, start + step), 0);
    }
    nonce[15] = 0;
    assert_int_equal(gp_nonce_take(nonce, start, start + 1000), -ETIME);
    nonce[15] = GP_NONCE_PLACES + 1;
    assert_int_equal(gp_nonce_take(nonce, start + 3 * step, start + 3 * step), 0);
}

// Among all threads and processes with a nonce at the same time one gets it, also where others are killed amid it.
static void a_nonce_is_good_once_for_all(void **state)
{
    enum { PROCESSES = 4, NONCES = 20000 };
    const uint64_t now = 1900000000000;
    (void)state;
    _Atomic unsigned *taken =
        mmap(NULL, NONCES * sizeof(*taken), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        if ((children[i] = fork()) == 0) {
            for (uint32_t n = 0; n < NONCES; n++) {
                uint8_t nonce[GP_NONCE_BYTES] = {3};
                uint32_t place = n * 64;
                memcpy(nonce, &place, sizeof(place));
                memcpy(nonce + 10, &n, sizeof(n));
                taken[n] += gp_nonce_take(nonce, now, now) == 0;
            }
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++)
        waitpid(children[i], NULL, 0);
    unsigned more = 0, none = 0;
    for (int n = 0; n < NONCES; n++) {
        more += taken[n] > 1;
        none += taken[n] == 0;
    }
    assert_int_equal(more, 0);
    assert_true(none < NONCES / 2); // where two are in the midst of it, both may be refused
    munmap(taken, NONCES * sizeof(*taken));
}

static void nonces_last_as_long_as_their_contexts(void **state)
{
    (void)state;
    uint8_t nonce[GP_NONCE_BYTES] = {1};
    const uint64_t start = 1790000000000;
    assert_int_equal(gp_nonces_prepare(), 0);
    for (uint8_t i = 0; i < GP_NONCE_PLACES; i++) {
        nonce[15] = i;
        assert_int_equal(gp_nonce_take(nonce, start, start), 0);
        assert_int_equal(gp_nonce_take(nonce, start, start), -EALREADY);
        assert_int_equal(gp_nonce_take(nonce, start, start + GP_CONTEXT_AGE_MS), -EALREADY);
    }
    nonce[15] = GP_NONCE_PLACES;
    assert_int_equal(gp_nonce_take(nonce, start, start + GP_CONTEXT_AGE_MS), -ENOSPC);
    assert_int_equal(gp_nonce_take(nonce, start + 1, start + GP_CONTEXT_AGE_MS + 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_restrict),
        cmocka_unit_test(one_in_n),
        cmocka_unit_test(slower_is_decided_at_the_end),
        cmocka_unit_test(never),
        cmocka_unit_test(nonces_last_as_long_as_their_contexts),
        cmocka_unit_test(a_nonce_of_before_the_clock_was_set_back_is_refused),
        cmocka_unit_test(a_nonce_is_good_once_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
