# SPDX-License-Identifier: MIT
# Every byte of random allocations on host memory, while kernels run late.
add_executable(data_integrity ${CMAKE_CURRENT_LIST_DIR}/data.c)
target_include_directories(data_integrity PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(data_integrity PRIVATE
    TEST_FAKECUDA_DIR="${PROJECT_BINARY_DIR}/tests/fakecuda")
target_link_libraries(data_integrity PRIVATE unfrag_tools)
set_target_properties(data_integrity PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
# By hand: data_integrity --setting NAME --seed S --count N, for as long as one likes.
add_test(NAME integrity_torch COMMAND data_integrity --setting torch --in-flight)
add_test(NAME integrity_expandable COMMAND data_integrity --setting expandable --in-flight)
add_test(NAME integrity_unfrag COMMAND data_integrity --setting unfrag)
add_test(NAME integrity_unfrag_in_flight COMMAND data_integrity --setting unfrag --in-flight)
# The same over the cuda device and the fake driver library.
foreach(name torch expandable unfrag)
    add_test(NAME integrity_cuda_${name}
        COMMAND data_integrity --setting ${name} --in-flight --cuda --count 4000)
endforeach()
add_dependencies(data_integrity fake_driver)
