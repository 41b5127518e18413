# tooldecode::compiled: the library with the definitions that no template needs compiled once, and not in every file
# that includes it. They stand in the headers' files .ipp, and are compiled in the project that links the target, with
# its compiler and its flags: nothing is installed but headers. Built where something links it.
#
#   tooldecode_add_compiled(<folder of headers>)
function(tooldecode_add_compiled include_dir)
  file(GLOB_RECURSE definitions RELATIVE ${include_dir} CONFIGURE_DEPENDS ${include_dir}/tooldecode/*.ipp)
  set(layers)
  foreach(definition IN LISTS definitions)
    string(REGEX REPLACE "^tooldecode/([a-z]+)/.*" "\\1" layer ${definition})
    list(APPEND layers ${layer})
    string(APPEND text_of_${layer} "#include <${definition}>\n")
  endforeach()
  list(REMOVE_DUPLICATES layers)
  set(sources)
  foreach(layer IN LISTS layers)  # of one layer in one file: they share much
    set(source ${CMAKE_CURRENT_BINARY_DIR}/tooldecode_compiled/${layer}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text_of_${layer}}" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  add_library(tooldecode_compiled STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(tooldecode::compiled ALIAS tooldecode_compiled)
  target_compile_definitions(tooldecode_compiled PUBLIC TOOLDECODE_COMPILED)
  target_link_libraries(tooldecode_compiled PUBLIC tooldecode::tooldecode)
endfunction()
