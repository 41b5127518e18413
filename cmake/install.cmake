# Headers, the licence, and the package that find_package(tooldecode) and pkg-config read.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/tooldecode)
install(DIRECTORY include/tooldecode DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.ipp" PATTERN "*.cuh" PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS tooldecode_headers tooldecode_constrain EXPORT tooldecode_constrain
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tooldecode_constrain NAMESPACE tooldecode:: FILE tooldecodeConstrainTargets.cmake
        DESTINATION ${package_dir})
set(pc_names tooldecode-constrain)
set(pc_all tooldecode-constrain)
if(TARGET tooldecode)  # by itself: a machine that lacks Eigen can use the rest
  install(TARGETS tooldecode_header_only tooldecode EXPORT tooldecode ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tooldecode NAMESPACE tooldecode:: FILE tooldecodeTargets.cmake
          DESTINATION ${package_dir})
  list(APPEND pc_names tooldecode)
  set(pc_all tooldecode)
endif()
if(TARGET tooldecode_vocabulary)  # by itself: a machine that lacks PCRE2 can use the rest
  install(TARGETS tooldecode_vocabulary EXPORT tooldecode_vocabulary ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tooldecode_vocabulary NAMESPACE tooldecode:: FILE tooldecodeVocabularyTargets.cmake
          DESTINATION ${package_dir})
  list(APPEND pc_names tooldecode-vocabulary)
endif()
if(TARGET tooldecode_c_shared)
  install(TARGETS tooldecode_c_shared tooldecode_c_static
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  list(APPEND pc_names tooldecode-c)
endif()
if(TARGET tooldecode_cuda_c AND PROJECT_IS_TOP_LEVEL)
  install(TARGETS tooldecode_cuda_c EXPORT tooldecode_cuda_c
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tooldecode_cuda_c NAMESPACE tooldecode:: FILE tooldecodeCudaCTargets.cmake DESTINATION ${package_dir})
  list(APPEND pc_names tooldecode-cuda-c)
endif()
configure_package_config_file(cmake/tooldecodeConfig.cmake.in tooldecodeConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tooldecodeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tooldecodeConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tooldecodeConfigVersion.cmake
              cmake/FindPCRE2.cmake cmake/c_interface.cmake cmake/tooldecode_c.map
        DESTINATION ${package_dir})

# Relative to where they lie, so that what is installed may be moved.
file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
file(RELATIVE_PATH to_lib ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR})
set(pc_libdir "\${pcfiledir}/${to_lib}")
set(pc_cxx_library -lstdc++)  # which a linker of C does not know of
if(APPLE OR CMAKE_CXX_FLAGS MATCHES "-stdlib=libc\\+\\+")
  set(pc_cxx_library -lc++)
endif()
foreach(name IN LISTS pc_names)
  configure_file(cmake/packaging/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
endforeach()
