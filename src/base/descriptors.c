// SPDX-License-Identifier: MIT
#include "base/descriptors.h"

_Atomic uint64_t gp_descriptors_raised[GP_DESCRIPTORS_KNOWN / 64];
