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
# Every allocation of a reading fails in turn.
add_executable(trace_fault ${CMAKE_CURRENT_LIST_DIR}/trace_fault.c)
target_link_libraries(trace_fault PRIVATE unfrag_tools)
target_link_options(trace_fault PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
set_target_properties(trace_fault PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
file(GLOB UNFRAG_TRACE_FAULT_FILES CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/snapshot/*)
add_test(NAME trace_fault COMMAND trace_fault ${UNFRAG_TRACE_FAULT_FILES})
