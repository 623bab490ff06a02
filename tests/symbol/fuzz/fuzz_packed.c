// SPDX-License-Identifier: MIT
// Any bytes as a compressed section (the lowest bits of the first byte are 0; 2: an old one) or as .gnu_debugdata.
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/compressed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = 0;
    if (size == 0)
        return 0;
    char *bytes = data[0] & 1   ? gp_compressed_xz(data + 1, size - 1, &len)
                  : data[0] & 2 ? gp_compressed_old_section(data + 1, size - 1, &len)
                                : gp_compressed_section(data + 1, size - 1, &len);
    if (bytes != NULL && bytes[len] != '\0')
        abort();
    free(bytes);
    return 0;
}
