# SPDX-License-Identifier: MIT
# Operation logs recorded from PyTorch, run on the oracle and on the core.
add_library(test_models STATIC
    ${CMAKE_CURRENT_LIST_DIR}/model.c
    ${CMAKE_CURRENT_LIST_DIR}/expect.c
    ${CMAKE_CURRENT_LIST_DIR}/oplog.c
    ${CMAKE_CURRENT_LIST_DIR}/driver.c)
target_include_directories(test_models PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(test_models PUBLIC unfrag_tools)

foreach(program oracle_verify)
    add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.c)
    set_target_properties(${program} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()
target_link_libraries(oracle_verify PRIVATE oracle test_models)
