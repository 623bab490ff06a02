// SPDX-License-Identifier: MIT
// greenprof's own header: it is accepted once, in time, with the right key.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headers_to_read.h"

static void reads_own_once(void **state)
{
    (void)state;
    char value[256];
    prof_context_t context;
    make_own(value, "third", 1000, fresh_nonce());
    prof_context_counts_t before = counted();
    assert_int_equal(read_one("x-greenprof-context", value, &context), 0);
    assert_trace(&context);
    assert_int_equal(context.parent_id, 0x00f067aa0ba902b7);
    assert_int_equal(context.flags, PROF_CONTEXT_SAMPLED | PROF_CONTEXT_SIGNED | PROF_CONTEXT_PROFILE);
    assert_int_equal(read_one("x-greenprof-context", value, &context), -EACCES);
    assert_empty(&context);
    prof_context_counts_t after = counted();
    assert_int_equal(after.accepted, before.accepted + 1);
    assert_int_equal(after.is_signed, before.is_signed + 1);
    assert_int_equal(after.replayed, before.replayed + 1);
}

static void refuses_tampered_own(void **state)
{
    (void)state;
    char value[256], text[256];
    prof_context_t context;
    make_own(value, "SECRET_KEY", 0, fresh_nonce());
    for (size_t i = 0; value[i] != '\0'; i++) {
        strcpy(text, value);
        text[i] ^= 1;
        assert_int_equal(read_one("X-Greenprof-Context", text, &context), -EACCES);
        strcpy(text, value);
        text[i] = '\0';
        assert_int_equal(read_one("X-Greenprof-Context", text, &context), -EACCES);
        assert_empty(&context);
    }
    strcat(strcpy(text, value), "0");
    assert_int_equal(read_one("X-Greenprof-Context", text, &context), -EACCES);
    prof_header_t twice[] = {{"X-Greenprof-Context", value}, {"X-Greenprof-Context", value}};
    assert_int_equal(prof_context_read(twice, 2, &context), -EACCES);
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), 0); // none of them has used it up
}

static void refuses_other_keys_and_times(void **state)
{
    (void)state;
    char value[256];
    prof_context_t context;
    prof_context_counts_t before = counted();
    make_own(value, "unknown", 0, fresh_nonce());
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), -EACCES);
    make_own(value, "OTHER", 61000, fresh_nonce());
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), -EACCES);
    make_own(value, "OTHER", -60000, fresh_nonce());
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), -EACCES);
    prof_context_counts_t after = counted();
    assert_int_equal(after.signature, before.signature + 1);
    assert_int_equal(after.late, before.late + 2);
    make_own(value, "OTHER", 30000, fresh_nonce());
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), 0);
}

// A nonce that cannot be remembered is refused.
static void refuses_where_full(void **state)
{
    (void)state;
    char value[256], nonce[40];
    prof_context_t context;
    prof_context_counts_t before = counted();
    int good = 0, refused = 0;
    for (int i = 0; i < 80; i++) { // all of them have the same places
        sprintf(nonce, "7777777777777777%016x", i);
        make_own(value, "OTHER", 0, nonce);
        int result = read_one("X-Greenprof-Context", value, &context);
        good += result == 0;
        refused += result == -EACCES;
    }
    assert_int_equal(good, 64);
    assert_int_equal(refused, 16);
    assert_int_equal(counted().full, before.full + 16);
}

// A forked worker refuses what its sister has seen.
static void forked_processes_share_what_was_seen(void **state)
{
    (void)state;
    char value[256];
    prof_context_t context;
    make_own(value, "OTHER", 0, fresh_nonce());
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(read_one("X-Greenprof-Context", value, &context) == 0 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), -EACCES);
}

static void never_is_never(void **state)
{
    (void)state;
    static const char *const good[] = {"always", "signed", "1/1", "1/1000", "slower=20ms", "slower=.5s", "slower=0us"};
    static const char *const bad[] = {"",       "Always",  "1/0",      "1/",         "1/-1",         "1/1x",
                                      "slower", "slower=", "slower=5", "slower=-1s", "slower=1e99s", "slower=nans"};
    char value[256];
    prof_context_t context;
    assert_int_equal(prof_policy("never"), 0);
    make_own(value, "third", 0, fresh_nonce());
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), 0);
    assert_int_equal(context.flags, PROF_CONTEXT_SAMPLED | PROF_CONTEXT_SIGNED);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(prof_policy(bad[i]), -EINVAL);
    assert_int_equal(prof_policy(NULL), -EINVAL);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(prof_policy(good[i]), 0);
        make_own(value, "third", 0, fresh_nonce());
        assert_int_equal(read_one("X-Greenprof-Context", value, &context), 0);
        assert_true(context.flags & PROF_CONTEXT_PROFILE);
    }
    assert_int_equal(prof_policy("signed"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_own_once),
        cmocka_unit_test(refuses_tampered_own),
        cmocka_unit_test(refuses_other_keys_and_times),
        cmocka_unit_test(refuses_where_full),
        cmocka_unit_test(forked_processes_share_what_was_seen),
        cmocka_unit_test(never_is_never),
    };
    return cmocka_run_group_tests(tests, set_keys, NULL);
}
