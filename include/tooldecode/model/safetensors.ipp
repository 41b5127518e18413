#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include <tooldecode/core/read_file.hpp>
#include <tooldecode/model/bfloat16.hpp>
#include <tooldecode/model/safetensors.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode {

class SafeTensors::HeaderReader {
 public:
  explicit HeaderReader(SafeTensors& file) : file_(file) {}

  void read();

 private:
  using Json = JsonValue;

  static constexpr std::array<std::pair<std::string_view, std::size_t>, 15> widths{{{"BOOL", 1},
                                                                                    {"U8", 1},
                                                                                    {"I8", 1},
                                                                                    {"F8_E5M2", 1},
                                                                                    {"F8_E4M3", 1},
                                                                                    {"I16", 2},
                                                                                    {"U16", 2},
                                                                                    {"F16", 2},
                                                                                    {"BF16", 2},
                                                                                    {"I32", 4},
                                                                                    {"U32", 4},
                                                                                    {"F32", 4},
                                                                                    {"I64", 8},
                                                                                    {"U64", 8},
                                                                                    {"F64", 8}}};

  [[nodiscard]] Json parse() const;
  [[nodiscard]] Tensor read_tensor(const std::string& name, const Json& value) const;
  void check_ranges() const;

  SafeTensors& file_;
};

template <class T>
std::vector<T> SafeTensors::copied(const Tensor& tensor) const {
  std::vector<T> result((tensor.end - tensor.begin) / sizeof(T));
  if (!result.empty()) {
    std::memcpy(result.data(), data() + tensor.begin, result.size() * sizeof(T));
  }
  return result;
}

template <class Widen>
std::vector<float> SafeTensors::widened(const Tensor& tensor, Widen widen) const {
  std::vector<float> result((tensor.end - tensor.begin) / 2);
  const char* from = data() + tensor.begin;
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    result[i] = widen(bits);
  }
  return result;
}

TOOLDECODE_INLINE SafeTensors SafeTensors::load(const std::filesystem::path& path) {
  return parse(core::read_file(path), path.string());
}

TOOLDECODE_INLINE SafeTensors SafeTensors::parse(std::string bytes, std::string place) {
  SafeTensors result(std::move(bytes), std::move(place));
  HeaderReader(result).read();
  return result;
}

TOOLDECODE_INLINE const std::map<std::string, SafeTensors::Tensor, std::less<>>&
SafeTensors::tensors() const noexcept {
  return tensors_;
}

TOOLDECODE_INLINE std::vector<float> SafeTensors::floats(std::string_view name,
                                                         std::span<const std::size_t> shape) const {
  const Tensor& tensor = find(name, shape);
  if (tensor.type == "F32") return copied<float>(tensor);
  if (tensor.type == "F16") return widened(tensor, half_to_float);
  if (tensor.type == "BF16") {
    return widened(tensor, [](std::uint16_t bits) {
      return static_cast<float>(std::bit_cast<BFloat16>(bits));
    });
  }
  throw Error(Errc::unknown_format, place_of(name),
              "has type " + tensor.type + ", weights must be F32, F16 or BF16");
}

TOOLDECODE_INLINE std::vector<std::int64_t> SafeTensors::integers(
    std::string_view name, std::span<const std::size_t> shape) const {
  const Tensor& tensor = find(name, shape);
  if (tensor.type == "I64") return copied<std::int64_t>(tensor);
  throw Error(Errc::unknown_format, place_of(name),
              "has type " + tensor.type + ", indices must be I64");
}

TOOLDECODE_INLINE const SafeTensors::Tensor& SafeTensors::find(
    std::string_view name, std::span<const std::size_t> shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(Errc::malformed_file, place_of(name), "is not in the file");
  }
  const Tensor& tensor = found->second;
  if (!std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end())) {
    throw Error(Errc::shape_mismatch, place_of(name),
                "has shape " + written(tensor.shape) + ", must have " + written(shape));
  }
  return tensor;
}

TOOLDECODE_INLINE std::string SafeTensors::place_of(std::string_view tensor) const {
  return place_ + ": tensor " + JsonValue(tensor).text({.ascii = true});
}

TOOLDECODE_INLINE std::string SafeTensors::written(std::span<const std::size_t> shape) {
  return JsonValue(std::vector<std::size_t>(shape.begin(), shape.end())).text();
}

TOOLDECODE_INLINE void SafeTensors::HeaderReader::read() {
  std::uint64_t header_size = 0;
  if (file_.bytes_.size() < sizeof header_size) {
    throw Error(Errc::malformed_file, file_.place_,
                "is shorter than the 8 bytes of a header's size");
  }
  std::memcpy(&header_size, file_.bytes_.data(), sizeof header_size);
  if (header_size > header_limit_bytes || header_size > file_.bytes_.size() - sizeof header_size) {
    throw Error(Errc::malformed_file, file_.place_,
                "says that its header has " + std::to_string(header_size) +
                    " bytes, the file has " + std::to_string(file_.bytes_.size()));
  }
  file_.data_begin_ = sizeof header_size + static_cast<std::size_t>(header_size);
  const Json header = parse();
  if (!header.is_object())
    throw Error(Errc::malformed_file, file_.place_, "has a header that is no object");
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") file_.tensors_.emplace(name, read_tensor(name, value));
  }
  check_ranges();
}

TOOLDECODE_INLINE JsonValue SafeTensors::HeaderReader::parse() const {
  // Duplicate names are an error: the file does not say which tensor is meant.
  const char* const begin = std::as_const(file_.bytes_).data() + sizeof(std::uint64_t);
  const std::string_view text(begin, file_.data_begin_ - sizeof(std::uint64_t));
  try {
    return text::parse_json(text);
  } catch (const Error& error) {
    throw Error(error.code(), file_.place_, "the header is not JSON: " + std::string(error.what()));
  }
}

TOOLDECODE_INLINE SafeTensors::Tensor SafeTensors::HeaderReader::read_tensor(
    const std::string& name, const Json& value) const {
  const auto require = [&](bool met, std::string_view what) {
    if (!met) throw Error(Errc::malformed_file, file_.place_of(name), what);
  };
  const auto is_size = [](const Json& v) { return v.is_number_unsigned(); };
  require(value.is_object() && value.contains("dtype") && value.contains("shape") &&
              value.contains("data_offsets"),
          "must be an object with dtype, shape and data_offsets");
  const Json& type    = value["dtype"];
  const Json& shape   = value["shape"];
  const Json& offsets = value["data_offsets"];
  require(type.is_string(), "must have a string as dtype");
  require(shape.is_array() && std::all_of(shape.begin(), shape.end(), is_size),
          "must have an array of whole numbers as shape");
  require(offsets.is_array() && offsets.size() == 2 && is_size(offsets[0]) && is_size(offsets[1]),
          "must have two whole numbers as data_offsets");

  Tensor tensor{type.get<std::string>(), shape.get<std::vector<std::size_t>>(),
                offsets[0].get<std::size_t>(), offsets[1].get<std::size_t>()};
  const std::size_t data_size = file_.bytes_.size() - file_.data_begin_;
  require(tensor.begin <= tensor.end && tensor.end <= data_size,
          "has data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
              "] outside the " + std::to_string(data_size) + " bytes of data");
  const auto width = std::find_if(widths.begin(), widths.end(),
                                  [&](const auto& entry) { return entry.first == tensor.type; });
  if (width == widths.end()) {
    throw Error(Errc::unknown_format, file_.place_of(name),
                "has the unknown type " + Json(tensor.type).text({.ascii = true}));
  }
  const std::size_t limit = tensor.end - tensor.begin;
  const bool is_empty =
      std::find(tensor.shape.begin(), tensor.shape.end(), 0U) != tensor.shape.end();
  std::size_t size = is_empty ? 0 : width->second;
  for (const std::size_t extent : tensor.shape) {
    require(is_empty || size <= limit / extent,
            "has a shape that needs more bytes than data_offsets give");
    size *= extent;
  }
  require(size == limit, "has a shape of " + std::to_string(size) + " bytes, data_offsets give " +
                             std::to_string(limit));
  return tensor;
}

TOOLDECODE_INLINE void SafeTensors::HeaderReader::check_ranges() const {
  std::vector<std::pair<const Tensor*, std::string_view>> ordered;
  for (const auto& [name, tensor] : file_.tensors_) ordered.emplace_back(&tensor, name);
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  std::size_t end = 0;
  for (const auto& [tensor, name] : ordered) {
    if (tensor->begin != end) {
      throw Error(Errc::malformed_file, file_.place_of(name),
                  "begins at byte " + std::to_string(tensor->begin) +
                      " of the data, the one before it ends at " + std::to_string(end));
    }
    end = tensor->end;
  }
  if (end != file_.bytes_.size() - file_.data_begin_) {
    throw Error(Errc::malformed_file, file_.place_,
                "has " + std::to_string(file_.bytes_.size() - file_.data_begin_) +
                    " bytes of data, its tensors take " + std::to_string(end));
  }
}

}  // namespace tooldecode
