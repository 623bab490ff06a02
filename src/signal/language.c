#include "signal/language.h"

const gp_language_t *_Atomic gp_language;
