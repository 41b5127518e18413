# tooldecode::cuda: the host library and the CUDA runtime.
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "TOOLDECODE_CUDA needs nvcc: put it on the PATH or set CMAKE_CUDA_COMPILER")
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

add_library(tooldecode_cuda INTERFACE)
add_library(tooldecode::cuda ALIAS tooldecode_cuda)
set_target_properties(tooldecode_cuda PROPERTIES EXPORT_NAME cuda)
target_link_libraries(tooldecode_cuda INTERFACE tooldecode CUDA::cudart)
list(APPEND libraries tooldecode_cuda)
