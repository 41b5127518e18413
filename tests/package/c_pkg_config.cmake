# A program in C compiles and links by what pkg-config says of the installed library, shared and static, and runs.
#   cmake -DROOT=<repo> -DPREFIX=<installed> -DBUILD=<folder> -DCOMPILER=<of C> -P c_pkg_config.cmake
cmake_minimum_required(VERSION 3.22)
find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG OR NOT CMAKE_HOST_UNIX)
  message("SKIPPED: pkg-config is not installed")
  return()
endif()
file(REMOVE_RECURSE ${BUILD})
file(MAKE_DIRECTORY ${BUILD})
# Nothing else is to be found: a program in C needs neither Eigen nor PCRE2's headers.
set(ENV{PKG_CONFIG_LIBDIR} ${PREFIX}/share/pkgconfig)

function(ask_pkg_config variable)
  execute_process(COMMAND ${PKG_CONFIG} ${ARGN} tooldecode-c OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(said UNIX_COMMAND "${said}")
  set(${variable} ${said} PARENT_SCOPE)
endfunction()
# build(<name> <folder> <libraries>...) links the program, and runs it where the loader looks into the folder too.
function(build name folder)
  execute_process(COMMAND ${COMPILER} -std=c99 -Wall -Wextra -Werror ${flags} ${ROOT}/tests/package/c_program.c
                          ${ROOT}/tests/adapters/c_interface_c99.c -o ${BUILD}/${name} ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${folder} DYLD_LIBRARY_PATH=${folder} ${BUILD}/${name}
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()

ask_pkg_config(version --modversion)
file(STRINGS ${ROOT}/include/tooldecode/version.hpp line REGEX "\"${version}\"")
if(NOT line)
  message(FATAL_ERROR "pkg-config says ${version}, which the library does not")
endif()
ask_pkg_config(flags --cflags)
ask_pkg_config(folder --variable=libdir)
if(flags MATCHES "eigen|TOOLDECODE_COMPILED")
  message(FATAL_ERROR "a program in C gets flags of C++: ${flags}")
endif()

ask_pkg_config(libraries --libs)
build(shared ${folder} ${libraries})
# The archive by its path, as the linker takes the shared library where it has the choice.
ask_pkg_config(libraries --static --libs)
list(TRANSFORM libraries REPLACE "^-ltooldecode_c$" ${folder}/libtooldecode_c.a)
build(static ${BUILD} ${libraries})
