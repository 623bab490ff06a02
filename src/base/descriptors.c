// SPDX-License-Identifier: MIT
#include "base/descriptors.h"

_Atomic unsigned gp_descriptors_low, gp_descriptors_closing;
_Atomic uint64_t gp_descriptors_raised[GP_DESCRIPTORS_KNOWN / 64];
