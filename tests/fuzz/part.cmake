# SPDX-License-Identifier: MIT
# The fuzz targets as plain tests: NOUN_fuzz.c plays every file of corpus/NOUN/, each as it is, cut
# short, and with bits flipped. `make fuzz` runs the same targets under libFuzzer.
file(GLOB UNFRAG_FUZZ_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_fuzz.c)
foreach(source ${UNFRAG_FUZZ_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" noun ${name})
    add_executable(${name} ${source} ${CMAKE_CURRENT_LIST_DIR}/corpus_main.c)
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE unfrag_tools)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_CURRENT_LIST_DIR}/corpus/${noun})
    set_tests_properties(${name} PROPERTIES LABELS full)
endforeach()
