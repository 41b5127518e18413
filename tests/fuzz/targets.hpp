/// \file
/// The fuzz targets by name, and their seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fuzz/seeds.hpp>

// The entry points of the targets; the build gives each its own name.
extern "C" {
int fuzz_json_schema(const std::uint8_t* data, std::size_t size);
int fuzz_regex(const std::uint8_t* data, std::size_t size);
int fuzz_grammar_text(const std::uint8_t* data, std::size_t size);
int fuzz_lark_text(const std::uint8_t* data, std::size_t size);
int fuzz_structural_tag(const std::uint8_t* data, std::size_t size);
int fuzz_call_text(const std::uint8_t* data, std::size_t size);
int fuzz_tokenizer_files(const std::uint8_t* data, std::size_t size);
int fuzz_model_files(const std::uint8_t* data, std::size_t size);
int fuzz_tool_documents(const std::uint8_t* data, std::size_t size);
int fuzz_chat_requests(const std::uint8_t* data, std::size_t size);
}

namespace tooldecode::fuzz {

struct Target {
  std::string_view name;
  int (*run)(const std::uint8_t* data, std::size_t size);
  Seeds (*seeds)();
};
inline constexpr Target targets[] = {
    {"json_schema", fuzz_json_schema, schema_seeds},
    {"regex", fuzz_regex, pattern_seeds},
    {"grammar_text", fuzz_grammar_text, grammar_seeds},
    {"lark_text", fuzz_lark_text, lark_seeds},
    {"structural_tag", fuzz_structural_tag, structural_tag_seeds},
    {"call_text", fuzz_call_text, call_seeds},
    {"tokenizer_files", fuzz_tokenizer_files, tokenizer_seeds},
    {"model_files", fuzz_model_files, model_seeds},
    {"tool_documents", fuzz_tool_documents, document_seeds},
    {"chat_requests", fuzz_chat_requests, chat_seeds},
};

/// The target with a name, or null.
inline const Target* find_target(std::string_view name) {
  for (const Target& target : targets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace tooldecode::fuzz
