// SPDX-License-Identifier: MIT
// Macros of others' headers, which cppcheck does not read, as far as they have the form of statements or of types.
#pragma once
#define ElfW(type)                      Elf64_##type
#define HASH_ITER(hh, head, item, next) for (item = head; item && (next = item->hh.next, 1); item = next)
#define Py_BEGIN_ALLOW_THREADS          {
#define Py_END_ALLOW_THREADS            }
#define Py_RETURN_NONE                  return Py_None
#define GP_PATCH_EACH_FUNCTION(macro)   macro(function)
// Generated of what folders register.
#define GP_BACKENDS(builtin, library) builtin("file", file) library("redis", "libgreenprof-redis.so.0")
#define GP_DESTINATIONS(row)          row("slow+file", slow)
#define GP_DESTINATION_URLS           ""
