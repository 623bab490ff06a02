// SPDX-License-Identifier: MIT
#pragma once

// What the library's fork handlers call; NULL = nothing.
extern __attribute__((visibility("default"))) void (*early_handler)(void);
