/// \file
/// Silences llama.cpp's log; tests see failures as errors.
#pragma once

#include <llama.h>

namespace tooldecode::test {

inline const bool llama_cpp_is_quiet = [] {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  return true;
}();

}  // namespace tooldecode::test
