# tooldecode::cuda: the host library and the CUDA runtime.
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
