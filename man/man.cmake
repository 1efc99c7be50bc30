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
