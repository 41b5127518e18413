# The library without CMake compiles and links a loop over masks, README's call site, and two files that include all:
#   pkg_config   the installed library, as pkg-config names it
#   header_only  an include path
#   impl         an include path, TOOLDECODE_COMPILED, and one source file that includes <tooldecode/impl.hpp>
#   cmake -DWAY=... -DROOT=<repo> -DPREFIX=<installed> -DBUILD=<folder> -DCOMPILER=... -DLAUNCHER=... -P without_cmake.cmake
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
# compile(<name> <source>): an object, soon: what counts is that it compiles and links, and -O0 writes more of it.
function(compile name source)
  execute_process(COMMAND ${LAUNCHER} ${COMPILER} -std=c++20 -Og -c ${source} -o ${BUILD}/${name}.o ${flags}
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(link name)
  list(TRANSFORM ARGN REPLACE "(.+)" "${BUILD}/\\1.o" OUTPUT_VARIABLE objects)
  execute_process(COMMAND ${COMPILER} ${objects} -o ${BUILD}/${name} ${libraries} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(expect_output program expected)
  execute_process(COMMAND ${CMAKE_COMMAND} "-DPROGRAM=${program}" -DEXPECTED=${expected}
                          -P ${ROOT}/cmake/CompareOutput.cmake WORKING_DIRECTORY ${ROOT} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

ask_pkg_config(version --modversion tooldecode)
file(STRINGS ${ROOT}/include/tooldecode/version.hpp line REGEX "\"${version}\"")
if(NOT line)
  message(FATAL_ERROR "pkg-config says ${version}, which the library does not")
endif()

set(definitions)
if(WAY STREQUAL "pkg_config")
  ask_pkg_config(flags --cflags tooldecode-vocabulary)
  ask_pkg_config(libraries --libs tooldecode-vocabulary)
else()
  ask_pkg_config(flags --cflags eigen3 libpcre2-8)
  ask_pkg_config(libraries --libs libpcre2-8)
  list(APPEND flags -I${PREFIX}/include)
endif()
if(WAY STREQUAL "impl")
  list(APPEND flags -DTOOLDECODE_COMPILED)
  file(WRITE ${BUILD}/impl.cpp "#include <tooldecode/impl.hpp>\n#include <tooldecode/vocabulary/impl.hpp>\n")
  compile(impl ${BUILD}/impl.cpp)
  set(definitions impl)
endif()
list(APPEND libraries -lpthread)

compile(second ${ROOT}/tests/package/second.cpp)
if(WAY STREQUAL "header_only")
  # Each object compiles all definitions, so the programs are one, which runs the one that its argument names.
  set(headers)
  set(bodies)
  set(cases)
  foreach(source examples/01_mask tests/package/call_site tests/package/first)
    get_filename_component(name ${source} NAME)
    string(MAKE_C_IDENTIFIER "program_${name}" name)
    file(STRINGS ${ROOT}/${source}.cpp lines REGEX "^#include <")
    list(APPEND headers ${lines})
    file(READ ${ROOT}/${source}.cpp text)
    string(REGEX REPLACE "}\n$" "  return 0;\n}\n" text "${text}")  # which main alone may leave out
    file(WRITE ${BUILD}/${name}.inc "${text}")
    string(APPEND bodies "namespace ${name} {\n#include \"${name}.inc\"\n}\n")
    string(APPEND cases "  if (std::string_view(arguments[1]) == \"${name}\") return ${name}::main();\n")
  endforeach()
  list(REMOVE_DUPLICATES headers)
  list(JOIN headers "\n" headers)
  file(WRITE ${BUILD}/programs.cpp "${headers}
#include <string_view>
const void* address_seen_by_second();
${bodies}
int main(int, char** arguments) {\n${cases}  return 2;\n}
")
  compile(programs ${BUILD}/programs.cpp)
  link(programs programs second)
  set(mask ${BUILD}/programs program_01_mask)
  set(call_site ${BUILD}/programs program_call_site)
  set(user ${BUILD}/programs program_first)
else()
  compile(mask ${ROOT}/examples/01_mask.cpp)
  compile(call_site ${ROOT}/tests/package/call_site.cpp)
  compile(first ${ROOT}/tests/package/first.cpp)
  link(mask mask ${definitions})
  link(call_site call_site ${definitions})
  link(user first second ${definitions})
  foreach(program mask call_site user)
    set(${program} ${BUILD}/${program})
  endforeach()
endif()
expect_output("${mask}" ${ROOT}/tests/data/examples/01_mask.txt)
expect_output("${call_site}" ${ROOT}/tests/package/call_site.txt)
execute_process(COMMAND ${user} COMMAND_ERROR_IS_FATAL ANY)
