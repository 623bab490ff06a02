// SPDX-License-Identifier: MIT
#pragma once

__attribute__((visibility("default"))) void run(void);
