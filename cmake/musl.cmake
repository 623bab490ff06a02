# SPDX-License-Identifier: MIT
# Toolchain of `cmake --preset musl`: Debian's musl-gcc, which sees musl's headers only. The kernel's, and those of the
# archives that are linked in, come behind these by links of their own: a whole /usr/include would bring glibc's as well.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_ASM_COMPILER musl-gcc)
set(GREENPROF_MUSL_HEADERS ${CMAKE_CURRENT_LIST_DIR}/../build/musl-headers)
file(MAKE_DIRECTORY ${GREENPROF_MUSL_HEADERS})
foreach(name linux asm-generic asm zstd.h zstd_errors.h zlib.h zconf.h lzma.h lzma libdeflate.h xxhash.h libiberty)
  foreach(folder /usr/include/x86_64-linux-gnu /usr/include)
    if(EXISTS ${folder}/${name})
      file(CREATE_LINK ${folder}/${name} ${GREENPROF_MUSL_HEADERS}/${name} SYMBOLIC)
      break()
    endif()
  endforeach()
endforeach()
set(CMAKE_C_FLAGS_INIT "-idirafter ${GREENPROF_MUSL_HEADERS}")
set(CMAKE_ASM_FLAGS_INIT "-idirafter ${GREENPROF_MUSL_HEADERS}")
set(GREENPROF_FORTIFIED ON) # Debian's archives are made for glibc: their checked functions are ours
