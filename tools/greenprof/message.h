// SPDX-License-Identifier: MIT
// Messages of `greenprof` on standard error, and the exit statuses that go with them. No password of a URL is in what
// it says.
#pragma once

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

// Say "greenprof: SUBJECT: what is wrong" on standard error. Returns EXIT_FAILED.
int gp_fail(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same without consequences.
void gp_warn(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Say "greenprof COMMAND: what is wrong" and where help is. Returns EXIT_USAGE.
int gp_usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A part of a message, as it is.
void gp_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Flush standard output after the last of it. Returns 0, or EXIT_FAILED with a message if not all of it arrived.
int gp_finish_stdout(void);
