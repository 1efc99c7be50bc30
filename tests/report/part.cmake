# SPDX-License-Identifier: MIT
# unfrag report: the page's data against the snapshots, and the page in a real browser.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME report_page COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/page_test.py
    $<TARGET_FILE:unfrag_cli>)
add_test(NAME report_page_long COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/page_test.py $<TARGET_FILE:unfrag_cli> long)
set_tests_properties(report_page_long PROPERTIES LABELS "full;no-sanitizer")
add_test(NAME report_browser COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/browser_test.py
    $<TARGET_FILE:unfrag_cli>)
set_tests_properties(report_browser PROPERTIES LABELS "full;no-sanitizer")
