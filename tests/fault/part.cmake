# SPDX-License-Identifier: MIT
# Every driver call fails in turn, through whole lives of an allocator.
add_executable(every_call ${CMAKE_CURRENT_LIST_DIR}/every_call.c)
target_include_directories(every_call PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(every_call PRIVATE
    TEST_FAKECUDA_DIR="${PROJECT_BINARY_DIR}/tests/fakecuda")
target_link_libraries(every_call PRIVATE unfrag)
set_target_properties(every_call PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_dependencies(every_call fake_driver)
# quick: some calls of each kind; full: many; soak: all.
foreach(name plain torch expandable unfrag unfrag-others)
    add_test(NAME fault_${name} COMMAND every_call --setting ${name} --every 97)
    add_test(NAME fault_full_${name} COMMAND every_call --setting ${name} --every 17 --first 5)
    add_test(NAME fault_all_${name} COMMAND every_call --setting ${name})
    set_tests_properties(fault_full_${name} PROPERTIES LABELS full)
    set_tests_properties(fault_all_${name} PROPERTIES LABELS soak TIMEOUT 3600)
endforeach()
