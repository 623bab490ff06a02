# SPDX-License-Identifier: MIT
# cmake -DIN=FILE -DOUT=HEADER -DNAME=SYMBOL -P embed.cmake: a text file as a C array, ended by NUL.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "static const char ${NAME}[] = {\n${bytes}0x00};\n")
