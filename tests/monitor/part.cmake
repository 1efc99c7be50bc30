# SPDX-License-Identifier: MIT
# Processes to watch, and what watches them: the live view under tmux, the endpoint scraped by a
# real Prometheus.
add_executable(monitor_worker ${CMAKE_CURRENT_LIST_DIR}/worker.c)
target_link_libraries(monitor_worker PRIVATE unfrag)
target_link_libraries(monitor_worker PRIVATE unfrag_options)
set_target_properties(monitor_worker PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(name view export)
    add_test(NAME monitor_${name} COMMAND ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_LIST_DIR}/${name}.py $<TARGET_FILE:unfrag_cli> $<TARGET_FILE:monitor_worker>)
    set_tests_properties(monitor_${name} PROPERTIES LABELS "full;no-sanitizer" SKIP_RETURN_CODE 77)
endforeach()
add_test(NAME monitor_chrome_trace COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/chrome_trace.py $<TARGET_FILE:unfrag_cli>
    ${PROJECT_SOURCE_DIR}/data/graphs.default.pickle.xz
    ${PROJECT_SOURCE_DIR}/data/multistream.expandable.pickle.xz
    ${PROJECT_SOURCE_DIR}/data/llm-ring.pickle.xz)
add_test(NAME monitor_python_page COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/python_page.py $<TARGET_FILE:unfrag_cli>)
