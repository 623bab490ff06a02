// SPDX-License-Identifier: MIT
// Headers that the tests of contexts read, made without the library; and what they say of a context.
#pragma once

#include <openssl/hmac.h>

#include "../core/cmocka_all.h"
#include "greenprof/trace.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define UUID   "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define FIRST  "00-" TRACE "-" PARENT "-01"

// Headers of Debian's python3-osprofiler 3.4.3, with the key "SECRET_KEY".
#define OS_PARENT "11111111-2222-4333-8444-555555555555"
#define OS_INFO                                                                                                        \
    "eyJiYXNlX2lkIjogIjRiZjkyZjM1LTc3YjMtNGRhNi1hM2NlLTkyOWQwZTBlNDczNiIsICJwYXJlbnRf"                                 \
    "aWQiOiAiMTExMTExMTEtMjIyMi00MzMzLTg0NDQtNTU1NTU1NTU1NTU1In0="
#define OS_MAC "97a363e7a2461b0f5c742c454a1a3f790dbfa70f"

prof_context_counts_t counted(void);
int read_one(const char *name, const char *value, prof_context_t *context);
int read_pair(const char *info, const char *mac, prof_context_t *context);
int read_states(const char *one, const char *two, prof_context_t *context);
void assert_trace(const prof_context_t *context);
void assert_empty(const prof_context_t *context);
uint64_t now_ms(void);

// An HMAC in hex.
void sign(const EVP_MD *how, const char *key, const char *text, char *hex);

// As doc/wire.md has it.
void make_own(char *value, const char *key, int64_t age_ms, const char *nonce);
char *fresh_nonce(void);

// A group's set-up: of the keys, one is OSProfiler's and one greenprof's.
int set_keys(void **state);
