// SPDX-License-Identifier: MIT
// cmocka wants these four before itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
