# SPDX-License-Identifier: MIT
# unfrag check: every case file, script and settings string against what is expected; ids in the
# documentation.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME check_golden COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/golden.py
    $<TARGET_FILE:unfrag_cli>)
add_test(NAME check_ids COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/compare_ids.py)
