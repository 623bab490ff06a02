// SPDX-License-Identifier: MIT
// Targets of locations: modules, and functions of language runtimes.
#pragma once

#include <stdint.h>

typedef struct gp_module_info {
    uint32_t id; // as in gp_loc_t
    uint32_t build_id_len;
    uint8_t build_id[20]; // as in gp_module_record_t
    uint64_t start, end, bias;
    const char *path; // "[vdso]" for the vDSO
} gp_module_info_t;

typedef struct gp_function_info { // of a language runtime
    uint32_t number, first_line;
    const char *name, *file;
} gp_function_info_t;
