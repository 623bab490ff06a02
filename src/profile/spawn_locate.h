// Locations of the places where coroutines are created (coro/spawn.h).
#ifndef GP_PROFILE_SPAWN_LOCATE_H
#define GP_PROFILE_SPAWN_LOCATE_H

// Make sure that every site has its locations. Caller holds the drain lock; modules are up to date. Signals: not safe.
void gp_spawn_locate(void);

#endif
