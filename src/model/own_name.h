// SPDX-License-Identifier: MIT
// What greenprof's own threads are named in a process that it is attached to, so that the command knows them from those
// of the program.
#pragma once

#define GP_OWN_NAME "greenprof"
