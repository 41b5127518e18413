#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <tooldecode/core/error.hpp>

#include <program/cache_folder.hpp>
#include <program/command_line.hpp>
#include <program/device_assistant.hpp>
#include <program/model_assistant.hpp>
#include <program/models.hpp>
#include <program/shots.hpp>
#ifdef TOOLDECODE_PROGRAM_LLAMA_CPP
#include <llama.h>
#include <program/gguf_assistant.hpp>
#endif

namespace program {

void add_model_options(Command& sub, ModelOptions& options) {
  sub.option("--model", options.name,
             "directory with config.json, model.safetensors and tokenizer.json; or, where the "
             "program was built with llama.cpp, a GGUF file, smollm2, gemma3, "
             "qwen-coder-0.5b or qwen-coder-1.5b")
      .shows_default();
  sub.option(
         "--device", options.device,
         "cpu; or, where the program was built with CUDA, cuda: a model of a directory, or of a "
         "GGUF file of the kind of Llama or Qwen2, on a GPU")
      .shows_default();
  std::string of_threads = "of a GGUF file's model";
  const bool by_cores    = options.threads == ModelOptions().threads;
  if (by_cores) of_threads += "; default: as many as there are cores";
  auto threads = sub.option("--threads", options.threads, of_threads).within(1, 256);
  if (!by_cores) threads.shows_default();
  sub.option("--gpu-layers", options.gpu_layers,
             "layers of a GGUF file's model that llama.cpp has on a GPU; -1: all")
      .shows_default()
      .within(-1, 1 << 16);
  sub.option(
         "--context-size", options.context,
         "tokens that all sequences of a GGUF file's model, or of a model on a GPU, hold together")
      .shows_default()
      .within(64, 1 << 20);
  std::string of_shots   = "examples in a GGUF file's model's prompt";
  const bool by_template = options.shots < 0;
  if (by_template) {
    of_shots += "; default: 0 where its template has a place for tools, " +
                std::to_string(usual_shots) + " where it has none";
  }
  auto shots = sub.option("--shots", options.shots, of_shots).within(0, 64);
  if (!by_template) shots.shows_default();
  sub.option("--shots-from", options.shots_from,
             "JSONL (or .gz) rows as eval reads, whose first are the examples")
      .shows_default();
}

std::filesystem::path model_file(const std::string& name) {
  using Known = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Known, 4> known{
      {{"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
       {"gemma3", "gemma-3-270m.Q4_K_M.gguf"},
       {"qwen-coder-0.5b", "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf"},
       {"qwen-coder-1.5b", "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"}}};
  const auto found = std::ranges::find(known, name, &Known::first);
  if (found == known.end()) return name;
  const std::filesystem::path file = cache_folder() / "models" / found->second;
  if (!std::filesystem::exists(file)) {
    throw tooldecode::Error(tooldecode::Errc::file_unreadable, file.string(),
                            "is not there: bash examples/models.sh " + name + " fetches it");
  }
  return file;
}

Shots shots_of(const ModelOptions& options) {
  return read_shots(options.shots_from,
                    static_cast<std::size_t>(options.shots < 0 ? usual_shots : options.shots));
}

#ifndef TOOLDECODE_PROGRAM_CUDA
std::shared_ptr<const Assistant> load_on_device(const std::filesystem::path&, const ModelOptions&) {
  throw tooldecode::Error(tooldecode::Errc::invalid_option, "--device cuda",
                          "this program was built without CUDA: configure it with "
                          "-DTOOLDECODE_CUDA=ON where nvcc is");
}
#endif

std::shared_ptr<const Assistant> load_assistant(const ModelOptions& options) {
  const std::filesystem::path place = model_file(options.name);
  const bool by_llama_cpp           = options.device != "cuda" && place.extension() == ".gguf";
  if (options.gpu_layers != 0 && !by_llama_cpp) {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, "--gpu-layers",
                            "must be 0 where llama.cpp does not run the model: it runs GGUF files "
                            "without --device cuda");
  }
  if (options.device == "cuda") return load_on_device(place, options);
  if (options.device != "cpu") {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, "--device", options.device,
                            "must be cpu or cuda");
  }
  if (place.extension() != ".gguf") {
    return std::shared_ptr<const Assistant>(new EmbeddedAssistant(load_embedded(place)));
  }
#ifdef TOOLDECODE_PROGRAM_LLAMA_CPP
  if (options.gpu_layers != 0 && !llama_supports_gpu_offload()) {
    throw tooldecode::Error(
        tooldecode::Errc::invalid_option, "--gpu-layers",
        "must be 0: the llama.cpp that this program was built with has no GPU backend");
  }
  const auto sequences = std::min<std::size_t>(options.sequences, 256);
  const auto read      = [&](std::int64_t shots) {
    return read_shots(options.shots_from, static_cast<std::size_t>(shots));
  };
  return std::shared_ptr<const Assistant>(
      new GgufAssistant(load_gguf(place,
                                  {.cells      = static_cast<std::uint32_t>(options.context),
                                   .sequences  = static_cast<std::uint32_t>(sequences),
                                   .threads    = options.threads,
                                   .gpu_layers = options.gpu_layers,
                                   .features   = options.gives_features},
                                  read(options.shots < 0 ? 0 : options.shots), shots_of(options))));
#else
  throw tooldecode::Error(tooldecode::Errc::invalid_option, place.string(),
                          "this program was built without llama.cpp: see examples/run.sh --help");
#endif
}

}  // namespace program
