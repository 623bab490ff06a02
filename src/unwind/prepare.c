// What must be done outside any handler.
#include "unwind/module.h"
#include "unwind/unwind.h"

int gp_unwind_init(void)
{
    gp_module_fixed_prepare();
    gp_module_locate_prepare();
    return 0;
}

void gp_unwind_refresh(void)
{
    gp_module_locate_prepare();
}
