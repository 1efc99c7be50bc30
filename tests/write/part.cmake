# SPDX-License-Identifier: MIT
# What our writers make of recordings, judged by Python's own pickle. The smallest recordings run in
# the quick tier, all of data/ in the full one.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_executable(write_rewrite ${CMAKE_CURRENT_LIST_DIR}/rewrite.c)
target_link_libraries(write_rewrite PRIVATE unfrag_tools)
set_target_properties(write_rewrite PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
file(GLOB UNFRAG_WRITE_ALL CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/*.pickle.xz)
set(UNFRAG_WRITE_QUICK ${UNFRAG_WRITE_ALL})
list(FILTER UNFRAG_WRITE_QUICK INCLUDE REGEX "/(graphs|llm-ring|resnet-stacks)[^/]*$")
if(UNFRAG_WRITE_QUICK)
    add_test(NAME write_python COMMAND ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_LIST_DIR}/compare.py $<TARGET_FILE:write_rewrite> ${UNFRAG_WRITE_QUICK})
    add_test(NAME write_python_all COMMAND ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_LIST_DIR}/compare.py $<TARGET_FILE:write_rewrite> ${UNFRAG_WRITE_ALL})
    set_tests_properties(write_python_all PROPERTIES LABELS full)
endif()
