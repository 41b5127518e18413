# What tests, examples and benchmarks are compiled with; users of the library get none of it.
option(TOOLDECODE_NATIVE "Compile everything for this machine's processor" ON)

set(CMAKE_CXX_EXTENSIONS OFF)

add_library(tooldecode_warnings INTERFACE)
target_compile_options(tooldecode_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms inside std::string, std::regex and Catch2 (GCC bug 105651).
  target_compile_options(tooldecode_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow>)
else()
  target_compile_options(tooldecode_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
add_library(tooldecode_developer INTERFACE)
target_link_libraries(tooldecode_developer INTERFACE tooldecode_warnings tooldecode::tooldecode)

add_library(tooldecode_native INTERFACE)
if(TOOLDECODE_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native TOOLDECODE_HAS_MARCH_NATIVE)
  if(TOOLDECODE_HAS_MARCH_NATIVE)
    target_compile_options(tooldecode_native INTERFACE $<$<CONFIG:Release>:-march=native>)
  endif()
endif()

# GCC starts to collect garbage at 128 MB. Later, a file of the library or the program compiles in 0.9 of the time.
add_library(tooldecode_late_collection INTERFACE)
target_compile_options(tooldecode_late_collection INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=500000>)

foreach(target tooldecode_constrain tooldecode tooldecode_vocabulary)
  if(TARGET ${target})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tooldecode_warnings> $<BUILD_INTERFACE:tooldecode_native>
      $<BUILD_INTERFACE:tooldecode_late_collection>)
  endif()
endforeach()

# What files of results say about how their program was compiled.
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
string(JOIN " " flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}})
if(TOOLDECODE_HAS_MARCH_NATIVE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  string(APPEND flags " -march=native")
endif()
string(REPLACE "\"" "\\\"" flags "${flags}")
target_compile_definitions(tooldecode_native INTERFACE "TOOLDECODE_COMPILER_FLAGS=\"${flags}\"")

# Objects come from ccache where it is installed, those of another checkout too: paths below the tree are hashed as
# relative ones, and the folder that a compiler ran in is not.
find_program(TOOLDECODE_CCACHE ccache)
mark_as_advanced(TOOLDECODE_CCACHE)
if(TOOLDECODE_CCACHE AND UNIX)
  set(launcher ${PROJECT_BINARY_DIR}/ccache)  # a file, which is easier to hand on than a list
  file(WRITE ${launcher} "#!/bin/sh
export CCACHE_BASEDIR='${PROJECT_SOURCE_DIR}' CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros
exec '${TOOLDECODE_CCACHE}' \"$@\"
")
  file(CHMOD ${launcher} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
  foreach(target tooldecode_constrain tooldecode tooldecode_vocabulary tooldecode_c_objects)  # which are there already
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
  endforeach()
endif()

if(TOOLDECODE_CUDA)
  add_library(tooldecode_cuda_developer INTERFACE)
  target_compile_options(tooldecode_cuda_developer INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wshadow>)
  target_compile_definitions(tooldecode_cuda_developer INTERFACE EIGEN_NO_CUDA)
  target_link_libraries(tooldecode_cuda_developer INTERFACE tooldecode::cuda)

  # A kernel that spills registers does not build; CUB's own, for whole devices, may.
  add_library(tooldecode_no_spills INTERFACE)
  target_compile_options(tooldecode_no_spills INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=--warn-on-spills,--warning-as-error>)
  target_compile_options(tooldecode_cuda_c PRIVATE  # without what the two above link
    -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wshadow -Xptxas=--warn-on-spills,--warning-as-error)
  if(CMAKE_CUDA_COMPILER_LAUNCHER)
    set_target_properties(tooldecode_cuda_c PROPERTIES CUDA_COMPILER_LAUNCHER "${CMAKE_CUDA_COMPILER_LAUNCHER}")
  endif()
endif()
