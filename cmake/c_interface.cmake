# tooldecode::c: the functions of <tooldecode/adapters/tooldecode.h>, for programs in C and whatever calls C. Compiled in
# the project that links it, with its compiler and its flags, and built where something links it. Needs PCRE2.
#
#   tooldecode_add_c(<target> [STATIC|SHARED])   without a type: as BUILD_SHARED_LIBS says
#
# A shared library exports the functions td_* and nothing else.
set(TOOLDECODE_C_MAP ${CMAKE_CURRENT_LIST_DIR}/tooldecode_c.map)

function(tooldecode_add_c target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <tooldecode/adapters/c_interface.hpp>\n" @ONLY)
  add_library(${target} ${ARGN} EXCLUDE_FROM_ALL ${source})
  target_compile_definitions(${target} PRIVATE TOOLDECODE_C_BUILD)
  target_include_directories(${target} INTERFACE
    $<TARGET_PROPERTY:tooldecode::header_only,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${target} PRIVATE tooldecode::vocabulary $<TARGET_NAME_IF_EXISTS:Threads::Threads>)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_compile_definitions(${target} PUBLIC TOOLDECODE_C_SHARED)
    if(UNIX AND NOT APPLE)  # what the standard library's templates leave is not hidden by its visibility
      target_link_options(${target} PRIVATE LINKER:--version-script=${TOOLDECODE_C_MAP})
      set_target_properties(${target} PROPERTIES LINK_DEPENDS ${TOOLDECODE_C_MAP})
    endif()
  endif()
endfunction()
