# SPDX-License-Identifier: MIT
# Recordings of random programs: the twin must reproduce each of them.
add_test(NAME recordings_verify
    COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/recordings/run $<TARGET_FILE:unfrag_cli>
        ${CMAKE_CURRENT_SOURCE_DIR}/data/recordings)
