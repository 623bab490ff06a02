// SPDX-License-Identifier: MIT
// Any bytes as a perf-PID.map.
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gp_perf_map_t map = {0};
    size_t used = 0;
    if (gp_perf_map_parse(&map, (const char *)data, size, &used) < 0 || used > size)
        abort();
    for (size_t i = 0; i < map.cut_count; i++) {
        if (map.cuts[i].lo >= map.cuts[i].hi || (i > 0 && map.cuts[i - 1].hi > map.cuts[i].lo))
            abort();
        const gp_perf_piece_t *piece = gp_perf_map_find(&map, map.cuts[i].lo);
        if (piece == NULL || piece->lo > map.cuts[i].lo || piece->hi < map.cuts[i].hi)
            abort();
    }
    gp_perf_map_clear(&map);
    return 0;
}
