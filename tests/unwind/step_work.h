// SPDX-License-Identifier: MIT
// Work to step through, instruction by instruction.
#ifndef TEST_UNWIND_STEP_WORK_H
#define TEST_UNWIND_STEP_WORK_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct step_case {
    const char *name; // NULL ends the list
    void (*run)(void);
    bool jumps; // over frames: its last steps may be seen at their destination
} step_case_t;

extern const step_case_t step_cases[];
void step_throw(void);

#ifdef __cplusplus
}
#endif
#endif
