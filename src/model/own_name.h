// SPDX-License-Identifier: MIT
// Names of greenprof's own threads in an attached process, by which the command knows them from the program's.
#pragma once

#define GP_OWN_NAME "greenprof"
