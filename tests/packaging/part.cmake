# SPDX-License-Identifier: MIT
# What is installed and packed, used from outside.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_program(UNFRAG_CXX NAMES c++ g++ clang++)
add_test(NAME packaging_installed COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/installed_test.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
    ${CMAKE_C_COMPILER} ${UNFRAG_CXX})
set_tests_properties(packaging_installed PROPERTIES LABELS "full;no-sanitizer")
