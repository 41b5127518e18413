# Headers, the licence, and the package that find_package(tooldecode) reads.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/tooldecode)
install(DIRECTORY include/tooldecode DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS ${libraries} EXPORT tooldecode)
install(EXPORT tooldecode NAMESPACE tooldecode:: FILE tooldecodeTargets.cmake
        DESTINATION ${package_dir})
configure_package_config_file(cmake/tooldecodeConfig.cmake.in tooldecodeConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tooldecodeConfigVersion.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tooldecodeConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tooldecodeConfigVersion.cmake
              cmake/FindPCRE2.cmake
        DESTINATION ${package_dir})
