# What tests, examples and benchmarks are compiled with; users of the library get none of it.
option(TOOLDECODE_NATIVE "Compile examples and benchmarks for this machine's processor" ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

add_library(tooldecode_developer INTERFACE)
target_compile_options(tooldecode_developer INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms inside std::string, std::regex and Catch2 (GCC bug 105651).
  target_compile_options(tooldecode_developer INTERFACE
    -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow)
else()
  target_compile_options(tooldecode_developer INTERFACE -Werror)
endif()
target_link_libraries(tooldecode_developer INTERFACE tooldecode::tooldecode)

add_library(tooldecode_native INTERFACE)
if(TOOLDECODE_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native TOOLDECODE_HAS_MARCH_NATIVE)
  if(TOOLDECODE_HAS_MARCH_NATIVE)
    target_compile_options(tooldecode_native INTERFACE $<$<CONFIG:Release>:-march=native>)
  endif()
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
