# SPDX-License-Identifier: MIT
# The oracle: a naive second model of PyTorch's allocator.
add_library(oracle STATIC
    ${CMAKE_CURRENT_LIST_DIR}/oracle.c
    ${CMAKE_CURRENT_LIST_DIR}/blocks.c
    ${CMAKE_CURRENT_LIST_DIR}/search.c
    ${CMAKE_CURRENT_LIST_DIR}/driver.c
    ${CMAKE_CURRENT_LIST_DIR}/expandable.c
    ${CMAKE_CURRENT_LIST_DIR}/waiting.c
    ${CMAKE_CURRENT_LIST_DIR}/pools.c
    ${CMAKE_CURRENT_LIST_DIR}/check.c)
target_include_directories(oracle PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(oracle PUBLIC unfrag_tools test_models)
