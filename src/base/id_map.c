// SPDX-License-Identifier: MIT
#include "base/id_map.h"

#include <stdlib.h>
#include <string.h>

enum { SPARSE = 16, SIZE_MIN = 4096 }; // places for each number that is kept

bool gp_id_map_add(gp_id_map_t *map, uint64_t id, uint32_t number)
{
    map->count++;
    if (id >= map->size) {
        if (id >= map->count * SPARSE + SIZE_MIN)
            return false;
        size_t size = (size_t)id * 2 > SIZE_MIN ? (size_t)id * 2 : SIZE_MIN;
        uint32_t *numbers = realloc(map->numbers, size * sizeof(*numbers));
        if (numbers == NULL)
            return false;
        memset(numbers + map->size, 0, (size - map->size) * sizeof(*numbers));
        map->numbers = numbers;
        map->size = size;
    }
    map->numbers[id] = number + 1;
    return true;
}

void gp_id_map_free(gp_id_map_t *map)
{
    free(map->numbers);
    *map = (gp_id_map_t){0};
}
