# Every dependency: the system's package where there is one, else a pinned source. What is neither installed nor can
# be fetched is named before anything is fetched, each in one line with the packages that bring it.
include(FetchContent)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
find_package(Git QUIET)
set(to_fetch)
set(missing)

# tooldecode_dependency(<name> <repository> <tag> <Debian's package> <conda-forge's> <vcpkg's> [<version>])
#
# `without`, where it is set, is the option with which tooldecode is configured without it.
function(tooldecode_dependency name repository tag debian conda vcpkg)
  find_package(${name} ${ARGN} QUIET)
  if(${name}_FOUND)
    return()
  endif()
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW TRUE ${system})
  set(to_fetch ${to_fetch} ${name} PARENT_SCOPE)
  string(TOLOWER ${name} lower)
  string(TOUPPER ${name} upper)
  if(EXISTS ${FETCHCONTENT_BASE_DIR}/${lower}-src OR FETCHCONTENT_SOURCE_DIR_${upper})
    return()  # its source is here already
  endif()
  if(GIT_EXECUTABLE AND NOT FETCHCONTENT_FULLY_DISCONNECTED)
    message(STATUS "${name} is not installed: asking ${repository}")
    execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_TERMINAL_PROMPT=0 ${GIT_EXECUTABLE} ls-remote ${repository} HEAD
                    TIMEOUT 20 OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0)
      return()
    endif()
  endif()
  set(line "  ${name} is not installed and cannot be fetched: install ${debian} (Debian), ${conda} (conda-forge) or")
  string(APPEND line " ${vcpkg} (vcpkg)")
  if(without)
    string(APPEND line ", or configure with ${without}")
  endif()
  set(missing "${missing}${line}\n" PARENT_SCOPE)
endfunction()

set(system)
if(NOT CMAKE_VERSION VERSION_LESS 3.25)
  set(system SYSTEM)
endif()
set(BUILD_TESTING OFF)
set(EIGEN_BUILD_DOC OFF)
set(without)
tooldecode_dependency(Eigen3 https://gitlab.com/libeigen/eigen.git 3.4.0
                      libeigen3-dev eigen eigen3 3.4)

if(TOOLDECODE_DEVELOPER)
  if(TOOLDECODE_TESTS)
    set(without -DTOOLDECODE_TESTS=OFF)
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    tooldecode_dependency(Catch2 https://github.com/catchorg/Catch2.git v3.5.4
                          catch2 catch2 catch2)
    tooldecode_dependency(nlohmann_json https://github.com/nlohmann/json.git v3.11.3
                          nlohmann-json3-dev nlohmann_json nlohmann-json 3.10)
    tooldecode_dependency(benchmark https://github.com/google/benchmark.git v1.8.4
                          libbenchmark-dev benchmark benchmark)
  endif()
  set(without -DTOOLDECODE_DEVELOPER=OFF)
  set(CLI11_PRECOMPILED OFF)
  tooldecode_dependency(CLI11 https://github.com/CLIUtils/CLI11.git v2.4.2
                        libcli11-dev cli11 cli11)
  tooldecode_dependency(httplib https://github.com/yhirose/cpp-httplib.git v0.11.4
                        libcpp-httplib-dev cpp-httplib cpp-httplib)
  tooldecode_dependency(ZLIB https://github.com/madler/zlib.git v1.3.1
                        zlib1g-dev zlib zlib)
  set(PCRE2_BUILD_TESTS OFF)
  set(PCRE2_BUILD_PCRE2GREP OFF)
  tooldecode_dependency(PCRE2 https://github.com/PCRE2Project/pcre2.git pcre2-10.44
                        libpcre2-dev pcre2 pcre2)
  find_package(Threads REQUIRED)
  if(TOOLDECODE_LLAMA_CPP)
    include(cmake/llama_cpp.cmake)
  endif()
else()
  find_package(PCRE2 QUIET)
  find_package(Threads QUIET)
endif()

# Who adds this folder to a project links what the library links. (find_package(... GLOBAL) needs CMake 3.24.)
get_property(found DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS found)
  set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
endforeach()

if(missing)
  message(FATAL_ERROR "tooldecode lacks what it is built with:\n${missing}")
endif()
FetchContent_MakeAvailable(${to_fetch})
if(TARGET zlibstatic AND NOT TARGET ZLIB::ZLIB)
  target_include_directories(zlibstatic INTERFACE ${zlib_SOURCE_DIR} ${zlib_BINARY_DIR})
  add_library(ZLIB::ZLIB ALIAS zlibstatic)
endif()
if(TARGET pcre2-8-static AND NOT TARGET PCRE2::8BIT)
  add_library(PCRE2::8BIT ALIAS pcre2-8-static)
endif()
