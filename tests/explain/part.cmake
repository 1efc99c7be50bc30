# SPDX-License-Identifier: MIT
# Every reported message, built again in many wrappings, must be read to the byte and explained.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME explain_messages COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/messages_test.py $<TARGET_FILE:unfrag_cli>
    ${CMAKE_CURRENT_SOURCE_DIR}/data/reports)
add_test(NAME explain_other_texts COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/texts_test.py $<TARGET_FILE:unfrag_cli>)
add_test(NAME explain_big_log COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/big_log_test.py $<TARGET_FILE:unfrag_cli>)
