# One translation unit out of several sources, so that what their headers define is compiled once. What is generated
# names sources by their place below the tree, so that it is the same in every checkout.
#
#   tooldecode_unity_source(<variable> <name> <source>...)
#
# Sets <variable> to a generated file, which puts each source in its own namespace, so that local names do not meet:
# headers are included first and at global scope; the sources' own includes then find their guards taken. A source's
# COMPILE_DEFINITIONS, of the form NAME=VALUE, hold for it alone. With sanitizers clang++ optimises the headers and not the
# sources.
include_guard()

set(tooldecode_unity_directory ${PROJECT_BINARY_DIR}/unity)

function(tooldecode_unity_path variable source)
  get_filename_component(source ${source} ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(RELATIVE_PATH source ${tooldecode_unity_directory} ${source})
  set(${variable} ${source} PARENT_SCOPE)
endfunction()

function(tooldecode_unity_source variable name)
  set(includes)
  set(bodies)
  foreach(source IN LISTS ARGN)
    tooldecode_unity_path(path ${source})
    get_filename_component(folder ${path} DIRECTORY)
    file(STRINGS ${source} lines REGEX "^#include ")
    list(TRANSFORM lines REPLACE "\"(.*)\"" "\"${folder}/\\1\"")
    list(APPEND includes ${lines})
    get_filename_component(stem ${path} NAME_WE)
    get_filename_component(folder ${folder} NAME)
    string(MAKE_C_IDENTIFIER "unit_${folder}_${stem}" scope)
    set(body "#include \"${path}\"\n")
    get_source_file_property(definition ${source} COMPILE_DEFINITIONS)
    if(definition MATCHES "^([^=;]+)=([^;]+)$")
      set(body "#define ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}\n${body}#undef ${CMAKE_MATCH_1}\n")
    endif()
    string(APPEND bodies "namespace ${scope} {\n${body}}\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    string(APPEND includes "\n#pragma clang optimize off")
  endif()
  set(file ${tooldecode_unity_directory}/${name}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "@includes@\n@bodies@" @ONLY)
  set(${variable} ${file} PARENT_SCOPE)
endfunction()
