// SPDX-License-Identifier: MIT
// The name of a Fiber: the place of its block. Ruby has no name for it, and none of its calls may be made in the middle
// of a switch; so its objects are read, and what they say of themselves is believed only where all of it fits.
//
// Source: Ruby 3.0 to 3.4, cont.c (struct rb_fiber_struct), vm_core.h (rb_proc_t, struct rb_block, struct
// rb_captured_block), internal/imemo.h; include/ruby/internal/core/rtypeddata.h; ruby/debug.h (rb_profile_frame_path,
// rb_profile_frame_first_lineno, which allocate nothing).
#include "ruby_names.h"

#include <string.h>

#include "interpose/interpose.h"
#include "not_known.h"

typedef uintptr_t value_t;

enum {
    FIRST_PROC = -32, // from the context: first_proc, prev, resuming_fiber, bits
    STATUS = -2,      // in words of 32 bits from the context: bits, of which the first two are enum fiber_status
    STATUS_MASK = 3,
    TERMINATED = 3,
    TYPE_MASK = 0x1f,
    TYPE_DATA = 0x0c,
    TYPE_IMEMO = 0x1a,
    BLOCK_ISEQ = 0,
    FIXNUM = 1,
    PATH_SIZE = 4096,
};

typedef struct typed_data {
    value_t flags, class;
    const char *const *type; // begins with its name
    value_t typed_flag;
    uintptr_t data;
} typed_data_t;

typedef struct proc { // its beginning
    value_t self;
    uintptr_t environment;
    value_t iseq;
    int block_type;
} proc_t;

static struct {
    const int *version; // int[3]
    value_t (*path)(value_t iseq), (*first_line)(value_t iseq);
    const char *(*text)(volatile value_t *string);
} ruby;

static bool ruby_names_is_known(void)
{
    static gp_not_known_t fact;
    static int known; // 0: not asked, 1: yes, -1: no
    if (known == 0) {
        ruby.version = gp_interpose_find("ruby_api_version");
        ruby.path = gp_interpose_find("rb_profile_frame_path");
        ruby.first_line = gp_interpose_find("rb_profile_frame_first_lineno");
        ruby.text = gp_interpose_find("rb_string_value_ptr");
        bool all = ruby.version != NULL && ruby.path != NULL && ruby.first_line != NULL && ruby.text != NULL;
        known = all && ruby.version[0] == 3 && ruby.version[1] <= 4 ? 1 : -1;
        if (known < 0)
            gp_not_known_tell(&fact, "Ruby %d.%d: not known, fibers have no names and no ends",
                              ruby.version != NULL ? ruby.version[0] : 0, ruby.version != NULL ? ruby.version[1] : 0);
    }
    return known > 0;
}

static bool ruby_names_is_object(value_t value, unsigned type)
{
    value_t flags;
    return value != 0 && value % sizeof(value_t) == 0 && gp_peek(value, &flags, sizeof(flags)) &&
           (flags & TYPE_MASK) == type;
}

static bool ruby_names_is_proc(const typed_data_t *object)
{
    uintptr_t name;
    char text[5];
    return gp_peek((uintptr_t)object->type, &name, sizeof(name)) && gp_peek(name, text, sizeof(text)) &&
           memcmp(text, "proc", sizeof(text)) == 0;
}

bool gp_ruby_is_terminated(const void *context)
{
    return ruby_names_is_known() && (((const uint32_t *)context)[STATUS] & STATUS_MASK) == TERMINATED;
}

bool gp_ruby_name(const void *context, char *name, size_t size)
{
    value_t first;
    typed_data_t object;
    proc_t proc;
    if (!ruby_names_is_known() ||
        !gp_peek((uintptr_t)context + (uintptr_t)(intptr_t)FIRST_PROC, &first, sizeof(first)) ||
        !ruby_names_is_object(first, TYPE_DATA) || !gp_peek(first, &object, sizeof(object)) ||
        !ruby_names_is_proc(&object) || !gp_peek(object.data, &proc, sizeof(proc)) || proc.block_type != BLOCK_ISEQ ||
        !ruby_names_is_object(proc.iseq, TYPE_IMEMO))
        return false;
    volatile value_t path = ruby.path(proc.iseq);
    value_t line = ruby.first_line(proc.iseq);
    if (!(line & FIXNUM) || !ruby_names_is_object(path, 5)) // T_STRING
        return false;
    const char *text = ruby.text(&path);
    if (strnlen(text, PATH_SIZE) == PATH_SIZE)
        return false;
    gp_hook_name_place(name, size, text, line >> 1);
    return true;
}
