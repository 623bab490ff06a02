// SPDX-License-Identifier: MIT
// Ruby's frames: read by the handler, named by the collector.
//
// Model: a thread's execution context has its control frames side by side, innermost first. The handler walks them on
// the thread that they belong to. A function is what a frame runs: an instruction sequence, or a method written in C.
// Ruby may free or move either as soon as the thread goes on, and use its address again; so the handler itself, which
// sees it while it is on the stack and so alive, copies what it is called into a table (signal/met.h). A frame word is
// an index of that table and a place in the function, and never means something else. Methods are told apart by the
// serial of their definition, which Ruby never uses again; what is outside of methods, by the text of its path as well.
//
// Source: Ruby 3.1, vm_core.h (rb_execution_context_struct, rb_control_frame_struct, rb_iseq_constant_body,
// VM_FRAME_*), method.h (rb_method_entry_struct, rb_method_definition_struct), internal/imemo.h, vm_insnhelper.c
// (vm_push_frame, rb_vm_frame_method_entry), include/ruby/internal/core/rstring.h, rarray.h.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal/language.h"
#include "signal/met.h"

enum {
    GP_RUBY_LABEL_SIZE = 112,
    GP_RUBY_CLASS_SIZE = 88,
    GP_RUBY_PATH_SIZE = 288,

    GP_RUBY_TYPE_MASK = 0x1f, // of an object's flags
    GP_RUBY_STRING = 0x05,
    GP_RUBY_ARRAY = 0x07,
    GP_RUBY_IMEMO = 0x1a,
    GP_RUBY_IMEMO_SHIFT = 12,
    GP_RUBY_IMEMO_MASK = 0xf,
    GP_RUBY_IMEMO_METHOD = 6,
    GP_RUBY_IMEMO_ISEQ = 7,

    GP_RUBY_METHOD_DEFINITION = 16,
    GP_RUBY_METHOD_OWNER = 32,
    GP_RUBY_DEFINITION_ID = 32,
    GP_RUBY_DEFINITION_SERIAL = 40,
};

typedef struct gp_ruby_layout { // what differs by version, in bytes
    int version[2];
    uint16_t frame_bytes;
    uint16_t iseq_body, body_path, body_label, body_first_line, body_lines, body_bytes;
    uint16_t class_variables; // where an extension of a class has their table
} gp_ruby_layout_t;

#define GP_RUBY_PLACE_UNKNOWN UINT32_MAX

enum gp_ruby_kind { GP_RUBY_CODE, GP_RUBY_BLOCK_METHOD, GP_RUBY_C };

typedef struct gp_ruby_key { // what tells functions apart
    uintptr_t object;        // an instruction sequence; of a method in C, its definition
    uintptr_t body, code;    // of the instruction sequence
    uintptr_t serial;        // of the method's definition; 0 = outside of methods
    uintptr_t label, path;   // strings of the instruction sequence
    uint64_t first_line;
} gp_ruby_key_t;

typedef struct gp_ruby_function {
    enum gp_ruby_kind kind;
    gp_ruby_key_t key;
    bool is_singleton; // the method is its class's own
    uint64_t id;       // the method's name
    uint32_t label_len, path_len, class_len;
    char label[GP_RUBY_LABEL_SIZE], path[GP_RUBY_PATH_SIZE], class[GP_RUBY_CLASS_SIZE]; // cut to what there is room for
} gp_ruby_function_t;

typedef struct gp_ruby_table {
    gp_met_t met;
    gp_ruby_function_t functions[GP_MET_FUNCTIONS];
} gp_ruby_table_t;

typedef struct gp_ruby_runtime {
    const gp_ruby_layout_t *layout;
    gp_ruby_table_t *table;
    uint64_t classpath, attached;  // names of variables of classes; 0 = classes are not read
    intptr_t context;              // of the thread-local variable, from the thread pointer on
    uintptr_t main_stack, main_sp; // the main thread's frames; an address on the machine stack that goes with them
    uintptr_t loop, loop_end;      // rb_vm_exec()
    uintptr_t code, code_end;      // of the interpreter
} gp_ruby_runtime_t;

extern gp_ruby_runtime_t gp_ruby_runtime __attribute__((visibility("hidden")));

// How many words into a function's instructions a frame word is.
static inline uint32_t gp_ruby_word_place(uintptr_t word)
{
    return (uint32_t)(word >> GP_MET_NUMBER_BITS);
}

enum { GP_RUBY_OBJECT_WORDS = 5 };

typedef struct gp_ruby_text {
    uintptr_t at;
    size_t len;
} gp_ruby_text_t;

// Where the text of the string at `at` is, of which `words` are a copy. False: it is no string.
static inline bool gp_ruby_string_text(const uintptr_t words[GP_RUBY_OBJECT_WORDS], uintptr_t at, gp_ruby_text_t *text)
{
    enum { IS_ELSEWHERE = 1 << 13, LEN_SHIFT = 14, LEN_MASK = 0x1f, HEAD = 16, EMBEDDED_MAX = 24, TEXT_MAX = 1 << 16 };
    if ((words[0] & GP_RUBY_TYPE_MASK) != GP_RUBY_STRING)
        return false;
    bool is_elsewhere = words[0] & IS_ELSEWHERE;
    text->at = is_elsewhere ? words[3] : at + HEAD;
    text->len = is_elsewhere ? words[2] : words[0] >> LEN_SHIFT & LEN_MASK;
    return text->len < (is_elsewhere ? TEXT_MAX : EMBEDDED_MAX);
}

// A thread is about to switch from a fiber's registers to another's, which is still on the context of the first. Caller
// holds Ruby's lock. Cost: ~1 ns.
void gp_ruby_note_switch(uintptr_t from, uintptr_t to);

// See gp_language_t.
size_t gp_ruby_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags);
bool gp_ruby_is_loop(uintptr_t pc);
bool gp_ruby_is_own(uintptr_t pc);
