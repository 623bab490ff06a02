// SPDX-License-Identifier: MIT
#include "database.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const schema = "PRAGMA journal_mode = OFF;"
                                  "PRAGMA synchronous = OFF;"
                                  "CREATE TABLE orders(id INTEGER PRIMARY KEY, day INTEGER, customer TEXT, region TEXT,"
                                  "                    product TEXT, quantity INTEGER, price_cents INTEGER, note TEXT);"
                                  "BEGIN";

static const char *const regions[] = {"north", "south", "east", "west", "islands", "overseas"};
static const char *const adjectives[] = {"brass", "copper", "folding", "heavy",   "light",
                                         "oak",   "round",  "silent",  "spotted", "woollen"};
static const char *const things[] = {"anchor", "basket",  "compass", "drum",   "easel",   "funnel", "gasket",
                                     "hammer", "inkpot",  "jug",     "kettle", "lantern", "mallet", "nozzle",
                                     "oar",    "padlock", "quill",   "rope",   "saddle",  "tripod"};
static const char *const remarks[] = {"gift wrapping", "urgent",  "leave at the door", "call first",
                                      "no substitute", "fragile", "second floor",      "paid in cash"};

#define PICK(list, random) ((list)[(random) % (sizeof(list) / sizeof((list)[0]))])

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int insert_order(sqlite3_stmt *insert, uint32_t *random)
{
    char customer[32];
    char product[32];
    char note[96];
    snprintf(customer, sizeof customer, "customer-%04u", (unsigned)(next_random(random) % 5000));
    snprintf(product, sizeof product, "%s %s", PICK(adjectives, next_random(random)),
             PICK(things, next_random(random)));
    snprintf(note, sizeof note, "%s, %s", PICK(remarks, next_random(random)), PICK(remarks, next_random(random)));
    sqlite3_bind_int(insert, 1, (int)(next_random(random) % 365));
    sqlite3_bind_text(insert, 2, customer, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, PICK(regions, next_random(random)), -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 4, product, -1, SQLITE_STATIC);
    sqlite3_bind_int(insert, 5, (int)(next_random(random) % 20) + 1);
    sqlite3_bind_int(insert, 6, (int)(next_random(random) % 20000) + 99);
    sqlite3_bind_text(insert, 7, note, -1, SQLITE_STATIC);
    int rc = sqlite3_step(insert);
    sqlite3_reset(insert);
    return rc == SQLITE_DONE ? 0 : -1;
}

static int fill(sqlite3 *db, unsigned rows)
{
    uint32_t random = 1;
    int rc = 0;
    if (sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    sqlite3_stmt *insert = database_prepare(db, "INSERT INTO orders(day, customer, region, product, quantity,"
                                                " price_cents, note) VALUES(?, ?, ?, ?, ?, ?, ?)");
    if (insert == NULL)
        return -1;
    for (unsigned i = 0; i < rows && rc == 0; i++)
        rc = insert_order(insert, &random);
    sqlite3_finalize(insert);
    if (rc == 0 && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        rc = -1;
    return rc;
}

static int make_file(char path[DATABASE_PATH_SIZE])
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, DATABASE_PATH_SIZE, "%s/demo-service-XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        fprintf(stderr, "demo-service: %s: %m\n", path);
        return -1;
    }
    close(fd);
    return 0;
}

int database_create(unsigned rows, char path[DATABASE_PATH_SIZE])
{
    sqlite3 *db = NULL;
    if (make_file(path) != 0)
        return -1;
    int rc = sqlite3_open(path, &db) == SQLITE_OK ? fill(db, rows) : -1;
    if (rc != 0) {
        fprintf(stderr, "demo-service: %s: %s\n", path, sqlite3_errmsg(db));
        unlink(path);
    }
    sqlite3_close(db);
    return rc;
}

sqlite3 *database_open(const char *path)
{
    char uri[DATABASE_PATH_SIZE + 32];
    sqlite3 *db = NULL;
    // immutable: there are no more writes, so no locks and no checks.
    snprintf(uri, sizeof uri, "file:%s?immutable=1", path);
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(uri, &db, flags, NULL) == SQLITE_OK &&
        sqlite3_exec(db, "PRAGMA cache_size = -16000", NULL, NULL, NULL) == SQLITE_OK)
        return db;
    fprintf(stderr, "demo-service: %s: %s\n", path, sqlite3_errmsg(db));
    sqlite3_close(db);
    return NULL;
}

sqlite3_stmt *database_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fprintf(stderr, "demo-service: %s\n", sqlite3_errmsg(db));
    return statement;
}
