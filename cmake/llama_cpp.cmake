# llama.cpp as examples/llama_cpp.sh builds it, or any other installation: -Dllama_DIR=<prefix>/lib/cmake/llama.
find_package(llama REQUIRED)
add_library(tooldecode_llama_cpp INTERFACE)
target_link_libraries(tooldecode_llama_cpp INTERFACE llama)
get_filename_component(llama_root ${llama_DIR}/../../.. ABSOLUTE)

# What renders chat templates and makes grammars of schemas is no part of an installation: examples/llama_cpp.sh keeps
# it beside it. Without it the adapter is tested, and the program knows no GGUF files.
find_library(llama_chat_library llama-chat HINTS ${llama_root}/lib NO_DEFAULT_PATH)
if(llama_chat_library)
  add_library(tooldecode_llama_chat INTERFACE)
  target_link_libraries(tooldecode_llama_chat INTERFACE ${llama_chat_library} tooldecode_llama_cpp ggml::ggml-base)
  target_include_directories(tooldecode_llama_chat SYSTEM INTERFACE ${llama_root}/share/common)
else()
  message(STATUS "${llama_root} has no libllama-chat.a (see examples/llama_cpp.sh): the program reads no GGUF models")
endif()
