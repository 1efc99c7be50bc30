# SPDX-License-Identifier: MIT
# Operation logs recorded from PyTorch, run on the oracle and on the core.
add_library(test_models STATIC
    ${CMAKE_CURRENT_LIST_DIR}/model.c
    ${CMAKE_CURRENT_LIST_DIR}/expect.c
    ${CMAKE_CURRENT_LIST_DIR}/oplog.c
    ${CMAKE_CURRENT_LIST_DIR}/driver.c
    ${CMAKE_CURRENT_LIST_DIR}/core_model.c)
target_include_directories(test_models PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(test_models PUBLIC unfrag_tools)

add_executable(oracle_verify ${CMAKE_CURRENT_LIST_DIR}/oracle_verify.c)
target_link_libraries(oracle_verify PRIVATE oracle)
add_executable(oplog_verify ${CMAKE_CURRENT_LIST_DIR}/oplog_verify.c)
target_link_libraries(oplog_verify PRIVATE test_models)
set_target_properties(oracle_verify oplog_verify PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

file(GLOB oplogs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/data/oplogs/*.ops.jsonl.xz)
foreach(oplog ${oplogs})
    string(REPLACE ".ops.jsonl.xz" "" base ${oplog})
    get_filename_component(name ${base} NAME)
    foreach(program oracle_verify oplog_verify)
        add_test(NAME ${program}_${name} COMMAND ${program} ${base})
    endforeach()
endforeach()
add_test(NAME oplog_verify_without_a_log COMMAND
    sh -c "$<TARGET_FILE:oplog_verify> /nonexistent/log; test $? = 3")
add_test(NAME oplog_verify_without_arguments COMMAND
    sh -c "$<TARGET_FILE:oplog_verify>; test $? = 2")
