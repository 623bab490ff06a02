// SPDX-License-Identifier: MIT
#include "report/selection.h"

bool gp_selection_has_share(const gp_selection_t *selection, const gp_dataset_share_t *share)
{
    return (selection->coros == NULL || selection->coros[share->coro]) &&
           (selection->traces == NULL || selection->traces[share->trace]);
}
