# SPDX-License-Identifier: MIT
# The reader against Python's own pickle (python3's standard library, a test dependency only).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_executable(trace_dump ${CMAKE_CURRENT_LIST_DIR}/trace_dump.c)
target_link_libraries(trace_dump PRIVATE unfrag_tools)
set_target_properties(trace_dump PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME trace_python COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/compare_with_python.py $<TARGET_FILE:trace_dump>)
file(GLOB UNFRAG_TRACE_RECORDINGS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/*.pickle.xz)
if(UNFRAG_TRACE_RECORDINGS)
    add_test(NAME trace_python_recordings COMMAND ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_LIST_DIR}/compare_with_python.py $<TARGET_FILE:trace_dump>
        ${UNFRAG_TRACE_RECORDINGS})
    set_tests_properties(trace_python_recordings PROPERTIES LABELS full)
endif()
