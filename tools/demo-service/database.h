// SPDX-License-Identifier: MIT
// The service's data: a table of orders in SQLite.
#pragma once

#include <sqlite3.h>

enum {
    DATABASE_PATH_SIZE = 256,
};

// Write a new database file with the table `orders`, always the same for the same number of rows.
//   path: receives the file's name.
// Returns 0, or -1 after saying on standard error what went wrong.
int database_create(unsigned rows, char path[DATABASE_PATH_SIZE]);

// Open it for reading, by one thread. Returns the connection, or NULL after saying why on standard error.
sqlite3 *database_open(const char *path);

// Prepare a statement. Returns NULL after saying why on standard error.
sqlite3_stmt *database_prepare(sqlite3 *db, const char *sql);
