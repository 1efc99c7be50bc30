# SPDX-License-Identifier: MIT
# Tuning against exhaustive search, and the tables in docs/ against the program.
add_executable(tune_exhaustive tune/exhaustive.c)
target_include_directories(tune_exhaustive PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit)
target_compile_definitions(tune_exhaustive PRIVATE PROJECT_DATA_DIR="${PROJECT_SOURCE_DIR}/data")
target_link_libraries(tune_exhaustive PRIVATE unfrag_tools PkgConfig::CHECK)
set_target_properties(tune_exhaustive PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME tune_exhaustive COMMAND tune_exhaustive)
add_test(NAME tune_cards COMMAND ${PROJECT_SOURCE_DIR}/scripts/card_table --check
    $<TARGET_FILE:unfrag_cli>)
set_tests_properties(tune_exhaustive PROPERTIES LABELS full)
set_tests_properties(tune_cards PROPERTIES LABELS "full;no-sanitizer")
