# SPDX-License-Identifier: MIT
# cmake "-DIN=FILE[;FILE...]" -DOUT=HEADER -DNAME=SYMBOL -P embed.cmake: text files, one after the other, as a C array, ended by NUL.
foreach(file ${IN})
  file(READ ${file} text HEX)
  string(APPEND hex ${text})
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
string(REGEX REPLACE "(.........................................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "static const char ${NAME}[] = {\n${bytes}0};\n")
