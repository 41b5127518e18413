/// \file
/// The models that the program can be asked to use: a directory's, in the library's own arithmetic,
/// or a GGUF file's, by llama.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/core/error.hpp>

#include <CLI/CLI.hpp>
#include <program/assistant.hpp>
#include <program/cache_folder.hpp>
#include <program/shots.hpp>
#ifdef TOOLDECODE_PROGRAM_LLAMA_CPP
#include <program/gguf_assistant.hpp>
#endif

namespace program {

/// Which model, and how it is run.
struct ModelOptions {
  std::string name       = example_data("tiny").string();
  std::int32_t threads   = 1;
  std::size_t context    = 4096;  ///< most tokens of all sequences
  std::size_t sequences  = 64;    ///< at a time
  std::size_t shots      = 2;
  std::string shots_from = example_data("shots.jsonl").string();
};

inline void add_model_options(CLI::App& sub, ModelOptions& options) {
  sub.add_option("--model", options.name,
                 "directory with config.json, model.safetensors and tokenizer.json; or, where the "
                 "program was built with llama.cpp, a GGUF file, smollm2 or gemma3")
      ->capture_default_str();
  sub.add_option("--threads", options.threads, "of a GGUF file's model")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  sub.add_option("--context-size", options.context,
                 "tokens that all sequences of a GGUF file's model hold together")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 20));
  sub.add_option("--shots", options.shots, "examples in a GGUF file's model's prompt")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  sub.add_option("--shots-from", options.shots_from,
                 "JSONL (or .gz) rows as eval reads, whose first are the examples")
      ->capture_default_str();
}

namespace detail {

/// The file of a model that examples/models.sh fetches; the name itself where it is none of them.
inline std::filesystem::path model_file(const std::string& name) {
  using Known = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Known, 2> known{
      {{"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"}, {"gemma3", "gemma-3-270m.Q4_K_M.gguf"}}};
  const auto found = std::ranges::find(known, name, &Known::first);
  if (found == known.end()) return name;
  const std::filesystem::path file = cache_folder() / "models" / found->second;
  if (!std::filesystem::exists(file)) {
    throw tooldecode::Error(tooldecode::Errc::file_unreadable, file.string(),
                            "is not there: bash examples/models.sh " + name + " fetches it");
  }
  return file;
}

}  // namespace detail

/// Reads the model and calls `use` with a `std::shared_ptr<const Assistant<M>>`.
template <class Use>
void load_assistant(const ModelOptions& options, const Use& use) {
  const std::filesystem::path place = detail::model_file(options.name);
  if (place.extension() != ".gguf") {
    return use(
        std::shared_ptr<const EmbeddedAssistant>(new EmbeddedAssistant(load_embedded(place))));
  }
#ifdef TOOLDECODE_PROGRAM_LLAMA_CPP
  const auto sequences = std::min<std::size_t>(options.sequences, 256);
  use(std::shared_ptr<const Assistant<tooldecode::LlamaCppModel>>(
      new Assistant<tooldecode::LlamaCppModel>(
          load_gguf(place,
                    {.cells     = static_cast<std::uint32_t>(options.context),
                     .sequences = static_cast<std::uint32_t>(sequences),
                     .threads   = options.threads},
                    read_shots(options.shots_from, options.shots)))));
#else
  throw tooldecode::Error(tooldecode::Errc::invalid_option, place.string(),
                          "this program was built without llama.cpp: see examples/run.sh --help");
#endif
}

/// Reads the model and calls `use(assistant)`.
template <class Use>
void with_assistant(const ModelOptions& options, const Use& use) {
  load_assistant(options, [&](const auto& assistant) { use(*assistant); });
}

}  // namespace program
