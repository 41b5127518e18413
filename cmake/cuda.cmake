# tooldecode::cuda: the host library and the CUDA runtime. tooldecode::cuda_c: the kernels' C interface.
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "TOOLDECODE_CUDA needs nvcc: put it on the PATH or set CMAKE_CUDA_COMPILER")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75 80 86 89 90 100 120)  # for what is compiled here
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

add_library(tooldecode_cuda INTERFACE)
add_library(tooldecode::cuda ALIAS tooldecode_cuda)
target_link_libraries(tooldecode_cuda INTERFACE tooldecode CUDA::cudart)
if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
  target_compile_features(tooldecode_cuda INTERFACE cuda_std_20)
else()  # CMake 3.25 does not know that nvcc 13 has it
  target_compile_options(tooldecode_cuda INTERFACE $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-std=c++20>)
endif()

# tooldecode::cuda_c: the functions of <tooldecode/adapters/tooldecode_cuda.h>, for engines in any language. A shared
# library that exports td_* and nothing else. It has a CUDA runtime inside, so that it can be loaded beside PyTorch's.
set(source ${CMAKE_CURRENT_BINARY_DIR}/tooldecode_cuda_c.cu)
file(CONFIGURE OUTPUT ${source} CONTENT "#include <tooldecode/cuda/c_interface.cuh>\n" @ONLY)
set(exclude EXCLUDE_FROM_ALL)
if(PROJECT_IS_TOP_LEVEL)
  set(exclude)
endif()
add_library(tooldecode_cuda_c SHARED ${exclude} ${source})
add_library(tooldecode::cuda_c ALIAS tooldecode_cuda_c)
file(STRINGS include/tooldecode/adapters/tooldecode_cuda.h line REGEX "TD_CUDA_ABI_VERSION = [0-9]+")
string(REGEX MATCH "[0-9]+" abi_version "${line}")
set_target_properties(tooldecode_cuda_c PROPERTIES
  EXPORT_NAME cuda_c SOVERSION ${abi_version} CUDA_RUNTIME_LIBRARY Static
  CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_compile_definitions(tooldecode_cuda_c PRIVATE TOOLDECODE_C_BUILD PUBLIC TOOLDECODE_C_SHARED)
target_include_directories(tooldecode_cuda_c INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(tooldecode_cuda_c PRIVATE tooldecode)
if(NOT "cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
  target_compile_options(tooldecode_cuda_c PRIVATE $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-std=c++20>)
endif()
if(UNIX AND NOT APPLE)
  set(map ${CMAKE_CURRENT_SOURCE_DIR}/cmake/tooldecode_c.map)
  target_link_options(tooldecode_cuda_c PRIVATE LINKER:--version-script=${map})
  set_target_properties(tooldecode_cuda_c PROPERTIES LINK_DEPENDS ${map})
endif()
