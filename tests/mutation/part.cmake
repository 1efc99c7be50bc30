# SPDX-License-Identifier: MIT
# Breaks one rule of the allocator at a time; verify must notice each. Builds a plain program of its
# own against the library, so it needs a library without instrumentation.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(NOT UNFRAG_SANITIZE AND NOT UNFRAG_COVERAGE)
    add_test(NAME mutation COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/run.py
        --source ${PROJECT_SOURCE_DIR} --library $<TARGET_FILE:unfrag_tools>
        --cc ${CMAKE_C_COMPILER})
    set_tests_properties(mutation PROPERTIES LABELS "full;no-sanitizer" TIMEOUT 900)
    # The same with the parts of the unfrag policy, debug mode and their unit tests.
    add_test(NAME mutation_parts COMMAND ${Python3_EXECUTABLE} -B
        ${CMAKE_CURRENT_LIST_DIR}/parts_run.py --source ${PROJECT_SOURCE_DIR}
        --cc ${CMAKE_C_COMPILER})
    set_tests_properties(mutation_parts PROPERTIES LABELS "full;no-sanitizer" TIMEOUT 900)
endif()
