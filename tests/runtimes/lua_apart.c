// SPDX-License-Identifier: MIT
// Calls into Lua that do not end in the order in which they began: `lua_apart fibers`; or that begin at once on
// threads: `lua_apart threads`.
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 1 << 18, FIBERS = 3, THREADS = 4, CALLS = 20 };

static ucontext_t main_context, contexts[FIBERS];
static pthread_barrier_t all_there;

static void call(lua_State *state, const char *chunk)
{
    if (luaL_loadstring(state, chunk) == 0)
        lua_pcall(state, 0, 0, 0);
}

static lua_State *make_state(void)
{
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    return state;
}

static int go_away(lua_State *state)
{
    lua_getglobal(state, "number");
    swapcontext(&contexts[lua_tointeger(state, -1)], &main_context);
    return 0;
}

static lua_State *states[FIBERS];

static void run_fiber(int number)
{
    lua_State *state = states[number];
    lua_pushinteger(state, number);
    lua_setglobal(state, "number");
    lua_register(state, "go_away", go_away);
    if (number < 2)
        call(state, "go_away()");
    else // of the state whose call has ended on a stack that is gone
        call(states[0], "local function work() local x = 0 for i = 1, 3e7 do x = x + i end return x end pcall(work)");
}

static void run_fibers(void)
{
    char *stacks = mmap(NULL, FIBERS * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < FIBERS; i++) { // the last one has the lowest stack
        states[i] = make_state();
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks + (FIBERS - 1 - i) * STACK_BYTES;
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))run_fiber, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    swapcontext(&main_context, &contexts[1]);
    swapcontext(&main_context, &contexts[0]); // ends within the other one
    munmap(contexts[0].uc_stack.ss_sp, STACK_BYTES);
    swapcontext(&main_context, &contexts[1]);
    swapcontext(&main_context, &contexts[2]);
}

static void *run_thread(void *argument)
{
    lua_State *state = make_state();
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < CALLS; i++)
        call(state, "local function work() local x = 0 for i = 1, 1e6 do x = x + i end return x end pcall(work)");
    lua_close(state);
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc > 1 && strcmp(argv[1], "fibers") == 0) {
        run_fibers();
        return 0;
    }
    pthread_barrier_init(&all_there, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_thread, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
