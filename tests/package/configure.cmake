# What CMake says on a machine that lacks something, where nothing can be fetched.
#   cmake -DROOT=<repo> -DPREFIX=<installed> -DBUILD=<folder> -DCOMPILER=... -DGENERATOR=... -P configure.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${BUILD})
file(REAL_PATH ${CMAKE_CURRENT_LIST_DIR} user)

# configure(<source> <folder> <arguments>...) sets `status` and `said`, the latter with every gap as one space.
function(configure source folder)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file:///nowhere/.insteadOf
            GIT_CONFIG_VALUE_0=https:// --unset=CMAKE_BUILD_TYPE
            ${CMAKE_COMMAND} -S ${source} -B ${BUILD}/${folder} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} ${ARGN}
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  set(status ${status} PARENT_SCOPE)
  set(said "${said}" PARENT_SCOPE)
endfunction()
function(expect what)
  if(NOT (${ARGN}))
    message(SEND_ERROR "${what}\n${status}: ${said}")
  endif()
endfunction()

configure(${ROOT} developer)
expect("a machine that has everything" status EQUAL 0)
expect("the build type is told" said MATCHES "CMAKE_BUILD_TYPE was not given: Release")
load_cache(${BUILD}/developer READ_WITH_PREFIX cached_ CMAKE_BUILD_TYPE)
expect("the build type is Release and not '${cached_CMAKE_BUILD_TYPE}'" cached_CMAKE_BUILD_TYPE STREQUAL "Release")

foreach(package
    "Catch2=catch2=TOOLDECODE_TESTS"
    "nlohmann_json=nlohmann-json3-dev=TOOLDECODE_TESTS"
    "benchmark=libbenchmark-dev=TOOLDECODE_TESTS"
    "CLI11=libcli11-dev=TOOLDECODE_DEVELOPER"
    "httplib=libcpp-httplib-dev=TOOLDECODE_DEVELOPER"
    "ZLIB=zlib1g-dev=TOOLDECODE_DEVELOPER"
    "PCRE2=libpcre2-dev=TOOLDECODE_DEVELOPER"
    "Eigen3=libeigen3-dev=TOOLDECODE_DECODE")
  string(REPLACE "=" ";" package "${package}")
  list(POP_FRONT package name debian option)
  configure(${ROOT} developer -DCMAKE_DISABLE_FIND_PACKAGE_${name}=ON)
  expect("a machine without ${name} is told" NOT status EQUAL 0)
  expect("what to install for ${name}"
         said MATCHES "${name} is not installed and cannot be fetched: install ${debian} \\(Debian\\), ")
  expect("and nothing about fetching it" NOT said MATCHES "FetchContent|CMake step")
  if(option)
    expect("how to do without ${name}" said MATCHES "or configure with (-DTOOLDECODE_DEVELOPER=OFF )?-D${option}=OFF")
    string(REGEX MATCHALL "-DTOOLDECODE_[A-Z]+=OFF" options "${said}")
    configure(${ROOT} developer -DCMAKE_DISABLE_FIND_PACKAGE_${name}=ON ${options})
    expect("-D${option}=OFF does without ${name}" status EQUAL 0)
  endif()
  configure(${ROOT} developer -DCMAKE_DISABLE_FIND_PACKAGE_${name}=OFF -DTOOLDECODE_TESTS=ON -DTOOLDECODE_DEVELOPER=ON
            -DTOOLDECODE_DECODE=ON)
endforeach()
expect("a machine that has everything again" status EQUAL 0)

configure(${ROOT} developer -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON)
expect("all that is missing is told at once" said MATCHES "Catch2 is not installed.*benchmark is not installed")

# Without PCRE2 the library still configures; a request for the part that reads tokenizers is an error.
configure(${ROOT} user_without -DTOOLDECODE_DEVELOPER=OFF -DCMAKE_DISABLE_FIND_PACKAGE_PCRE2=ON)
expect("the library alone" status EQUAL 0)
expect("what it lacks" said MATCHES "PCRE2 was not found: there is no tooldecode::vocabulary")
expect("pkg-config is told of the library" EXISTS ${BUILD}/user_without/tooldecode.pc)
expect("and of no vocabulary" NOT EXISTS ${BUILD}/user_without/tooldecode-vocabulary.pc)
configure(${user} package_without -DWAY=find_package -DINSTALLED=${PREFIX}
          -DCMAKE_DISABLE_FIND_PACKAGE_PCRE2=ON)
expect("the package without PCRE2" NOT status EQUAL 0)
expect("says so" said MATCHES "tooldecode::vocabulary, which reads tokenizers, needs PCRE2: install libpcre2-dev")

# Masks without Eigen: built by themselves, and taken out of a package that has all.
configure(${ROOT} constrain_without -DTOOLDECODE_DEVELOPER=OFF -DTOOLDECODE_DECODE=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
expect("masks alone need no Eigen" status EQUAL 0)
configure(${ROOT} constrain_without -DTOOLDECODE_DEVELOPER=ON)
expect("what a developer builds needs all" NOT status EQUAL 0)
expect("and says which option" said MATCHES "TOOLDECODE_DEVELOPER needs TOOLDECODE_DECODE")
configure(${user} constrain_package -DWAY=constrain -DINSTALLED=${PREFIX} -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
expect("the package's component constrain needs no Eigen" status EQUAL 0)
configure(${user} package_without_eigen -DWAY=find_package -DINSTALLED=${PREFIX} -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
expect("the package without Eigen" NOT status EQUAL 0)
expect("says so" said MATCHES "Eigen3")
