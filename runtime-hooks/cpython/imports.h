// SPDX-License-Identifier: MIT
// Noticing extension modules as they are loaded: `_imp.create_dynamic` is wrapped.
#pragma once

// Before Python starts: the wrapper is put in place when the module `_imp` is made.
void gp_imports_prepare(void);

// In a running Python, the interpreter lock held. Idempotent.
void gp_imports_watch(void);
