# Every dependency: the system's package where there is one, else a pinned source.
include(FetchContent)

# tooldecode_dependency(<name> <repository> <tag> [<find_package arguments>...])
function(tooldecode_dependency name repository tag)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW TRUE SYSTEM
                       FIND_PACKAGE_ARGS ${ARGN})
  FetchContent_MakeAvailable(${name})
endfunction()

set(BUILD_TESTING OFF)
set(EIGEN_BUILD_DOC OFF)
set(JSON_Install ON)      # an installed tooldecode finds it again
tooldecode_dependency(Eigen3 https://gitlab.com/libeigen/eigen.git 3.4.0 3.4)
tooldecode_dependency(nlohmann_json https://github.com/nlohmann/json.git v3.11.3 3.10)

if(TOOLDECODE_DEVELOPER)
  if(TOOLDECODE_TESTS)
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    tooldecode_dependency(Catch2 https://github.com/catchorg/Catch2.git v3.5.4)
    tooldecode_dependency(benchmark https://github.com/google/benchmark.git v1.8.4)
  endif()
  set(CLI11_PRECOMPILED OFF)
  tooldecode_dependency(CLI11 https://github.com/CLIUtils/CLI11.git v2.4.2)
  find_package(Threads REQUIRED)

  tooldecode_dependency(ZLIB https://github.com/madler/zlib.git v1.3.1)
  if(NOT TARGET ZLIB::ZLIB)
    target_include_directories(zlibstatic INTERFACE ${zlib_SOURCE_DIR} ${zlib_BINARY_DIR})
    add_library(ZLIB::ZLIB ALIAS zlibstatic)
  endif()

  # Debian's PCRE2 brings no CMake package.
  find_path(PCRE2_INCLUDE_DIR pcre2.h)
  find_library(PCRE2_LIBRARY pcre2-8)
  if(PCRE2_INCLUDE_DIR AND PCRE2_LIBRARY)
    add_library(PCRE2::8BIT UNKNOWN IMPORTED)
    set_target_properties(PCRE2::8BIT PROPERTIES IMPORTED_LOCATION "${PCRE2_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${PCRE2_INCLUDE_DIR}")
  else()
    set(PCRE2_BUILD_TESTS OFF)
    set(PCRE2_BUILD_PCRE2GREP OFF)
    tooldecode_dependency(PCRE2 https://github.com/PCRE2Project/pcre2.git pcre2-10.44)
    if(NOT TARGET PCRE2::8BIT)
      add_library(PCRE2::8BIT ALIAS pcre2-8-static)
    endif()
  endif()
endif()
