// Names of the counters of enum gp_counter, for outputs.
#ifndef GP_EXPORT_COUNTER_NAMES_H
#define GP_EXPORT_COUNTER_NAMES_H

#include <stdint.h>

// "drop_ring_full", ...; NULL for a number that this version does not know.
const char *gp_counter_name(uint32_t counter);

#endif
