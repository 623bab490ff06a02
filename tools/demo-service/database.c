// SPDX-License-Identifier: MIT
// The service's data: a table of orders in SQLite, in memory.
#include "service.h"

#include <stdio.h>

static const char *const schema =
    "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, region TEXT, product TEXT,"
    "                    quantity INTEGER, price_cents INTEGER, note TEXT); BEGIN";

static const char *const regions[] = {"north", "south", "east", "west", "islands", "overseas"};
static const char *const adjectives[] = {"brass", "copper", "folding", "heavy",   "light",
                                         "oak",   "round",  "silent",  "spotted", "woollen"};
static const char *const things[] = {"anchor", "basket",  "compass", "drum",   "easel",   "funnel", "gasket",
                                     "hammer", "inkpot",  "jug",     "kettle", "lantern", "mallet", "nozzle",
                                     "oar",    "padlock", "quill",   "rope",   "saddle",  "tripod"};
static const char *const remarks[] = {"gift wrapping", "urgent",  "leave at the door", "call first",
                                      "no substitute", "fragile", "second floor",      "paid in cash"};

#define PICK(list, random) ((list)[(random) % (sizeof(list) / sizeof((list)[0]))])

static uint32_t database_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void database_insert(sqlite3_stmt *insert, uint32_t *random)
{
    char customer[32], product[32], note[96];
    snprintf(customer, sizeof(customer), "customer-%04u", (unsigned)(database_random(random) % 5000));
    snprintf(product, sizeof(product), "%s %s", PICK(adjectives, database_random(random)),
             PICK(things, database_random(random)));
    snprintf(note, sizeof(note), "%s, %s", PICK(remarks, database_random(random)),
             PICK(remarks, database_random(random)));
    sqlite3_bind_text(insert, 1, customer, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 2, PICK(regions, database_random(random)), -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, product, -1, SQLITE_STATIC);
    sqlite3_bind_int(insert, 4, (int)(database_random(random) % 20) + 1);
    sqlite3_bind_int(insert, 5, (int)(database_random(random) % 20000) + 99);
    sqlite3_bind_text(insert, 6, note, -1, SQLITE_STATIC);
    sqlite3_step(insert);
    sqlite3_reset(insert);
}

sqlite3 *database_create(unsigned rows)
{
    uint32_t random = 1;
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    bool is_ready = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
                    sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK &&
                    sqlite3_prepare_v2(db,
                                       "INSERT INTO orders(customer, region, product, quantity, price_cents, note)"
                                       " VALUES(?, ?, ?, ?, ?, ?)",
                                       -1, &insert, NULL) == SQLITE_OK;
    for (unsigned i = 0; i < rows && is_ready; i++)
        database_insert(insert, &random);
    sqlite3_finalize(insert);
    if (is_ready && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return db;
    fprintf(stderr, "demo-service: the database: %s\n", sqlite3_errmsg(db));
    sqlite3_close(db);
    return NULL;
}
