// SPDX-License-Identifier: MIT
// Where CPython keeps what greenprof reads: offsets in bytes, for each minor version with the layout of its releases.
//
// The core is built without Python's headers, so that one build serves every version; tests/python/test_layout.c
// compares the row of the installed version with its headers. Source: Include/cpython/pystate.h,
// Include/internal/pycore_frame.h, Include/cpython/code.h, unicodeobject.h of each version (offsetof).
#pragma once

#include <stdint.h>

enum { GP_CPYTHON_NONE = 0xffff }; // a field that this version does not have

enum gp_cpython_owner { // of a frame
    GP_CPYTHON_OWNER_THREAD = 0,
    GP_CPYTHON_OWNER_GENERATOR = 1,
    GP_CPYTHON_OWNER_FRAME_OBJECT = 2,
    GP_CPYTHON_OWNER_C_STACK = 3, // 3.12 on: a shim below each entry from C, no code
};

typedef struct gp_cpython_layout {
    uint16_t version; // 0x030b = 3.11
    // PyThreadState
    uint16_t state_cframe, state_root_cframe; // NONE: state_frame is there instead
    uint16_t state_frame;
    uint16_t state_chunk, state_top, state_native_id;
    uint16_t state_profile; // c_profilefunc; c_profileobj is 16 further on
    uint16_t cframe_frame;
    // _PyInterpreterFrame; localsplus follows at frame_bytes
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner, frame_bytes;
    uint16_t frame_is_entry; // NONE where shims mark the entries
    // PyCodeObject
    uint16_t code_locals, code_stack, code_first_line, code_file, code_name, code_lines, code_instructions;
    // PyASCIIObject, PyCompactUnicodeObject: sizes, that is where the text starts
    uint16_t text_ascii, text_compact;
    // Bytes of the evaluation loop's beginning in which the current frame may not be written yet.
    uint16_t entry_window;
    // A called frame is current before its caller is written into it.
    uint16_t late_previous;
    // A suspended generator's gi_frame_state where it awaits; 0: its next instruction tells.
    int16_t awaiting_state;
} gp_cpython_layout_t;

enum { // the same in all of them
    GP_CPYTHON_OBJECT_TYPE = 8,
    GP_CPYTHON_OBJECT_SIZE = 16, // ob_size of a variable-size object, length of a text
    GP_CPYTHON_TEXT_STATE = 32,
    GP_CPYTHON_BYTES_DATA = 32,
    GP_CPYTHON_CHUNK_PREVIOUS = 0,
    GP_CPYTHON_CHUNK_SIZE = 8,
    GP_CPYTHON_CHUNK_TOP = 16,
    GP_CPYTHON_CHUNK_DATA = 24,
    GP_CPYTHON_GENERATOR_STATE = -5, // a generator's gi_frame_state, from its frame
};

enum gp_cpython_generator { // types of what has a frame of its own, or stands for one that has
    GP_CPYTHON_COROUTINE,
    GP_CPYTHON_GENERATOR,
    GP_CPYTHON_ASYNC_GENERATOR,
    GP_CPYTHON_ASEND, // stands for an asynchronous generator
    GP_CPYTHON_ATHROW,
    GP_CPYTHON_WRAPPER, // for a coroutine
    GP_CPYTHON_GENERATORS
};

// The row of a version (PY_VERSION_HEX), NULL = not supported.
const gp_cpython_layout_t *gp_cpython_layout_find(unsigned long version);
