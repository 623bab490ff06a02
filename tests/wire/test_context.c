// SPDX-License-Identifier: MIT
// Contexts in headers: what is read, and everything that is refused.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "headers_to_read.h"

// --- W3C

static void reads_traceparent(void **state)
{
    (void)state;
    static const char *const good[] = {FIRST, "  " FIRST "\r\n", "cc-" TRACE "-" PARENT "-01-what-comes-later",
                                       "00-" TRACE "-" PARENT "-03"};
    prof_context_t context;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(read_one("TraceParent", good[i], &context), 0);
        assert_trace(&context);
        assert_int_equal(context.parent_id, 0x00f067aa0ba902b7);
        assert_int_equal(context.flags, PROF_CONTEXT_SAMPLED);
    }
    assert_int_equal(read_one("traceparent", "00-" TRACE "-" PARENT "-00", &context), 0);
    assert_int_equal(context.flags, 0);
}

static void refuses_bad_traceparents(void **state)
{
    (void)state;
    char longer[600] = "cc-" TRACE "-" PARENT "-01-";
    memset(longer + strlen(longer), 'a', 500);
    const char *const bad[] = {"",
                               TRACE,
                               UUID,
                               "00-" TRACE "-" PARENT,
                               "00-" TRACE "-" PARENT "-01-x",
                               "ff-" TRACE "-" PARENT "-01",
                               "00-" TRACE "-0000000000000000-01",
                               "00-00000000000000000000000000000000-" PARENT "-01",
                               "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
                               "00-" TRACE "-" PARENT "-0g",
                               "00_" TRACE "-" PARENT "-01",
                               longer};
    prof_context_t context;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        prof_context_counts_t before = counted();
        assert_int_equal(read_one("traceparent", bad[i], &context), -ENOENT);
        assert_empty(&context);
        prof_context_counts_t after = counted();
        assert_int_equal(after.malformed + after.oversized, before.malformed + before.oversized + 1);
    }
    prof_header_t twice[] = {{"traceparent", FIRST}, {"Traceparent", FIRST}};
    assert_int_equal(prof_context_read(twice, 2, &context), -ENOENT);
    prof_header_t nothing[] = {{NULL, FIRST}, {"traceparent", NULL}, {"Host", "x"}};
    assert_int_equal(prof_context_read(nothing, 3, &context), -ENOENT);
    assert_int_equal(prof_context_read(NULL, 0, &context), -ENOENT);
    assert_int_equal(prof_context_read(NULL, 1, &context), -EINVAL);
    assert_int_equal(prof_context_read(twice, 1, NULL), -EINVAL);
    context.size = 8;
    assert_int_equal(prof_context_read(twice, 1, &context), -EINVAL);
}

static void reads_tracestate(void **state)
{
    (void)state;
    prof_context_t context;
    assert_int_equal(read_states("congo=t61rcWkgMzE, rojo=00f067aa0ba902b7", ",a@b=c d,", &context), 0);
    assert_string_equal(context.tracestate, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7,a@b=c d");
    static const char *const bad[] = {"a", "=b", "a=", "A=b", "a=b=c", "a=b\rc", "a=\x01", "a=\xc3\xa4"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_states("good=1", bad[i], &context), 0);
        assert_string_equal(context.tracestate, "");
        assert_trace(&context);
    }
    char many[40 * 5] = "";
    for (int i = 0; i < 33; i++)
        sprintf(many + strlen(many), "k%d=v,", i);
    assert_int_equal(read_states(many, NULL, &context), 0);
    assert_string_equal(context.tracestate, "");
}

// Members are left out whole where there are more than 512 bytes of them.
static void cuts_tracestate_between_members(void **state)
{
    (void)state;
    prof_context_t context;
    char text[3 * 251] = "";
    for (int i = 0; i < 3; i++) {
        sprintf(text + strlen(text), "%sk%d=", i > 0 ? "," : "", i);
        memset(text + strlen(text), 'v', 240);
    }
    assert_int_equal(read_states(text, NULL, &context), 0);
    assert_int_equal(strlen(context.tracestate), 2 * 243 + 1);
    assert_memory_equal(context.tracestate, text, 2 * 243 + 1);
}

// --- OSProfiler

static void reads_osprofiler(void **state)
{
    (void)state;
    prof_context_t context;
    assert_int_equal(read_pair(OS_INFO, OS_MAC, &context), 0);
    assert_trace(&context);
    assert_int_equal(context.parent_id, 0x8444555555555555);
    assert_string_equal(context.parent_uuid, OS_PARENT);
    assert_int_equal(context.flags,
                     PROF_CONTEXT_SAMPLED | PROF_CONTEXT_SIGNED | PROF_CONTEXT_PROFILE | PROF_CONTEXT_OSPROFILER);
}

static void refuses_tampered_osprofiler(void **state)
{
    (void)state;
    prof_context_t context;
    char text[sizeof(OS_INFO)];
    for (size_t i = 0; i + 1 < sizeof(OS_INFO); i++) {
        memcpy(text, OS_INFO, sizeof(text));
        text[i] ^= 1;
        assert_int_equal(read_pair(text, OS_MAC, &context), -EACCES);
        assert_empty(&context);
        memcpy(text, OS_INFO, sizeof(text));
        text[i] = '\0'; // cut off
        assert_int_equal(read_pair(text, OS_MAC, &context), -EACCES);
    }
    for (size_t i = 0; i + 1 < sizeof(OS_MAC); i++) {
        memcpy(text, OS_MAC, sizeof(OS_MAC));
        text[i] ^= 1;
        assert_int_equal(read_pair(OS_INFO, text, &context), -EACCES);
        memcpy(text, OS_MAC, sizeof(OS_MAC));
        text[i] = '\0';
        assert_int_equal(read_pair(OS_INFO, text, &context), -EACCES);
    }
    assert_int_equal(read_one("X-Trace-Info", OS_INFO, &context), -ENOENT);
    assert_int_equal(read_one("X-Trace-HMAC", OS_MAC, &context), -ENOENT);
}

// Signed by a key, and still nothing that OSProfiler's client writes.
static void refuses_malformed_osprofiler(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "eyJ",                                                                                  // no whole groups
        "AAA*",                                                                                 // no base64url
        "e30=",                                                                                 // {}
        "W10=",                                                                                 // []
        "eyJiYXNlX2lkIjogIngifQ==",                                                             // {"base_id": "x"}
        "eyJiYXNlX2lkIjogMX0=",                                                                 // {"base_id": 1}
        "eyJiYXNlX2lkIjogbnVsbCwgInBhcmVudF9pZCI6IG51bGx9",                                     // nulls
        "eyJiYXNlX2lkIjogIjRiZjkyZjM1LTc3YjMtNGRhNi1hM2NlLTkyOWQwZTBlNDczNiIsICJ4IjogInkifQ==", // a third key
        "eyJiYXNlX2lkIjogIjRiZjkyZjM1LTc3YjMtNGRhNi1hM2NlLTkyOWQwZTBlNDczNiI=",                 // cut off
        "eyJiYXNlX2lkIjogIjAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAwMDAwMDAwMDAwMCJ9",                 // none
    };
    prof_context_t context;
    char mac[65];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sign(EVP_sha1(), "third", bad[i], mac);
        prof_context_counts_t before = counted();
        assert_int_equal(read_pair(bad[i], mac, &context), -EACCES);
        assert_empty(&context);
        assert_int_equal(counted().malformed, before.malformed + 1);
    }
    static char longer[1 << 20];
    memset(longer, 'A', sizeof(longer) - 1);
    sign(EVP_sha1(), "third", longer, mac);
    prof_context_counts_t before = counted();
    assert_int_equal(read_pair(longer, mac, &context), -EACCES);
    assert_int_equal(counted().oversized, before.oversized + 1);
}

// --- both, and neither

static void prefers_what_is_signed(void **state)
{
    (void)state;
    char value[256];
    make_own(value, "third", 0, fresh_nonce());
    prof_header_t headers[] = {{"traceparent", FIRST},
                               {"tracestate", "a=b"},
                               {"X-Trace-Info", OS_INFO},
                               {"X-Trace-HMAC", OS_MAC},
                               {"X-Greenprof-Context", value}};
    prof_context_t context = PROF_CONTEXT_INIT;
    assert_int_equal(prof_context_read(headers, 5, &context), 0);
    assert_int_equal(context.flags & (PROF_CONTEXT_SIGNED | PROF_CONTEXT_OSPROFILER), PROF_CONTEXT_SIGNED);
    assert_string_equal(context.tracestate, "a=b");
    // A replay beside the good pair: the replay counts.
    assert_int_equal(prof_context_read(headers, 5, &context), 0);
    assert_true(context.flags & PROF_CONTEXT_OSPROFILER);
    // Beside a traceparent only: the ids, and no right.
    headers[2].value = "tampered";
    assert_int_equal(prof_context_read(headers, 5, &context), -EACCES);
    assert_trace(&context);
    assert_int_equal(context.flags, PROF_CONTEXT_SAMPLED);
    // A tracestate says nothing of another trace.
    make_own(value, "third", 0, fresh_nonce());
    headers[0].value = "00-11111111111111111111111111111111-" PARENT "-01";
    assert_int_equal(prof_context_read(headers, 5, &context), 0);
    assert_string_equal(context.tracestate, "");
}

static void without_keys_signed_headers_are_passed_over(void **state)
{
    (void)state;
    char value[256], text[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context;
    make_own(value, "third", 0, fresh_nonce());
    assert_int_equal(prof_hmac_keys(NULL), 0);
    prof_context_counts_t before = counted(), after;
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), -ENOENT);
    assert_int_equal(read_pair(OS_INFO, OS_MAC, &context), -ENOENT);
    after = counted();
    assert_memory_equal(&after, &before, sizeof(before));
    assert_int_equal(read_one("traceparent", FIRST, &context), 0);
    assert_int_equal(prof_context_write("greenprof", &context, text, sizeof(text)), -ENOKEY);
    assert_int_equal(prof_context_write("osprofiler", &context, text, sizeof(text)), -ENOKEY);
    assert_true(prof_context_write("w3c", &context, text, sizeof(text)) > 0);
    assert_int_equal(set_keys(NULL), 0);
}

static void keys_are_bounded(void **state)
{
    (void)state;
    char value[256], list[17 * 260] = "", key[300];
    prof_context_t context;
    memset(key, 'k', sizeof(key));
    key[257] = '\0';
    assert_int_equal(prof_hmac_keys(key), -E2BIG);
    for (int i = 0; i < 17; i++)
        sprintf(list + strlen(list), "key%d,", i);
    assert_int_equal(prof_hmac_keys(list), -E2BIG);
    make_own(value, "third", 0, fresh_nonce()); // the keys before are still there
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), 0);
    key[256] = '\0';
    assert_int_equal(prof_hmac_keys(key), 0);
    make_own(value, key, 0, fresh_nonce());
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), 0);
    make_own(value, "third", 0, fresh_nonce()); // rotated out
    assert_int_equal(read_one("X-Greenprof-Context", value, &context), -EACCES);
    assert_int_equal(set_keys(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_traceparent),
        cmocka_unit_test(refuses_bad_traceparents),
        cmocka_unit_test(reads_tracestate),
        cmocka_unit_test(cuts_tracestate_between_members),
        cmocka_unit_test(reads_osprofiler),
        cmocka_unit_test(refuses_tampered_osprofiler),
        cmocka_unit_test(refuses_malformed_osprofiler),
        cmocka_unit_test(prefers_what_is_signed),
        cmocka_unit_test(without_keys_signed_headers_are_passed_over),
        cmocka_unit_test(keys_are_bounded),
    };
    return cmocka_run_group_tests(tests, set_keys, NULL);
}
