// SPDX-License-Identifier: MIT
#pragma once

// Called by the library's fork handlers; NULL = nothing.
extern __attribute__((visibility("default"))) void (*early_handler)(void);
