// SPDX-License-Identifier: MIT
// A plugin that exists in two builds, with FRAME bytes of local variables each.
typedef void (*leaf_t)(void);
void plugin_call(leaf_t leaf);

static volatile char last;

__attribute__((noinline)) static void inner(leaf_t leaf)
{
    volatile char local[FRAME];
    local[0] = 1;
    leaf();
    last = local[FRAME / 2];
}

__attribute__((visibility("default"))) void plugin_call(leaf_t leaf)
{
    volatile char local[FRAME / 2];
    local[1] = 2;
    inner(leaf);
    last = local[1];
}
