// SPDX-License-Identifier: MIT
// Memory for a few instructions within reach of a jump. Nothing here calls malloc: a program's own one may not be
// ready yet.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GP_NEAR_SLOT_BYTES = 128 };

// A slot of GP_NEAR_SLOT_BYTES within 2 GiB of `address`, or NULL. Until it is sealed, a slot can be written. Slots are
// given in the order of calls and never taken back. Threads: there is one.
unsigned char *gp_near_slot(uintptr_t address);

// Make the page of a slot executable, and no longer writable; or the other way round. Returns 0 or a negative errno
// value.
int gp_near_seal(unsigned char *slot);
int gp_near_open(unsigned char *slot);
