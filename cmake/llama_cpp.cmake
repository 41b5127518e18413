# llama.cpp as examples/llama_cpp.sh builds it, or any other installation: -Dllama_DIR=<prefix>/lib/cmake/llama.
find_package(llama REQUIRED)
add_library(tooldecode_llama_cpp INTERFACE)
target_link_libraries(tooldecode_llama_cpp INTERFACE llama)
get_filename_component(llama_root ${llama_DIR}/../../.. ABSOLUTE)

# What renders chat templates is no part of an installation: examples/llama_cpp.sh keeps it beside it.
find_library(llama_jinja_library llama-jinja HINTS ${llama_root}/lib NO_DEFAULT_PATH)
if(llama_jinja_library)
  target_link_libraries(tooldecode_llama_cpp INTERFACE ${llama_jinja_library})
  target_include_directories(tooldecode_llama_cpp SYSTEM INTERFACE ${llama_root}/share/common)
  target_compile_definitions(tooldecode_llama_cpp INTERFACE TOOLDECODE_LLAMA_JINJA)
endif()
