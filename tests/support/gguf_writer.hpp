/// \file
/// GgufWriter: writes GGUF files in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tooldecode::test {

/// Appends keys with values, and tensors; `file` returns the header and these.
class GgufWriter {
 public:
  template <class T>
  GgufWriter& put(T value) {
    append(bytes_, value);
    return *this;
  }
  GgufWriter& put_text(const std::string& text) {
    append_text(bytes_, text);
    return *this;
  }
  GgufWriter& key(const std::string& name, std::uint32_t type) { return put_text(name).put(type); }
  GgufWriter& text(const std::string& name, const std::string& value) {
    return key(name, 8).put_text(value);
  }
  GgufWriter& number(const std::string& name, std::uint32_t value) {
    return key(name, 4).put(value);
  }
  GgufWriter& real(const std::string& name, float value) { return key(name, 6).put(value); }
  GgufWriter& texts(const std::string& name, const std::vector<std::string>& values) {
    key(name, 9).put<std::uint32_t>(8).put<std::uint64_t>(values.size());
    for (const std::string& value : values) put_text(value);
    return *this;
  }
  GgufWriter& types(const std::string& name, const std::vector<std::int32_t>& values) {
    key(name, 9).put<std::uint32_t>(5).put<std::uint64_t>(values.size());
    for (const std::int32_t value : values) put(value);
    return *this;
  }
  GgufWriter& floats(const std::string& name, const std::vector<float>& values) {
    key(name, 9).put<std::uint32_t>(6).put<std::uint64_t>(values.size());
    for (const float value : values) put(value);
    return *this;
  }
  /// The keys of another writer; for duplicate keys readers take the last.
  GgufWriter& append_keys(const GgufWriter& other) {
    bytes_ += other.bytes_;
    return *this;
  }

  /// A tensor of any type. `shape` begins with the outermost extent; the file has it last.
  GgufWriter& tensor(const std::string& name, const std::vector<std::size_t>& shape,
                     std::uint32_t type, const std::string& data) {
    append_text(infos_, name);
    append(infos_, static_cast<std::uint32_t>(shape.size()));
    for (std::size_t i = shape.size(); i > 0; --i) append<std::uint64_t>(infos_, shape[i - 1]);
    append(infos_, type);
    append<std::uint64_t>(infos_, data_.size());
    data_ += data;
    pad(data_);
    ++tensors_;
    return *this;
  }
  GgufWriter& tensor(const std::string& name, const std::vector<std::size_t>& shape,
                     const std::vector<float>& values) {
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    return tensor(name, shape, 0, data);
  }

  [[nodiscard]] std::string file(std::uint64_t keys, std::uint32_t version = 3) const {
    std::string result = "GGUF";
    append(result, version);
    append(result, tensors_);
    append(result, keys);
    result += bytes_ + infos_;
    if (tensors_ == 0) return result;
    pad(result);
    return result + data_;
  }

 private:
  template <class T>
  static void append(std::string& bytes, T value) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  static void append_text(std::string& bytes, const std::string& text) {
    append<std::uint64_t>(bytes, text.size());
    bytes += text;
  }
  static void pad(std::string& bytes) { bytes.resize((bytes.size() + 31) / 32 * 32, '\0'); }

  std::string bytes_, infos_, data_;
  std::uint64_t tensors_ = 0;
};

}  // namespace tooldecode::test
