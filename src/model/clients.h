// SPDX-License-Identifier: MIT
// Libraries that have spans for their calls, within the calling request, and the lists by which they are switched:
// GREENPROF_SPANS, `greenprof start PID --spans`.
//
// A list has words with commas, blanks or lines between: the name of a library, -NAME, all, none. With a -NAME in it
// the list is a change of what holds, else all that is switched on.
#pragma once

#include <stddef.h>
#include <stdint.h>

// X(ID, name, is it only switched on where it is named? as it changes what others are told)
#define GP_CLIENTS(X)                                                                                                  \
    X(SQLITE, "sqlite", 0)                                                                                             \
    X(LIBPQ, "libpq", 0)                                                                                               \
    X(LIBCURL, "libcurl", 0)                                                                                           \
    X(HIREDIS, "hiredis", 0)                                                                                           \
    X(LIBCURL_HEADERS, "libcurl-headers", 1)                                                                           \
    X(AIOHTTP, "aiohttp", 0)                                                                                           \
    X(ASYNCPG, "asyncpg", 0)                                                                                           \
    X(GRPC, "grpc", 0)                                                                                                 \
    X(HTTPX, "httpx", 0)                                                                                               \
    X(KOMBU, "kombu", 0)                                                                                               \
    X(MEMCACHE, "memcache", 0)                                                                                         \
    X(OSLO_CONCURRENCY, "oslo_concurrency", 0)                                                                         \
    X(OSLO_MESSAGING, "oslo_messaging", 0)                                                                             \
    X(OSPROFILER, "osprofiler", 1)                                                                                     \
    X(PIKA, "pika", 0)                                                                                                 \
    X(PSYCOPG, "psycopg", 0)                                                                                           \
    X(PYMEMCACHE, "pymemcache", 0)                                                                                     \
    X(PYMONGO, "pymongo", 0)                                                                                           \
    X(PYMYSQL, "pymysql", 0)                                                                                           \
    X(REDIS, "redis", 0)                                                                                               \
    X(SQLALCHEMY, "sqlalchemy", 0)                                                                                     \
    X(SUBPROCESS, "subprocess", 0)                                                                                     \
    X(URLLIB3, "urllib3", 0)                                                                                           \
    X(HEADERS, "headers", 1) // of Python's clients: the trace goes with what they send

#define GP_CLIENT_ID(id, name, is_named) GP_CLIENT_##id,
typedef enum gp_client { GP_CLIENTS(GP_CLIENT_ID) GP_CLIENTS_COUNT } gp_client_t;
#undef GP_CLIENT_ID

#define GP_CLIENT_BIT(client) (1ull << (client))

enum { GP_CLIENTS_LIST_SIZE = 512 };

extern const char *const gp_client_names[GP_CLIENTS_COUNT];

// The bits of those that are on where nothing is said.
uint64_t gp_clients_standard(void);

// Obey a list. Words that are none of these are passed over.
//   on: the bits of what is switched on before, and after.
// Returns the first word that was passed over, of *len bytes; NULL = there is none.
const char *gp_clients_obey(const char *list, uint64_t *on, size_t *len);
