# embed.cmake: makes a C file with the bytes of a text: cmake -DTEXT=x.cu -DNAME=gni_x -DOUT=x.c -P embed.cmake
# Kernels have no headers: lines that name one are left out, so that a header of C can be a part of a kernel.
file(READ ${TEXT} text)
string(REGEX REPLACE "#include [^\n]*\n" "" text "${text}")
string(HEX "${text}" bytes)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"ops/cuda/kernel_texts.h\"\n\nconst char ${NAME}[] = {\n${bytes}0};\n")
