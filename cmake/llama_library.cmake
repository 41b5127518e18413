# tooldecode_llama: a shared library that gives llama.cpp's programs this engine for their grammars. A program loads it
# before libllama (LD_PRELOAD), so it is not linked to one; it is compiled with the headers of the llama.cpp in llama_DIR
# and serves programs of that version.
set(source ${CMAKE_CURRENT_BINARY_DIR}/tooldecode_llama.cpp)
file(CONFIGURE OUTPUT ${source} CONTENT "#include <tooldecode/adapters/llama_cpp_interpose.hpp>\n" @ONLY)
add_library(tooldecode_llama SHARED EXCLUDE_FROM_ALL ${source})
set_target_properties(tooldecode_llama PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_compile_definitions(tooldecode_llama PRIVATE LLAMA_SHARED)  # its two functions are exported
target_include_directories(tooldecode_llama SYSTEM PRIVATE $<TARGET_PROPERTY:llama,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(tooldecode_llama PRIVATE tooldecode::tooldecode ${CMAKE_DL_LIBS}
  $<TARGET_NAME_IF_EXISTS:Threads::Threads>)
if(APPLE)
  target_link_options(tooldecode_llama PRIVATE LINKER:-undefined,dynamic_lookup)
else()
  set(map ${PROJECT_SOURCE_DIR}/cmake/tooldecode_llama.map)
  target_link_options(tooldecode_llama PRIVATE LINKER:--version-script=${map})
  set_target_properties(tooldecode_llama PROPERTIES LINK_DEPENDS ${map})
endif()
