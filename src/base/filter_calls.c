// SPDX-License-Identifier: MIT
#include "base/filter_calls.h"

#define ROW(need, name, ...) {GP_CALL_##need, SYS_##name, #name, {__VA_ARGS__}},
const gp_seccomp_call_t gp_seccomp_calls[] = {GP_FILTER_CALLS(ROW)};
#undef ROW
