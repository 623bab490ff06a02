// SPDX-License-Identifier: MIT
// Offsets, in bytes, of CPython's data that greenprof reads.
//
// The core is built without Python's headers, so that one build serves every version. From 3.12 on CPython publishes
// most offsets at the head of _PyRuntime (_Py_DebugOffsets), in a form of each minor version; those of 3.11 and 3.12
// are written down here. A form holds where it leads to the sizes of the type objects in memory: so a version unknown
// here is read by the newest form that fits, and refused where none does. The interpreter's use of its frames is tried
// out once it runs (layout_trial.h). tests/python/test_layout.c compares with the headers of the installed version.
// Source: Include/internal/pycore_debug_offsets.h (pycore_runtime.h before 3.14), Include/cpython/pystate.h, code.h,
// unicodeobject.h, Include/internal/pycore_frame.h.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_CPYTHON_NONE = 0xffff }; // a field that this version does not have

enum gp_cpython_owner { // of a frame
    GP_CPYTHON_OWNER_THREAD = 0,
    GP_CPYTHON_OWNER_GENERATOR = 1,
    GP_CPYTHON_OWNER_FRAME_OBJECT = 2,
    GP_CPYTHON_OWNER_SHIM = 3, // 3.12 on: below each entry from C, no code; "of the interpreter" from 3.14 on
};

typedef struct gp_cpython_layout {
    uint16_t version; // 0x030b = 3.11
    // PyThreadState
    uint16_t state_cframe, state_root_cframe; // NONE: state_frame is there instead
    uint16_t state_frame;
    uint16_t state_base; // 3.15 on: the outermost frame, a shim that lies in the state itself
    uint16_t state_chunk, state_top, state_native_id;
    uint16_t cframe_frame;
    // _PyInterpreterFrame; localsplus follows at frame_bytes
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner, frame_bytes;
    uint16_t frame_is_entry;  // NONE where shims mark the entries
    uint16_t frame_stack_top; // how many slots are in use, or from 3.14 on the address behind them
    // PyCodeObject
    uint16_t code_locals, code_stack, code_first_line, code_file, code_name, code_lines, code_instructions;
    // PyASCIIObject, PyCompactUnicodeObject: sizes, that is where the text starts
    uint16_t text_ascii, text_compact;
    // PyTupleObject.ob_item
    uint16_t tuple_items;
    // Bytes of the evaluation loop's beginning in which the current frame may not be written yet.
    uint16_t entry_window;
    // gi_frame_state of a generator not begun and of a running one: suspended ones are between, ended ones above.
    int8_t generator_created, generator_running;
    // That of a suspended one which awaits; generator_running: its next instruction tells.
    int8_t generator_awaiting;
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
    GP_CPYTHON_GENERATOR_STATE = -5,   // a generator's gi_frame_state, from its frame
    GP_CPYTHON_REFERENCE_TAGS = 7,     // bits of a reference in a frame which are not of the address; 3.14 on
    GP_CPYTHON_STATE_NEXT = 8,         // PyThreadState.next; .prev is its first
    GP_CPYTHON_REFERENCES_BITS = 48,   // of ob_refcnt; flags are above, from 3.14 on
    GP_CPYTHON_POINTS_TO_TOP = 0x030e, // first version of which frame_stack_top is an address
    GP_CPYTHON_NEWEST = 0x030f,        // of which the form is written down; later ones are not read before their trial
};

enum { GP_CPYTHON_PUBLISHED_BYTES = 1024 }; // of _PyRuntime, at most

enum gp_cpython_generator { // types with a frame of their own, or standing for such an object
    GP_CPYTHON_COROUTINE,
    GP_CPYTHON_GENERATOR,
    GP_CPYTHON_ASYNC_GENERATOR,
    GP_CPYTHON_ASEND, // stands for an asynchronous generator
    GP_CPYTHON_ATHROW,
    GP_CPYTHON_WRAPPER, // for a coroutine
    GP_CPYTHON_GENERATORS
};

typedef struct gp_cpython_seen {                             // in memory: what a layout is checked against
    unsigned long version;                                   // PY_VERSION_HEX
    const uint64_t *runtime;                                 // &_PyRuntime; NULL = it is not to be found
    bool is_free_threaded;                                   // has a function of such builds alone
    size_t code_size, tuple_size, generator_size, text_size; // tp_basicsize of the types
} gp_cpython_seen_t;

// The layout of the CPython that was seen. Not NULL at most once a process: it is in one place.
// Returns NULL where it is not known: `why` is then a sentence that says so, without its subject.
gp_cpython_layout_t *gp_cpython_layout_find(const gp_cpython_seen_t *seen, const char **why);
