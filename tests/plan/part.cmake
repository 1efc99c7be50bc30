# SPDX-License-Identifier: MIT
# Plan against measured peaks: each cell by a model file that was made without its recording.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME plan_leave_one_out COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/scripts/plan_table $<TARGET_FILE:unfrag_cli>)
