// SPDX-License-Identifier: MIT
// Output files: a reader never sees half of one, and a failure leaves nothing behind.
//
// Model: what is written goes to a temporary file in the same directory, which takes the final name
// in one step at the end; where the file system has files without names, a process that ends meanwhile leaves none. A
// device, a pipe or standard output ("-") is written directly.
//
// Order of calls: open -> write to ->file -> commit or abort. Threads: one at a time. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef struct gp_output {
    FILE *file;
    char *buffer;    // the stream's
    char *path;      // final name, symbolic links followed
    char *temporary; // NULL where the output is written directly, or has no name yet
    bool is_nameless;
} gp_output_t;

// Open an output. Returns 0 or a negative errno value (-EISDIR, -ENOENT, -EACCES, -ENOSPC, ...).
int gp_output_open(gp_output_t *output, const char *path);

// The same for what is written by the file's name: `temporary` is there at once.
int gp_output_open_named(gp_output_t *output, const char *path);

// Flush, close and give the file its name. Returns 0 or a negative errno value; the temporary file is then gone.
int gp_output_commit(gp_output_t *output);

// Close and forget.
void gp_output_abort(gp_output_t *output);

// 0, or the negative errno value of what went wrong with writing to a stream: asked soon after it did.
int gp_output_state(FILE *file);

// Write a report to a path in one go. Returns 0 or a negative errno value.
struct gp_exporter;
struct gp_report;
int gp_output_write(const struct gp_exporter *exporter, const struct gp_report *report, const char *path);
