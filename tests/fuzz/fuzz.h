// SPDX-License-Identifier: MIT
// The common part of the fuzz targets. Each is a file of its own; with clang it is built with libFuzzer, else with
// replay.c, which runs the files it is given.
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
