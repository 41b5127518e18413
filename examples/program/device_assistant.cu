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

#include <program/device_assistant.hpp>
#include <program/files.hpp>
#include <program/model_assistant.hpp>
#include <program/plain_prompter.hpp>

namespace program {

namespace {

using DeviceModel = tooldecode::cuda::DeviceLlama<__half>;

// What `add_bos_token` of a GGUF file says; true if nothing does.
bool begins_texts(const std::string& bytes) {
  const tooldecode::vocabulary::GgufMetadata said(bytes);
  const std::string key = "tokenizer.ggml.add_bos_token";
  return !said.has(key) || said.value<double>(key) != 0;
}

class DeviceAssistant final : public ModelAssistant<DeviceModel> {
 public:
  DeviceAssistant(const std::filesystem::path& where, DeviceModel loaded, Prompter prompter,
                  bool is_directory)
      : ModelAssistant(where, std::move(loaded), tooldecode::load_tokenizer(where),
                       std::move(prompter)),
        is_directory_(is_directory) {}

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
  const bool is_directory = place.extension() != ".gguf";
  auto prompter = is_directory ? embedded_prompter(place) : plain_prompter(shots_of(options));
  if (!is_directory) prompter.adds_begin = begins_texts(read_file(place));
  DeviceModel model(tooldecode::LlamaModel::load(place), {.context = options.context});
  return std::make_shared<const DeviceAssistant>(place, std::move(model), std::move(prompter),
                                                 is_directory);
}

}  // namespace program
