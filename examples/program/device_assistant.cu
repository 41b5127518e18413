// Compiled only if the program is built with CUDA; all of it that nvcc sees.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device_llama.cuh>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/vocabulary/gguf_metadata.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <program/device_assistant.hpp>
#include <program/files.hpp>
#include <program/model_assistant.hpp>
#include <program/plain_prompter.hpp>

namespace program {

namespace {

using DeviceModel = tooldecode::cuda::DeviceLlama<__half>;

bool is_gguf(const std::filesystem::path& place) {
  return place.extension() == ".gguf";
}

}  // namespace

template <>
DraftTarget ModelAssistant<DeviceModel>::draft_target(bool with_features) const {
  using tooldecode::LlamaModel;
  if (with_features) {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, "--speculation eagle3",
                            "reads states between layers, which --device cuda does not give: leave "
                            "--device out, or take eagle or medusa");
  }
  return {model, std::make_shared<const LlamaModel>(is_gguf(place) ? LlamaModel::load_ends(place)
                                                                   : LlamaModel::load(place))};
}

namespace {

// What `add_bos_token` of a GGUF file says; true if nothing does.
bool begins_texts(const std::string& bytes) {
  const tooldecode::vocabulary::GgufMetadata said(bytes);
  const std::string key = "tokenizer.ggml.add_bos_token";
  return !said.has(key) || said.value<double>(key) != 0;
}

class DeviceAssistant final : public ModelAssistant<DeviceModel> {
 public:
  DeviceAssistant(const std::filesystem::path& where, DeviceModel loaded,
                  tooldecode::Tokenizer read, Prompter prompter)
      : ModelAssistant(where, std::move(loaded), std::move(read), std::move(prompter)),
        is_directory_(!is_gguf(where)) {}

  [[nodiscard]] bool is_embedded() const noexcept override { return is_directory_; }

 private:
  bool is_directory_;
};

}  // namespace

std::shared_ptr<const Assistant> load_on_device(const std::filesystem::path& place,
                                                const ModelOptions& options) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    static_cast<void>(cudaGetLastError());
    throw tooldecode::Error(tooldecode::Errc::device_failure, "--device cuda",
                            "there is no GPU that CUDA finds here: see nvidia-smi, or leave the "
                            "option out");
  }
  const auto make = [&](tooldecode::Tokenizer tokenizer, Prompter prompter) {
    DeviceModel model(tooldecode::LlamaModel::load(place), {.context = options.context});
    return std::make_shared<const DeviceAssistant>(place, std::move(model), std::move(tokenizer),
                                                   std::move(prompter));
  };
  if (!is_gguf(place)) return make(tooldecode::load_tokenizer(place), embedded_prompter(place));
  Prompter prompter   = plain_prompter(shots_of(options));
  auto bytes          = read_file(place);  // for the tokenizer and for what begins its texts
  prompter.adds_begin = begins_texts(bytes);
  auto tokenizer      = tooldecode::parse_tokenizer(bytes, place.string());
  bytes               = {};
  return make(std::move(tokenizer), std::move(prompter));
}

}  // namespace program
