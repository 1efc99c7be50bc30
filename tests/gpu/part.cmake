# SPDX-License-Identifier: MIT
# The GPU tests (tests/gpu/run, on a machine with a GPU) are built everywhere and run here over the
# fake driver library, small.
file(GLOB UNFRAG_GPU_TEST_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(gpu_tests ${UNFRAG_GPU_TEST_SOURCES})
target_include_directories(gpu_tests PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(gpu_tests PRIVATE unfrag)
set_target_properties(gpu_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_dependencies(gpu_tests fake_driver)
foreach(name conformance fills capture alias copy gather transpose peer mapping synchronises latency)
    add_test(NAME fakegpu_${name} COMMAND gpu_tests ${name} 1)
    set_tests_properties(fakegpu_${name} PROPERTIES ENVIRONMENT
        "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/fakecuda/cuda;UNFRAG_FAKE_GPU=card=fake|402653184\\;card=fake|402653184\\;granule=65536|65536")
endforeach()
add_test(NAME fakegpu_lies_are_noticed COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/lies.py $<TARGET_FILE:gpu_tests>
    ${PROJECT_BINARY_DIR}/tests/fakecuda/cuda)
