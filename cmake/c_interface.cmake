# tooldecode::c: the functions of <tooldecode/adapters/tooldecode.h>, for programs in C and whatever calls C. Compiled in
# the project that links it, with its compiler and its flags, and built where something links it. Needs PCRE2.
#
#   tooldecode_add_c(<target> [STATIC|SHARED])   without a type: as BUILD_SHARED_LIBS says
#
# A shared library exports the functions td_* and nothing else. Libraries of both types are made of the same objects, but
# on Windows, where what is exported is compiled otherwise.
set(TOOLDECODE_C_MAP ${CMAKE_CURRENT_LIST_DIR}/tooldecode_c.map)

function(tooldecode_add_c target)
  set(objects tooldecode_c_objects)
  if(WIN32)
    set(objects ${target}_objects)
  endif()
  if(NOT TARGET ${objects})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${objects}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <tooldecode/adapters/c_interface.hpp>\n" @ONLY)
    add_library(${objects} OBJECT EXCLUDE_FROM_ALL ${source})
    target_compile_definitions(${objects} PRIVATE TOOLDECODE_C_BUILD)
    target_link_libraries(${objects} PRIVATE tooldecode::vocabulary)
    set_target_properties(${objects} PROPERTIES
      POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
  add_library(${target} ${ARGN} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${objects}>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:$<TARGET_PROPERTY:tooldecode::headers,INTERFACE_INCLUDE_DIRECTORIES>>)
  target_link_libraries(${target} PRIVATE tooldecode::vocabulary $<TARGET_NAME_IF_EXISTS:Threads::Threads>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_compile_definitions(${target} PUBLIC TOOLDECODE_C_SHARED)
    if(WIN32)
      target_compile_definitions(${objects} PRIVATE TOOLDECODE_C_SHARED)
    elseif(NOT APPLE)  # what the standard library's templates leave is not hidden by its visibility
      target_link_options(${target} PRIVATE LINKER:--version-script=${TOOLDECODE_C_MAP})
      set_target_properties(${target} PROPERTIES LINK_DEPENDS ${TOOLDECODE_C_MAP})
    endif()
  endif()
endfunction()
