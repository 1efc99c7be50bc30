# SPDX-License-Identifier: MIT
# Golden tests of the command line: one ctest test per NOUN.test, and the unit tests of cli/'s own
# parts (json, nearest, exit codes ...), which are compiled from cli/ directly.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB UNFRAG_CLI_TESTS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.test)
foreach(file ${UNFRAG_CLI_TESTS})
    get_filename_component(noun ${file} NAME_WE)
    add_test(NAME cli_${noun} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run_cases.py
        $<TARGET_FILE:unfrag_cli> ${file})
endforeach()

file(GLOB UNFRAG_CLI_UNITS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.c)
set(UNFRAG_CLI_PARTS ${UNFRAG_CLI_SOURCES})
list(FILTER UNFRAG_CLI_PARTS EXCLUDE REGEX "/main\\.c$")
list(TRANSFORM UNFRAG_CLI_PARTS PREPEND ${PROJECT_SOURCE_DIR}/ REGEX "^[^/]")
foreach(source ${UNFRAG_CLI_UNITS})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source} ${UNFRAG_CLI_PARTS})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cli)
    target_compile_definitions(${name} PRIVATE CLI_INSTALLED_DATA_DIR="/nowhere")
    target_link_libraries(${name} PRIVATE unfrag_tools PkgConfig::CHECK)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name})
endforeach()
