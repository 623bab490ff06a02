// SPDX-License-Identifier: MIT
// Noticing extension modules as they are loaded: `_imp.create_dynamic` is wrapped.
#pragma once

// Before Python starts: the wrapper is put in place when the module `_imp` is made.
void gp_imports_prepare(void);

// In a running Python, the interpreter lock held. Idempotent.
void gp_imports_watch(void);

// In a process that runs already: requests of its servers, and calls of its clients, become spans, where its Python
// can import the package. As above.
void gp_imports_meet_those_there(void);
