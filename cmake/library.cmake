# The library's targets, in its two forms:
#
#   tooldecode::constrain     what is not generic of <tooldecode/constrain.hpp> and <tooldecode/grammars.hpp>, compiled once
#                             into a static library (TOOLDECODE_COMPILED); needs nothing else
#   tooldecode::tooldecode    the same of all headers, which needs Eigen
#   tooldecode::vocabulary    what reads tokenizers, which needs PCRE2, and the one above
#   tooldecode::header_only   an include path: every file that includes a header compiles what it uses of it
#   tooldecode::compiled      the first one's name in 0.2, to go in 0.4
#
# <tooldecode/impl.hpp> and <tooldecode/vocabulary/impl.hpp> list the definitions; a layer is a source file, so that they
# compile in parallel. In an optimised build each is compiled as far as that shows in what it does: what runs once for a
# request at -Og; what is read once for a constraint at -O1, in two thirds of the time (a constraint is then built in 1.03 of
# it); what makes masks and decodes at -O2, which is as fast as -O3. What is left are products of matrices, at what the
# build type has. benchmarks/constraint measures it.
set(tooldecode_layers_of_constrain core text vocabulary grammar mask schema ebnf tools formats constraint)
set(tooldecode_layers_at_Og execute)
set(tooldecode_layers_at_O1 text ebnf schema tools formats vocabulary consistency research)
set(tooldecode_layers_at_O2 core grammar mask constraint decode)
function(tooldecode_sources variable list)
  file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/include/tooldecode/${list} lines REGEX "^#include <.*\\.ipp>")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/include/tooldecode/${list})
  set(layers)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include <tooldecode/([a-z]+)/.*" "\\1" layer ${line})
    list(APPEND layers ${layer})
    string(APPEND text_of_${layer} "${line}\n")
  endforeach()
  list(REMOVE_DUPLICATES layers)
  string(REGEX REPLACE "impl\\.hpp$" "" folder ${list})  # ends in a slash, or is empty
  set(sources)
  foreach(layer IN LISTS layers)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/library/${folder}${layer}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text_of_${layer}}" @ONLY)
    if(layer STREQUAL "model" AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
      # Tests spend most of their time in products, which take minutes where nothing is inlined, and half as long with wide
      # registers.
      set(options "$<$<CONFIG:Debug>:-O2>")
      if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O1")
        include(CheckCXXCompilerFlag)
        check_cxx_compiler_flag(-march=native TOOLDECODE_HAS_MARCH_NATIVE)
        list(APPEND options "$<$<CONFIG:Release>:-O2$<$<BOOL:${TOOLDECODE_HAS_MARCH_NATIVE}>:;-march=native>>")
      endif()
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${options}")
    endif()
    foreach(level g 1 2)
      if(layer IN_LIST tooldecode_layers_at_O${level} AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang"
         AND CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O${level}>")
      endif()
    endforeach()
    list(APPEND sources ${source})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

add_library(tooldecode_headers INTERFACE)
add_library(tooldecode::headers ALIAS tooldecode_headers)
set_target_properties(tooldecode_headers PROPERTIES EXPORT_NAME headers)
target_compile_features(tooldecode_headers INTERFACE cxx_std_20)
target_include_directories(tooldecode_headers INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

tooldecode_sources(sources impl.hpp)
set(sources_of_constrain)
foreach(layer IN LISTS tooldecode_layers_of_constrain)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/library/${layer}.cpp)
  if(NOT source IN_LIST sources)
    message(FATAL_ERROR "include/tooldecode/impl.hpp has no layer ${layer}")
  endif()
  list(APPEND sources_of_constrain ${source})
  list(REMOVE_ITEM sources ${source})
endforeach()
add_library(tooldecode_constrain STATIC ${sources_of_constrain})
add_library(tooldecode::constrain ALIAS tooldecode_constrain)
target_compile_definitions(tooldecode_constrain PUBLIC TOOLDECODE_COMPILED)
target_link_libraries(tooldecode_constrain PUBLIC tooldecode_headers)
set_target_properties(tooldecode_constrain PROPERTIES EXPORT_NAME constrain POSITION_INDEPENDENT_CODE ON)

if(TOOLDECODE_DECODE)
  add_library(tooldecode_header_only INTERFACE)
  add_library(tooldecode::header_only ALIAS tooldecode_header_only)
  set_target_properties(tooldecode_header_only PROPERTIES EXPORT_NAME header_only)
  target_link_libraries(tooldecode_header_only INTERFACE tooldecode_headers Eigen3::Eigen)

  add_library(tooldecode STATIC ${sources})
  add_library(tooldecode::tooldecode ALIAS tooldecode)
  add_library(tooldecode::compiled ALIAS tooldecode)
  target_link_libraries(tooldecode PUBLIC tooldecode_constrain tooldecode_header_only)
  set_target_properties(tooldecode PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()

# Reading tokenizers needs PCRE2, and so does the C interface, which reads them.
if(TARGET PCRE2::8BIT)
  tooldecode_sources(sources vocabulary/impl.hpp)
  add_library(tooldecode_vocabulary STATIC ${sources})
  add_library(tooldecode::vocabulary ALIAS tooldecode_vocabulary)
  set_target_properties(tooldecode_vocabulary PROPERTIES EXPORT_NAME vocabulary POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(tooldecode_vocabulary PUBLIC $<TARGET_NAME_IF_EXISTS:tooldecode::tooldecode> tooldecode_constrain
    $<BUILD_INTERFACE:PCRE2::8BIT> $<INSTALL_INTERFACE:PCRE2::8BIT>)

  if(NOT TOOLDECODE_DECODE)
    return()
  endif()
  # Installed in both types, for programs that find it without CMake.
  option(TOOLDECODE_C "Build and install the library of the C interface, shared and static" ${PROJECT_IS_TOP_LEVEL})
  include(cmake/c_interface.cmake)
  set(target tooldecode_c)
  if(TOOLDECODE_C)
    file(STRINGS include/tooldecode/adapters/tooldecode.h line REGEX "TD_ABI_VERSION = [0-9]+")
    string(REGEX MATCH "[0-9]+" abi_version "${line}")
    foreach(type static shared)
      string(TOUPPER ${type} upper)
      tooldecode_add_c(tooldecode_c_${type} ${upper})
      set_target_properties(tooldecode_c_${type} PROPERTIES
        EXCLUDE_FROM_ALL OFF OUTPUT_NAME tooldecode_c SOVERSION ${abi_version})
    endforeach()
    if(WIN32)  # where what a shared library is linked by has this name
      set_target_properties(tooldecode_c_static PROPERTIES OUTPUT_NAME tooldecode_c_static)
    endif()
    if(BUILD_SHARED_LIBS)
      set(target tooldecode_c_shared)
    else()
      set(target tooldecode_c_static)
    endif()
  else()
    tooldecode_add_c(tooldecode_c)
  endif()
  add_library(tooldecode::c ALIAS ${target})
else()
  message(STATUS "PCRE2 was not found: there is no tooldecode::vocabulary, which reads tokenizers, and no tooldecode::c (install "
                 "libpcre2-dev (Debian), pcre2 (conda-forge) or pcre2 (vcpkg))")
endif()
