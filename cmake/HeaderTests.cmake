# tooldecode_add_header_tests(<target> <pattern> [<library>...])
#
# For the headers that match the pattern, such as *.hpp, compiled with what the libraries bring.
# One translation unit per header, and one more that includes them all, prove three things:
#   self-contained   each header compiles alone, first in its file;
#   no stray macros  names that platform headers define as macros do not occur in ours;
#   no ODR traps     every function is seen by two objects, so one that forgot `inline` fails to link.
function(tooldecode_add_header_tests target pattern)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/include CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/include/tooldecode/${pattern})
  list(FILTER headers EXCLUDE REGEX cuda/frequency_ranks)  # needs the CUDA toolkit; its test includes it
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target}_sources)
  set(sources)
  set(includes)
  set(foreign)
  foreach(header IN LISTS headers)
    file(CONFIGURE OUTPUT ${directory}/${header}.cpp @ONLY CONTENT "#include <@header@>\n")
    list(APPEND sources ${directory}/${header}.cpp)
    string(APPEND includes "#include <${header}>\n")
    file(STRINGS ${PROJECT_SOURCE_DIR}/include/${header} lines REGEX "^#include <|^#define PCRE2")
    list(FILTER lines EXCLUDE REGEX "<tooldecode/")
    list(APPEND foreign ${lines})
  endforeach()
  list(REMOVE_DUPLICATES foreign)
  list(JOIN foreign "\n" foreign)
  set(traps)
  foreach(name I B0 small)
    string(APPEND traps
      "#define ${name} _Pragma(\"GCC error \\\"'${name}' may be a macro of the platform\\\"\")\n")
  endforeach()
  file(CONFIGURE OUTPUT ${directory}/all.cpp @ONLY
       CONTENT "@foreign@\n@traps@@includes@\nint main() {}\n")
  add_executable(${target} ${sources} ${directory}/all.cpp)
  target_link_libraries(${target} PRIVATE tooldecode_developer ${ARGN})
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)  # run.sh builds it with clang++
endfunction()
