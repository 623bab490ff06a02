# SPDX-License-Identifier: MIT
# A toolchain of CMake's: for arm64, by Debian's cross compiler, with the libraries that `tools/setup --root FOLDER`
# has unpacked; programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(GREENPROF_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/root-arm64 CACHE PATH "Folder with the libraries of arm64")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GREENPROF_ROOT)
get_filename_component(CMAKE_SYSROOT ${GREENPROF_ROOT} REALPATH)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
find_program(GREENPROF_CXX aarch64-linux-gnu-g++)
if(GREENPROF_CXX)
  set(CMAKE_CXX_COMPILER ${GREENPROF_CXX})
else()
  set(CMAKE_CXX_COMPILER NOTFOUND) # not this machine's
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(what LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
