# SPDX-License-Identifier: MIT
# The parts of the page as bytes in a C source: cmake -DOUTPUT=FILE -DINPUTS=A;B;C -P assets.cmake
set(text "/* Made by src/report/assets.cmake. */\n#include \"report/page.h\"\n\n")
set(list "")
set(number 0)
foreach(input IN LISTS INPUTS)
    file(READ ${input} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)"
        "\\1\n" bytes "${bytes}")
    get_filename_component(name ${input} NAME)
    string(APPEND text "static const unsigned char asset_${number}[] = {\n${bytes}};\n\n")
    string(APPEND list "    {\"${name}\", asset_${number}, sizeof asset_${number}},\n")
    math(EXPR number "${number} + 1")
endforeach()
string(APPEND text "const uf_page_asset uf__page_assets[] = {\n${list}    {0},\n};\n")
file(WRITE ${OUTPUT} "${text}")
