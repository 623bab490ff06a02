// SPDX-License-Identifier: MIT
// The stand-ins that are no C functions.
#include "patch/patch_stub_x86_64.inc"

GP_PATCH_STUB coro_transfer, gp_tarantool_transfer
GP_PATCH_STUB jump_fcontext, gp_boost_jump
GP_PATCH_STUB ontop_fcontext, gp_boost_jump
GP_PATCH_STUB _mco_switch, gp_minicoro_switch
