# The library by pkg-config and nothing else: compiles and runs a loop over masks, links and runs README's call site.
#   cmake -DROOT=<repo> -DPREFIX=<installed> -DBUILD=<folder> -DCOMPILER=... -DLAUNCHER=... -DCALL_SITE=<list of its
#         objects> -P pkg_config.cmake
cmake_minimum_required(VERSION 3.22)
find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message("SKIPPED: pkg-config is not installed")
  return()
endif()
file(REMOVE_RECURSE ${BUILD})
file(MAKE_DIRECTORY ${BUILD})
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/share/pkgconfig)

function(ask_pkg_config variable)
  execute_process(COMMAND ${PKG_CONFIG} ${ARGN} OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(said UNIX_COMMAND "${said}")
  set(${variable} ${said} PARENT_SCOPE)
endfunction()
function(expect_output name expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -DPROGRAM=${BUILD}/${name} -DEXPECTED=${expected}
                          -P ${ROOT}/cmake/CompareOutput.cmake WORKING_DIRECTORY ${ROOT} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

ask_pkg_config(version --modversion tooldecode)
file(STRINGS ${ROOT}/include/tooldecode/version.hpp line REGEX "\"${version}\"")
if(NOT line)
  message(FATAL_ERROR "pkg-config says ${version}, which the library does not")
endif()

ask_pkg_config(flags --cflags --libs tooldecode)
execute_process(COMMAND ${LAUNCHER} ${COMPILER} -std=c++20 -c ${ROOT}/examples/01_mask.cpp -o ${BUILD}/mask.o ${flags}
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${COMPILER} ${BUILD}/mask.o -o ${BUILD}/mask ${flags} COMMAND_ERROR_IS_FATAL ANY)
expect_output(mask ${ROOT}/tests/data/examples/01_mask.txt)

ask_pkg_config(flags --cflags --libs tooldecode-vocabulary)
file(READ ${CALL_SITE} objects)
execute_process(COMMAND ${COMPILER} ${objects} -o ${BUILD}/call_site ${flags} COMMAND_ERROR_IS_FATAL ANY)
expect_output(call_site ${ROOT}/tests/package/call_site.txt)
