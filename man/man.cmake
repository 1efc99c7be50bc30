# SPDX-License-Identifier: MIT
# Manual pages, made where scdoc is there; without it everything else is built all the same.
find_program(SCDOC scdoc)
if(SCDOC)
    file(GLOB UNFRAG_MAN_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.1.scd)
    set(UNFRAG_MAN_PAGES)
    foreach(source ${UNFRAG_MAN_SOURCES})
        get_filename_component(page ${source} NAME_WLE)
        set(output ${PROJECT_BINARY_DIR}/man/${page})
        add_custom_command(OUTPUT ${output}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
            COMMAND ${SCDOC} < ${source} > ${output}
            DEPENDS ${source} VERBATIM)
        list(APPEND UNFRAG_MAN_PAGES ${output})
    endforeach()
    if(UNFRAG_MAN_PAGES)
        add_custom_target(unfrag_man ALL DEPENDS ${UNFRAG_MAN_PAGES})
        install(FILES ${UNFRAG_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    endif()
endif()

# Section 3 is made from the public headers, where there is a Python to do it.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
    set(UNFRAG_API_HEADERS)
    foreach(name unfrag pool cuda device host sim stats status policy event)
        list(APPEND UNFRAG_API_HEADERS ${PROJECT_SOURCE_DIR}/include/unfrag/${name}.h)
    endforeach()
    set(stamp ${PROJECT_BINARY_DIR}/man/man3.stamp)
    add_custom_command(OUTPUT ${stamp}
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${PROJECT_BINARY_DIR}/man/man3
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/header_man ${PROJECT_VERSION}
            ${PROJECT_BINARY_DIR}/man/man3 ${UNFRAG_API_HEADERS}
        COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
        DEPENDS ${UNFRAG_API_HEADERS} ${PROJECT_SOURCE_DIR}/scripts/header_man VERBATIM)
    add_custom_target(unfrag_man3 ALL DEPENDS ${stamp})
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/man3 DESTINATION ${CMAKE_INSTALL_MANDIR})
endif()
