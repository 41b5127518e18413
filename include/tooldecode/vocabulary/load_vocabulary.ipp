#pragma once

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/gguf.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/sentencepiece_model.hpp>
#include <tooldecode/vocabulary/tiktoken.hpp>
#include <tooldecode/vocabulary/tokenizer_json.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE bool begins_with_ranked_token(std::string_view text) {
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const std::size_t space     = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return false;
  return line.find_first_not_of("0123456789", space + 1) == std::string_view::npos;
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE Tokenizer parse_tokenizer(std::string_view bytes, const std::string& name,
                                            vocabulary::TokenizerFiles files) {
  try {
    if (bytes.starts_with("GGUF")) return vocabulary::parse_gguf(bytes);
    if (bytes.starts_with("\x1F\x8B")) {
      throw Error(Errc::malformed_vocabulary, "", "is gzip; inflate it first");
    }
    // A ModelProto begins with the byte of a newline; JSON may begin with a newline too.
    const bool is_object = bytes.find_first_not_of(" \t\r\n") == bytes.find('{');
    if (bytes.starts_with('\n') && !is_object) return vocabulary::parse_sentencepiece(bytes);
    if (!is_object && detail::begins_with_ranked_token(bytes))
      return vocabulary::parse_tiktoken(bytes, std::filesystem::path(name).stem().string());
    JsonValue root = text::parse_json_file(bytes);
    if (root.is_object() && !root.contains("model")) {
      if (root.contains("tokens_b64")) return vocabulary::read_compact_vocabulary(root);
      // A vocab.json has an object, and needs the other files of its tokenizer.
      if (root.contains("vocab") && root["vocab"].is_array()) return vocabulary::read_tekken(root);
    }
    return vocabulary::read_tokenizer_json(std::move(root), files);
  } catch (const Error& error) {
    throw error.within(name);
  }
}

TOOLDECODE_INLINE Tokenizer load_tokenizer(const std::filesystem::path& path) {
  const auto file   = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  const auto beside = [&](const char* name) {
    const auto other = file.parent_path() / name;
    return std::filesystem::exists(other) ? core::read_file(other) : std::string();
  };
  if (core::read_file_head(file, 4) == "GGUF") return vocabulary::load_gguf(file);
  const std::string bytes      = core::read_file(file);
  const std::string config     = beside("tokenizer_config.json");
  const std::string generation = beside("generation_config.json");
  return parse_tokenizer(bytes, file.string(), {config, generation});
}

TOOLDECODE_INLINE Vocabulary load_vocabulary(const std::filesystem::path& path) {
  return load_tokenizer(path).vocabulary();
}

}  // namespace tooldecode
