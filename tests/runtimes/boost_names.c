// SPDX-License-Identifier: MIT
// Boost.Context's routines as later versions name them: C++ functions that jump on to those of the archive. Programs
// are compiled with these names in the place of the C ones.
typedef struct transfer {
    void *context, *data;
} transfer_t;
typedef transfer_t ontop_t(transfer_t from);
typedef void entry_t(transfer_t from);

extern transfer_t jump_fcontext(void *to, void *data);
extern transfer_t ontop_fcontext(void *to, void *data, ontop_t *function);
extern void *make_fcontext(void *top, unsigned long size, entry_t *entry);

transfer_t _ZN5boost7context6detail13jump_fcontextEPvS2_(void *to, void *data);
transfer_t _ZN5boost7context6detail14ontop_fcontextEPvS2_PFNS1_10transfer_tES3_E(void *to, void *data,
                                                                                 ontop_t *function);
void *_ZN5boost7context6detail13make_fcontextEPvmPFvNS1_10transfer_tEE(void *top, unsigned long size, entry_t *entry);

transfer_t _ZN5boost7context6detail13jump_fcontextEPvS2_(void *to, void *data)
{
    return jump_fcontext(to, data);
}

transfer_t _ZN5boost7context6detail14ontop_fcontextEPvS2_PFNS1_10transfer_tES3_E(void *to, void *data,
                                                                                 ontop_t *function)
{
    return ontop_fcontext(to, data, function);
}

void *_ZN5boost7context6detail13make_fcontextEPvmPFvNS1_10transfer_tEE(void *top, unsigned long size, entry_t *entry)
{
    return make_fcontext(top, size, entry);
}
