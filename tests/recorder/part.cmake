# SPDX-License-Identifier: MIT
# Snapshots of a living allocator: the random life that unit tests share, and Python's judgement.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_library(random_life STATIC ${CMAKE_CURRENT_LIST_DIR}/random_life.c)
target_include_directories(random_life PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(random_life PUBLIC unfrag_tools)
target_link_libraries(recorder_test PRIVATE random_life)

add_executable(life_snapshot ${CMAKE_CURRENT_LIST_DIR}/life_snapshot.c)
target_link_libraries(life_snapshot PRIVATE random_life)
set_target_properties(life_snapshot PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME recorder_python COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/check_with_python.py $<TARGET_FILE:life_snapshot>
    ${PROJECT_SOURCE_DIR}/data/graphs.default.pickle.xz)
