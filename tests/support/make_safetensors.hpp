/// \file
/// Makes a SafeTensors in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <tooldecode/model/safetensors.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::test {

struct FloatTensor {
  std::vector<std::size_t> shape;
  std::vector<float> numbers;
};

using FloatTensors = std::map<std::string, FloatTensor>;

inline SafeTensors make_safetensors(const FloatTensors& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = data.size();
    data.resize(begin + tensor.numbers.size() * sizeof(float));
    std::memcpy(data.data() + begin, tensor.numbers.data(), data.size() - begin);
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text   = header.dump();
  const std::uint64_t size = text.size();
  std::string file(sizeof size, '\0');
  std::memcpy(file.data(), &size, sizeof size);
  return SafeTensors::parse(file + text + data);
}

}  // namespace tooldecode::test
