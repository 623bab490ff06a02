#include "export/formats.h"
#include <errno.h>
int gp_flamegraph_write(const gp_report_t *report, FILE *out)
{
    (void)report;
    (void)out;
    return -ENOTSUP;
}
