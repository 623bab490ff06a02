// SPDX-License-Identifier: MIT
#include "forks.h"

#include <stdint.h>
#include <unistd.h>

#include "interpreter/api.h"
#include "interpreter/inittab.h"
#include "process/aside.h"

typedef gp_py_t *forks_call_t(gp_py_t *self, gp_py_t *nothing);

static forks_call_t *real_fork, *real_forkpty;

// The child has its threads from the handlers of fork().
static gp_py_t *forks_alone(forks_call_t *real, gp_py_t *self, gp_py_t *nothing)
{
    gp_aside_t aside;
    pid_t parent = getpid();
    gp_aside_begin(&aside, GP_ASIDE_ALONE);
    gp_py_t *result = real(self, nothing);
    if (getpid() == parent)
        gp_aside_end(&aside);
    return result;
}

static gp_py_t *forks_on_fork(gp_py_t *self, gp_py_t *nothing)
{
    return forks_alone(real_fork, self, nothing);
}

static gp_py_t *forks_on_forkpty(gp_py_t *self, gp_py_t *nothing)
{
    return forks_alone(real_forkpty, self, nothing);
}

static void forks_wrap(gp_py_method_t *method, forks_call_t **real, forks_call_t *mine)
{
    if (*real == NULL)
        *real = (forks_call_t *)(uintptr_t)gp_py_replace_method(method, GP_PY_NOARGS, (void *)(uintptr_t)mine);
}

static void forks_made(void *definition)
{
    forks_wrap(gp_py_method_of(definition, "fork"), &real_fork, forks_on_fork);
    forks_wrap(gp_py_method_of(definition, "forkpty"), &real_forkpty, forks_on_forkpty);
}

void gp_forks_prepare(void)
{
    gp_inittab_watch("posix", forks_made);
}

void gp_forks_watch(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "posix");
    if (module == NULL)
        return;
    forks_wrap(gp_py_method(module, "fork"), &real_fork, forks_on_fork);
    forks_wrap(gp_py_method(module, "forkpty"), &real_forkpty, forks_on_forkpty);
}
