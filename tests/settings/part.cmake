# SPDX-License-Identifier: MIT
# docs/settings.md says what the table of settings says, and nothing else.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_executable(settings_table ${CMAKE_CURRENT_LIST_DIR}/settings_table.c)
target_link_libraries(settings_table PRIVATE unfrag)
set_target_properties(settings_table PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME lint_settings COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/scripts/check_settings_docs $<TARGET_FILE:settings_table>)
