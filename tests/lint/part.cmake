# SPDX-License-Identifier: MIT
# The checkers of the repository itself, the checks of those checkers, and the promise that
# libunfrag alone needs a C compiler and CMake, nothing more.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME lint_layers COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/scripts/check_layers ${PROJECT_SOURCE_DIR})
add_test(NAME lint_docs COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_docs
    $<TARGET_FILE:unfrag_cli>)
add_test(NAME lint_checkers COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/checkers_test.py)
add_test(NAME lint_statements COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/statements.py ${PROJECT_SOURCE_DIR})
add_test(NAME lint_statements_itself COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/statements.py --self-test)
add_test(NAME lint_library_alone COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/library_alone.py ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER})
set_tests_properties(lint_layers lint_docs lint_checkers lint_statements lint_statements_itself
    PROPERTIES LABELS no-sanitizer)
set_tests_properties(lint_library_alone PROPERTIES LABELS "full;no-sanitizer")
