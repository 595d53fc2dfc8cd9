# embed.cmake: makes a C file with the bytes of a text: cmake -DTEXT=x.cu -DNAME=gni_x -DOUT=x.c -P embed.cmake
file(READ ${TEXT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"ops/cuda/texts.h\"\n\nconst char ${NAME}[] = {\n${bytes}0};\n")
