// SPDX-License-Identifier: MIT
// The file of a writer: its place, its owner, and whether the descriptor still leads to it.
//
// Model: a file is known by its directory, of which a descriptor is kept, and its name there: the program's chroot()
// does not move its capture. An existing file is written to only where no other user can have made it, and no other
// process records into it. Threads: the writing one, or the opening one.
#pragma once

#include <stddef.h>

#include "base/kept_fd.h"
#include "capture/write/writer.h"

// Open the directory of a path, out of the host's way; GP_HELD_NONE where it cannot be had.
gp_kept_fd_t gp_writer_file_directory(const char *path);

// Where to look for a path: the directory, then set `name` to the name in it; where it is not held, AT_FDCWD and
// `path`.
int gp_writer_file_at(const gp_kept_fd_t *directory, const char *path, const char **name);

// Set the writer's path, and hold its directory; that of the path before is kept where it is the same.
void gp_writer_file_set_path(gp_writer_t *writer, const char *path);

// Does a live process record into the file at this path?
bool gp_writer_file_is_taken(const char *path);

// Add this process' id to the path. Returns whether there is room.
bool gp_writer_file_add_pid(char *path, size_t size);

// Open the file at the writer's path, made or emptied; where another process records into it, the file with this
// process' id behind the name. Returns 0 or a negative errno value: -EPERM: another user's, or no file of its own.
int gp_writer_file_open(gp_writer_t *writer);

// Remove a file that was made and could not be begun: it has `most` bytes at most.
void gp_writer_file_remove(const gp_writer_t *writer, off_t most);

// Is the descriptor still our file? If the host closed it, it is opened again. Returns 0 or a negative errno value.
int gp_writer_file_check(gp_writer_t *writer);

// Close it, unless the program has closed it already.
void gp_writer_file_close(gp_writer_t *writer);

// Call the file `writer->aside`, and mark it as a part; its descriptor is closed. -ESTALE where the path is another's.
int gp_writer_file_put_aside(gp_writer_t *writer);

// May parts be put aside by what this process may do now?
bool gp_writer_file_may_turn(const gp_writer_t *writer);

// Is this file, of the held directory, a part that was put aside there by this name?
bool gp_writer_file_is_part(int directory, const char *name);
