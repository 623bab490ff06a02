// SPDX-License-Identifier: MIT
// Contexts in headers: what is read, what is written, and everything that is refused.
#include <errno.h>
#include <inttypes.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../core/cmocka_all.h"
#include "greenprof/trace.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define UUID   "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define FIRST  "00-" TRACE "-" PARENT "-01"

// Of Debian's python3-osprofiler 3.4.3, with the key "SECRET_KEY".
#define OS_PARENT "11111111-2222-4333-8444-555555555555"
static const char os_info[] = "eyJiYXNlX2lkIjogIjRiZjkyZjM1LTc3YjMtNGRhNi1hM2NlLTkyOWQwZTBlNDczNiIsICJwYXJlbnRf"
                              "aWQiOiAiMTExMTExMTEtMjIyMi00MzMzLTg0NDQtNTU1NTU1NTU1NTU1In0=";
static const char os_mac[] = "97a363e7a2461b0f5c742c454a1a3f790dbfa70f";

static prof_context_counts_t counted(void)
{
    prof_context_counts_t counts = {.size = sizeof(counts)};
    assert_int_equal(prof_context_counts(&counts), 0);
    return counts;
}

static int read_one(const char *name, const char *value, prof_context_t *context)
{
    prof_header_t header = {name, value};
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(&header, 1, context);
}

static int read_pair(const char *info, const char *mac, prof_context_t *context)
{
    prof_header_t headers[] = {{"X-Trace-Info", info}, {"x-trace-hmac", mac}};
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(headers, 2, context);
}

static void assert_trace(const prof_context_t *context)
{
    char hex[PROF_TRACE_HEX_SIZE];
    prof_trace_to_hex(&context->trace, hex);
    assert_string_equal(hex, TRACE);
}

static void assert_empty(const prof_context_t *context)
{
    static const prof_context_t empty = PROF_CONTEXT_INIT;
    assert_memory_equal(context, &empty, sizeof(empty));
}

static void hex_of(const unsigned char *bytes, unsigned len, char *hex)
{
    for (unsigned i = 0; i < len; i++)
        sprintf(hex + 2 * i, "%02x", bytes[i]);
}

static void sign(const EVP_MD *how, const char *key, const char *text, char *hex)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    assert_non_null(HMAC(how, key, (int)strlen(key), (const unsigned char *)text, strlen(text), mac, &len));
    hex_of(mac, len, hex);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// As doc/wire.md has it, made without the library.
static void make_own(char *value, const char *key, int64_t age_ms, const char *nonce)
{
    char mac[65];
    int len = sprintf(value, "v1;trace=" TRACE ";parent=" PARENT ";time=%" PRIu64 ";nonce=%s",
                      now_ms() - (uint64_t)age_ms, nonce);
    sign(EVP_sha256(), key, value, mac);
    sprintf(value + len, ";mac=%s", mac);
}

static char *fresh_nonce(void)
{
    static char nonce[33];
    static uint64_t number;
    number++;
    sprintf(nonce, "%016" PRIx64 "%016" PRIx64, number << 32 | (uint64_t)getpid(), number);
    return nonce;
}

static int set_keys(void **state)
{
    (void)state;
    return prof_hmac_keys("OTHER, SECRET_KEY ,third");
}

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

static int read_states(const char *one, const char *two, prof_context_t *context)
{
    prof_header_t headers[] = {{"tracestate", one}, {"traceparent", FIRST}, {"TraceState", two}};
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(headers, two != NULL ? 3 : 2, context);
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
    assert_int_equal(read_pair(os_info, os_mac, &context), 0);
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
    char text[sizeof(os_info)];
    for (size_t i = 0; i + 1 < sizeof(os_info); i++) {
        memcpy(text, os_info, sizeof(text));
        text[i] ^= 1;
        assert_int_equal(read_pair(text, os_mac, &context), -EACCES);
        assert_empty(&context);
        memcpy(text, os_info, sizeof(text));
        text[i] = '\0'; // cut off
        assert_int_equal(read_pair(text, os_mac, &context), -EACCES);
    }
    for (size_t i = 0; i + 1 < sizeof(os_mac); i++) {
        memcpy(text, os_mac, sizeof(os_mac));
        text[i] ^= 1;
        assert_int_equal(read_pair(os_info, text, &context), -EACCES);
        memcpy(text, os_mac, sizeof(os_mac));
        text[i] = '\0';
        assert_int_equal(read_pair(os_info, text, &context), -EACCES);
    }
    assert_int_equal(read_one("X-Trace-Info", os_info, &context), -ENOENT);
    assert_int_equal(read_one("X-Trace-HMAC", os_mac, &context), -ENOENT);
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

// --- greenprof's own

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

// What cannot be remembered is refused.
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

// --- both, and neither

static void prefers_what_is_signed(void **state)
{
    (void)state;
    char value[256];
    make_own(value, "third", 0, fresh_nonce());
    prof_header_t headers[] = {{"traceparent", FIRST},
                               {"tracestate", "a=b"},
                               {"X-Trace-Info", os_info},
                               {"X-Trace-HMAC", os_mac},
                               {"X-Greenprof-Context", value}};
    prof_context_t context = PROF_CONTEXT_INIT;
    assert_int_equal(prof_context_read(headers, 5, &context), 0);
    assert_int_equal(context.flags & (PROF_CONTEXT_SIGNED | PROF_CONTEXT_OSPROFILER), PROF_CONTEXT_SIGNED);
    assert_string_equal(context.tracestate, "a=b");
    // A replay of it beside the good pair: that is what counts.
    assert_int_equal(prof_context_read(headers, 5, &context), 0);
    assert_true(context.flags & PROF_CONTEXT_OSPROFILER);
    // Beside a traceparent only: the ids, and no right.
    headers[2].value = "tampered";
    assert_int_equal(prof_context_read(headers, 5, &context), -EACCES);
    assert_trace(&context);
    assert_int_equal(context.flags, PROF_CONTEXT_SAMPLED);
    // Of another trace the tracestate says nothing.
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
    assert_int_equal(read_pair(os_info, os_mac, &context), -ENOENT);
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

// --- writing

static int read_lines(char *lines, prof_context_t *context)
{
    prof_header_t headers[4];
    size_t count = 0;
    for (char *line = lines, *end; (end = strstr(line, "\r\n")) != NULL; line = end + 2) {
        char *colon = strchr(line, ':');
        assert_true(colon != NULL && colon < end && count < 4);
        *end = *colon = '\0';
        headers[count++] = (prof_header_t){line, colon + 1};
    }
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(headers, count, context);
}

static void reads_what_it_writes(void **state)
{
    (void)state;
    static const char *const formats[] = {"w3c", "osprofiler", "greenprof"};
    for (size_t i = 0; i < 3; i++) {
        char text[PROF_CONTEXT_TEXT_SIZE];
        prof_context_t context, again;
        assert_int_equal(read_states("a=b,c=d", NULL, &context), 0);
        ssize_t len = prof_context_write(formats[i], &context, text, sizeof(text));
        assert_int_equal(len, strlen(text));
        assert_int_equal(prof_context_write(formats[i], &context, text, (size_t)len), -ENOSPC);
        assert_int_equal(prof_context_write(formats[i], &context, text, (size_t)len + 1), len);
        assert_int_equal(read_lines(text, &again), 0);
        assert_trace(&again);
        assert_int_equal(again.parent_id, context.parent_id);
        assert_string_equal(again.tracestate, i == 0 ? "a=b,c=d" : "");
        assert_int_equal(again.flags & PROF_CONTEXT_SIGNED, i > 0 ? PROF_CONTEXT_SIGNED : 0);
    }
}

static void writes_osprofilers_own_bytes(void **state)
{
    (void)state;
    char text[PROF_CONTEXT_TEXT_SIZE], expected[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context;
    assert_int_equal(prof_hmac_keys("SECRET_KEY"), 0);
    assert_int_equal(read_pair(os_info, os_mac, &context), 0);
    assert_true(prof_context_write("osprofiler", &context, text, sizeof(text)) > 0);
    sprintf(expected, "X-Trace-Info: %s\r\nX-Trace-HMAC: %s\r\n", os_info, os_mac);
    assert_string_equal(text, expected);
    context.parent_id++; // a span of this process
    assert_true(prof_context_write("osprofiler", &context, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_string_equal(context.parent_uuid, "00000000-0000-0000-8444-555555555556");
    context.parent_id = 0; // none: OSProfiler calls the request by the trace's id
    assert_true(prof_context_write("osprofiler", &context, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_string_equal(context.parent_uuid, UUID);
    assert_int_equal(set_keys(NULL), 0);
}

static void refuses_to_write(void **state)
{
    (void)state;
    char text[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context = PROF_CONTEXT_INIT;
    assert_int_equal(prof_context_write("w3c", &context, text, sizeof(text)), -ENOENT);
    assert_int_equal(read_one("traceparent", FIRST, &context), 0);
    assert_int_equal(prof_context_write("b3", &context, text, sizeof(text)), -EINVAL);
    assert_int_equal(prof_context_write(NULL, &context, text, sizeof(text)), -EINVAL);
    strcpy(context.tracestate, "a=b\r\nX-Admin: 1");
    assert_int_equal(prof_context_write("w3c", &context, text, sizeof(text)), -EINVAL);
    memset(context.tracestate, 'a', sizeof(context.tracestate));
    assert_int_equal(prof_context_write("w3c", &context, text, sizeof(text)), -EINVAL);
}

static void writes_that_of_the_coroutine(void **state)
{
    (void)state;
    char text[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context;
    prof_trace_id_t id;
    prof_trace_clear();
    assert_int_equal(prof_context_write("w3c", NULL, text, sizeof(text)), -ENOENT);
    assert_int_equal(prof_trace_parse(TRACE, &id), 0);
    assert_int_equal(prof_trace_set(&id), 0);
    assert_true(prof_context_write("w3c", NULL, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_trace(&context);
    assert_true(context.parent_id != 0); // W3C has no "none"
    assert_true(prof_context_write("greenprof", NULL, text, sizeof(text)) > 0);
    assert_int_equal(read_lines(text, &context), 0);
    assert_int_equal(context.parent_id, 0);
    prof_trace_clear();
}

// --- on a coroutine's stack

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 1 << 18 }; // they need more
#else
enum { STACK = 16384 };
#endif
static ucontext_t main_context, small_context;
static char own_value[256];
static int small_results[3];

static void on_small_stack(void)
{
    char text[PROF_CONTEXT_TEXT_SIZE];
    prof_context_t context;
    small_results[0] = read_one("X-Greenprof-Context", own_value, &context);
    small_results[1] = read_pair(os_info, os_mac, &context);
    small_results[2] = (int)prof_context_write("greenprof", &context, text, sizeof(text));
}

static void small_stacks_are_enough(void **state)
{
    (void)state;
    char *stack = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stack != MAP_FAILED);
    assert_int_equal(mprotect(stack, 4096, PROT_NONE), 0);
    make_own(own_value, "third", 0, fresh_nonce());
    assert_int_equal(getcontext(&small_context), 0);
    small_context.uc_stack.ss_sp = stack + 4096;
    small_context.uc_stack.ss_size = STACK;
    small_context.uc_link = &main_context;
    makecontext(&small_context, on_small_stack, 0);
    assert_int_equal(swapcontext(&main_context, &small_context), 0);
    assert_int_equal(small_results[0], 0);
    assert_int_equal(small_results[1], 0);
    assert_true(small_results[2] > 0);
    munmap(stack, STACK + 4096);
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
        cmocka_unit_test(reads_own_once),
        cmocka_unit_test(refuses_tampered_own),
        cmocka_unit_test(refuses_other_keys_and_times),
        cmocka_unit_test(refuses_where_full),
        cmocka_unit_test(forked_processes_share_what_was_seen),
        cmocka_unit_test(never_is_never),
        cmocka_unit_test(prefers_what_is_signed),
        cmocka_unit_test(without_keys_signed_headers_are_passed_over),
        cmocka_unit_test(keys_are_bounded),
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(writes_osprofilers_own_bytes),
        cmocka_unit_test(refuses_to_write),
        cmocka_unit_test(writes_that_of_the_coroutine),
        cmocka_unit_test(small_stacks_are_enough),
    };
    return cmocka_run_group_tests(tests, set_keys, NULL);
}
