// SPDX-License-Identifier: MIT
// Captures as they are, for destinations that keep files.
#pragma once

#include "ship/send/destination.h"

enum { GP_COPY_NAME_SIZE = 1024 };

// What a capture is called where it goes: "[TENANT/]HOST/NAME-ID.greenprof", the same for each of its batches.
// Returns 0 or -ENAMETOOLONG.
int gp_copy_name(const gp_batch_t *batch, char name[GP_COPY_NAME_SIZE]);

// Whether a batch has bytes: one of critical paths has none of its own.
bool gp_copy_has_bytes(const gp_batch_t *batch);

// Open the capture. Returns the descriptor; a negative errno value and what is wrong.
int gp_copy_open(const gp_batch_t *batch, char error[GP_FLEET_ERROR_SIZE]);

// Read [at, at + len). Returns 0; -ENODATA: the file is shorter; another negative errno value.
int gp_copy_read(int fd, uint64_t at, void *bytes, size_t len);

// For --dry-run.
void gp_copy_describe(const gp_batch_t *batch, const char *where, FILE *out);
