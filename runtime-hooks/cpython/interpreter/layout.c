// SPDX-License-Identifier: MIT
#include "interpreter/layout.h"

#include <stddef.h>

// clang-format off
static const gp_cpython_layout_t layouts[] = {
    {
        .version = 0x030b,
        .state_cframe = 56, .state_root_cframe = 336, .state_frame = GP_CPYTHON_NONE, .state_chunk = 296, .state_top = 304,
        .state_native_id = 160, .state_profile = 64,
        .cframe_frame = 8,
        .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69, .frame_bytes = 72,
        .frame_is_entry = 68,
        .code_locals = 76, .code_stack = 68, .code_first_line = 72, .code_file = 112, .code_name = 128, .code_lines = 136,
        .code_instructions = 184,
        .text_ascii = 48, .text_compact = 72,
        .entry_window = 192, .late_previous = 1,
    }, {
        .version = 0x030c,
        .state_cframe = 56, .state_root_cframe = 272, .state_frame = GP_CPYTHON_NONE, .state_chunk = 232, .state_top = 240,
        .state_native_id = 144, .state_profile = 64, .cframe_frame = 0,
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .frame_bytes = 72,
        .frame_is_entry = GP_CPYTHON_NONE,
        .code_locals = 72, .code_stack = 64, .code_first_line = 68, .code_file = 112, .code_name = 128, .code_lines = 136,
        .code_instructions = 192,
        .text_ascii = 40, .text_compact = 56,
        .entry_window = 256, .late_previous = 1,
    }, {
        .version = 0x030d,
        .state_cframe = GP_CPYTHON_NONE, .state_root_cframe = GP_CPYTHON_NONE, .state_frame = 72, .state_chunk = 232,
        .state_top = 240, .state_native_id = 160, .state_profile = 80, .cframe_frame = GP_CPYTHON_NONE,
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .frame_bytes = 72,
        .frame_is_entry = GP_CPYTHON_NONE,
        .code_locals = 72, .code_stack = 64, .code_first_line = 68, .code_file = 112, .code_name = 128, .code_lines = 136,
        .code_instructions = 200,
        .text_ascii = 40, .text_compact = 56,
        .entry_window = 0, .late_previous = 1, .awaiting_state = -1,
    },
};
// clang-format on

const gp_cpython_layout_t *gp_cpython_layout_find(unsigned long version)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i].version == version >> 16)
            return &layouts[i];
    return NULL;
}
