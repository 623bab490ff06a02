// SPDX-License-Identifier: MIT
// `info --json`: doc/json.md is its schema.
#pragma once

#include "export/write/json_text.h"
#include "facts/dataset.h"

// Write an object about a capture.
void gp_info_json(gp_json_t *json, const char *path, const gp_dataset_t *dataset);
