# One translation unit out of several sources, each in a namespace of its own, so that what their headers
# define is compiled once and their local names do not meet.
#
#   tooldecode_unity_source(<variable> <name> <source>...)
#
# sets <variable> to a generated file. Headers are included first and at global scope; the sources' own
# includes then find their guards taken. A source's COMPILE_DEFINITIONS, of the form NAME=VALUE, hold for it alone.
function(tooldecode_unity_source variable name)
  set(includes)
  set(bodies)
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    get_filename_component(folder ${source} DIRECTORY)
    file(STRINGS ${source} lines REGEX "^#include ")
    list(TRANSFORM lines REPLACE "\"(.*)\"" "\"${folder}/\\1\"")
    list(APPEND includes ${lines})
    get_filename_component(stem ${source} NAME_WE)
    get_filename_component(folder ${folder} NAME)
    string(MAKE_C_IDENTIFIER "unit_${folder}_${stem}" scope)
    set(body "#include \"${source}\"\n")
    get_source_file_property(definition ${source} COMPILE_DEFINITIONS)
    if(definition MATCHES "^([^=;]+)=([^;]+)$")
      set(body "#define ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}\n${body}#undef ${CMAKE_MATCH_1}\n")
    endif()
    string(APPEND bodies "namespace ${scope} {\n${body}}\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${includes}\n${bodies}" @ONLY)
  set(${variable} ${file} PARENT_SCOPE)
endfunction()
