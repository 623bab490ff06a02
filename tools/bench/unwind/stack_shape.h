// SPDX-License-Identifier: MIT
// Stacks of known depth for the walkers to climb.
#pragma once

enum { SHAPE_DEPTH_MAX = 200 };

// Call `leaf(arg)` at the bottom of `depth` frames. Built with frame pointers, so that every walker
// sees the same frames; the callees differ in size and saved registers, as they do in programs.
void shape_call(unsigned depth, void (*leaf)(void *), void *arg);
