# The target `documentation`: pages for a browser, made by Doxygen; and the test of the same name, in which a warning,
# such as a reference to what is not there, is an error.
find_package(Doxygen QUIET COMPONENTS dot)
if(DOXYGEN_FOUND)
  set(DOCUMENTATION_OUTPUT ${PROJECT_BINARY_DIR}/documentation)
  configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${DOCUMENTATION_OUTPUT}/Doxyfile @ONLY)
  set(command ${DOXYGEN_EXECUTABLE} ${DOCUMENTATION_OUTPUT}/Doxyfile)
  add_custom_target(documentation COMMAND ${command} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
else()
  set(command ${CMAKE_COMMAND} -E echo "SKIPPED: the documentation needs doxygen and graphviz")
endif()
add_test(NAME documentation COMMAND ${command} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(documentation PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED" TIMEOUT 600)
