# SPDX-License-Identifier: MIT
# What an installation has besides programs and libraries: pkg-config and CMake files, which find
# their own place and so may be moved, and the Debian package (cpack -G DEB).
include(CMakePackageConfigHelpers)

file(RELATIVE_PATH UNFRAG_PREFIX_FROM_PKGCONFIG
    "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" UNFRAG_PREFIX_FROM_PKGCONFIG "${UNFRAG_PREFIX_FROM_PKGCONFIG}")
set(UNFRAG_PKGCONFIG_FILES unfrag)
if(UNFRAG_TOOLS)
    list(APPEND UNFRAG_PKGCONFIG_FILES unfrag-tools)
endif()
foreach(name ${UNFRAG_PKGCONFIG_FILES})
    configure_file(packaging/${name}.pc.in ${PROJECT_BINARY_DIR}/packaging/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/packaging/${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

configure_package_config_file(packaging/unfrag-config.cmake.in
    ${PROJECT_BINARY_DIR}/packaging/unfrag-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/unfrag
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/unfrag-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/packaging/unfrag-config.cmake
    ${PROJECT_BINARY_DIR}/packaging/unfrag-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/unfrag)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME unfrag)
set(CPACK_PACKAGE_VENDOR "the unfrag developers")
set(CPACK_PACKAGE_CONTACT "the unfrag developers <unfrag@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GPU memory that does not fragment")
set(CPACK_PACKAGE_DESCRIPTION
    "A caching GPU memory allocator in C, and tools that explain, predict and tune the GPU memory \
of PyTorch programs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcuda1")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
