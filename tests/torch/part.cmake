# SPDX-License-Identifier: MIT
# The glue over a stub of PyTorch's interface, in the forms of two releases.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    file(GLOB UNFRAG_TORCH_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/torch/*.cpp)
    foreach(release 2011 2009)
        set(name torch_glue_${release}_test)
        add_executable(${name} ${UNFRAG_TORCH_SOURCES}
            ${CMAKE_CURRENT_SOURCE_DIR}/torch/glue_test.cpp
            ${CMAKE_CURRENT_SOURCE_DIR}/torch/stub/stub.cpp)
        set_target_properties(${name} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
        target_compile_options(${name} PRIVATE -Wall -Wextra
            $<$<BOOL:${UNFRAG_WERROR}>:-Werror>)
        target_compile_definitions(${name} PRIVATE UF_TORCH_VERSION=${release}
            STUB_TORCH_VERSION=${release})
        target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/torch
            ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR}/torch/stub)
        # Not the target: its options are for C.
        target_link_libraries(${name} PRIVATE $<TARGET_FILE:unfrag> PkgConfig::CHECK Threads::Threads
            ${CMAKE_DL_LIBS})
        add_dependencies(${name} unfrag)
        add_test(NAME ${name} COMMAND ${name})
    endforeach()
    # Under a sanitizer Python would need its runtime first; the glue is tested under it above.
    add_test(NAME torch_python COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/torch/python_test.py
        $<TARGET_FILE:unfrag_cli> $<TARGET_FILE:unfrag_shared>
        ${PROJECT_BINARY_DIR}/tests/fakecuda/cuda)
    set_tests_properties(torch_python PROPERTIES LABELS "full;no-sanitizer" TIMEOUT 900)
else()
    message(STATUS "no C++ compiler: the glue for PyTorch is not tested")
endif()
