# SPDX-License-Identifier: MIT
# The oracle (a naive second model of PyTorch's allocator), the conformance statements, and random
# operations on the oracle and the core side by side.
add_library(oracle STATIC
    ${CMAKE_CURRENT_LIST_DIR}/oracle.c
    ${CMAKE_CURRENT_LIST_DIR}/blocks.c
    ${CMAKE_CURRENT_LIST_DIR}/search.c
    ${CMAKE_CURRENT_LIST_DIR}/driver.c
    ${CMAKE_CURRENT_LIST_DIR}/expandable.c
    ${CMAKE_CURRENT_LIST_DIR}/waiting.c
    ${CMAKE_CURRENT_LIST_DIR}/pools.c
    ${CMAKE_CURRENT_LIST_DIR}/check.c)
target_link_libraries(oracle PUBLIC test_models)

add_library(conformance STATIC
    ${CMAKE_CURRENT_LIST_DIR}/bench.c
    ${CMAKE_CURRENT_LIST_DIR}/conformance.c
    ${CMAKE_CURRENT_LIST_DIR}/conformance_sizes.c
    ${CMAKE_CURRENT_LIST_DIR}/conformance_search.c
    ${CMAKE_CURRENT_LIST_DIR}/conformance_chain.c
    ${CMAKE_CURRENT_LIST_DIR}/conformance_pools.c)
target_link_libraries(conformance PUBLIC test_models PkgConfig::CHECK)
target_link_libraries(oracle_test PRIVATE conformance oracle)
target_link_libraries(conformance_test PRIVATE conformance)

add_executable(random_ops
    ${CMAKE_CURRENT_LIST_DIR}/random_ops.c
    ${CMAKE_CURRENT_LIST_DIR}/pair.c
    ${CMAKE_CURRENT_LIST_DIR}/generate.c
    ${CMAKE_CURRENT_LIST_DIR}/setting.c)
target_link_libraries(random_ops PRIVATE oracle)
set_target_properties(random_ops PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# Every setting of the list is a test; a setting that is not in setting.c fails.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/setting.c setting_lines REGEX "\\.name = \"")
foreach(line ${setting_lines})
    string(REGEX REPLACE ".*\\.name = \"([a-z0-9_]+)\".*" "\\1" name "${line}")
    add_test(NAME random_ops_${name} COMMAND random_ops --setting ${name} --count 20000)
endforeach()
add_test(NAME random_ops_finds_no_difference_between_equals
    COMMAND random_ops --models oracle,oracle --setting pools_toggle --count 2000)

# A million operations per setting (make soak), and the same way with few (every time).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME soak COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/soak
    $<TARGET_FILE:random_ops>)
set_tests_properties(soak PROPERTIES LABELS soak TIMEOUT 14400)
add_test(NAME soak_of_a_few_operations COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/soak
    $<TARGET_FILE:random_ops> --count 500 --log ${CMAKE_CURRENT_BINARY_DIR}/soak-short.log)

# The unfrag policy under random operations, judged by a ledger and a naive oracle. Every setting of
# the list is a test; by hand: paged_ops --setting NAME --seed S --count N.
add_executable(paged_ops
    ${CMAKE_CURRENT_LIST_DIR}/paged_ops.c
    ${CMAKE_CURRENT_LIST_DIR}/paged_oracle.c
    ${CMAKE_CURRENT_LIST_DIR}/ledger.c)
target_include_directories(paged_ops PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(paged_ops PRIVATE unfrag_tools)
set_target_properties(paged_ops PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/paged_ops.c setting_lines REGEX "\\.name = \"")
foreach(line ${setting_lines})
    string(REGEX REPLACE ".*\\.name = \"([a-z0-9_]+)\".*" "\\1" name "${line}")
    add_test(NAME paged_ops_${name} COMMAND paged_ops --setting ${name} --count 20000)
endforeach()

# A hundred million of them (make soak), and the way of checking that it uses (every time).
add_test(NAME paged_soak COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/paged_soak
    $<TARGET_FILE:paged_ops>)
set_tests_properties(paged_soak PROPERTIES LABELS soak TIMEOUT 14400)
add_test(NAME paged_ops_checked_in_part COMMAND paged_ops --count 20000 --check-every 1000 --seed 2)
