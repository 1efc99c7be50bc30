# SPDX-License-Identifier: MIT
# `unfrag replay --verify` on every bundled recording, under the limit that the index gives.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(STRINGS ${PROJECT_SOURCE_DIR}/data/index.tsv verify_lines)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/data/index.tsv)
list(REMOVE_AT verify_lines 0)
foreach(line ${verify_lines})
    string(REGEX REPLACE "\t.*" "" name "${line}")
    add_test(NAME verify_${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run.py
        $<TARGET_FILE:unfrag_cli> ${PROJECT_SOURCE_DIR}/data ${name})
endforeach()
