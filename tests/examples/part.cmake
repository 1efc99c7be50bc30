# SPDX-License-Identifier: MIT
# The examples: built against the library alone, as C11, run, and what they print compared. Their
# listings in docs/c-api.md, docs/c-examples.md and docs/debug.md are the files themselves.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB UNFRAG_EXAMPLES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source ${UNFRAG_EXAMPLES})
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} ${source})
    target_compile_options(example_${name} PRIVATE -Wall -Wextra -Werror)
    target_include_directories(example_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(example_${name} PRIVATE $<TARGET_FILE:unfrag_shared>)
    add_dependencies(example_${name} unfrag_shared)
    set_target_properties(example_${name} PROPERTIES C_EXTENSIONS OFF
        BUILD_RPATH $<TARGET_FILE_DIR:unfrag_shared>
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set(page c-examples)
    if(name STREQUAL hello)
        set(page c-api)
    elseif(name STREQUAL debug)
        set(page debug)
    endif()
    add_test(NAME example_${name} COMMAND ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_LIST_DIR}/run_example.py $<TARGET_FILE:example_${name}> ${source}
        ${PROJECT_SOURCE_DIR}/docs/${page}.md)
endforeach()
# On a driver over host memory.
add_dependencies(example_cuda fake_driver)
set_tests_properties(example_cuda PROPERTIES ENVIRONMENT
    "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/fakecuda/cuda;UNFRAG_FAKE_GPU=card=A card|8589934592|8589934592|")
add_test(NAME example_generate COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/generate_test.py ${PROJECT_SOURCE_DIR}/examples/generate.py
    $<TARGET_FILE:unfrag_cli>)
