// SPDX-License-Identifier: MIT
#include "signal/language.h"

const gp_language_t *_Atomic gp_language;
_Atomic bool gp_language_reads;
_Atomic int gp_language_recorders;
_Atomic bool gp_language_is_left;
int (*_Atomic gp_language_attach)(void);
void (*_Atomic gp_language_attach_soon)(void);
