/// \file
/// What safetensors.hpp declares.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/model/safetensors.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

TOOLDECODE_INLINE SafeTensors SafeTensors::load(const std::filesystem::path& path) {
  return parse(core::read_file(path), path.string());
}

TOOLDECODE_INLINE SafeTensors SafeTensors::parse(std::string bytes, std::string place) {
  SafeTensors result(std::move(bytes), std::move(place));
  result.read_header();
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
  if (tensor.type == "BF16") return widened(tensor, bfloat16_to_float);
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
  return place_ + ": tensor " + Json(tensor).dump(-1, ' ', true, Json::error_handler_t::replace);
}

TOOLDECODE_INLINE std::string SafeTensors::written(std::span<const std::size_t> shape) {
  return Json(std::vector<std::size_t>(shape.begin(), shape.end())).dump();
}

TOOLDECODE_INLINE void SafeTensors::read_header() {
  std::uint64_t header_size = 0;
  if (bytes_.size() < sizeof header_size) {
    throw Error(Errc::malformed_file, place_, "is shorter than the 8 bytes of a header's size");
  }
  std::memcpy(&header_size, bytes_.data(), sizeof header_size);
  if (header_size > header_limit_bytes || header_size > bytes_.size() - sizeof header_size) {
    throw Error(Errc::malformed_file, place_,
                "says that its header has " + std::to_string(header_size) +
                    " bytes, the file has " + std::to_string(bytes_.size()));
  }
  data_begin_       = sizeof header_size + static_cast<std::size_t>(header_size);
  const Json header = parse_header();
  if (!header.is_object())
    throw Error(Errc::malformed_file, place_, "has a header that is no object");
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") tensors_.emplace(name, read_tensor(name, value));
  }
  check_ranges();
}

TOOLDECODE_INLINE SafeTensors::Json SafeTensors::parse_header() const {
  // The parser keeps the last of equal keys; which tensor is meant would be a guess.
  std::map<std::string, bool, std::less<>> seen;
  std::string repeated;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key &&
        !seen.emplace(parsed.get<std::string>(), true).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  try {
    Json header = Json::parse(bytes_.data() + sizeof(std::uint64_t), data(), watch);
    if (!repeated.empty()) throw Error(Errc::malformed_file, place_of(repeated), "is there twice");
    return header;
  } catch (const Json::parse_error& error) {
    throw Error(Errc::malformed_json, place_ + ": byte " + std::to_string(error.byte + 7),
                "the header is not JSON");
  } catch (const Json::exception&) {
    throw Error(Errc::malformed_json, place_, "has a header with a number out of range");
  }
}

TOOLDECODE_INLINE SafeTensors::Tensor SafeTensors::read_tensor(const std::string& name,
                                                               const Json& value) const {
  const auto require = [&](bool met, std::string_view what) {
    if (!met) throw Error(Errc::malformed_file, place_of(name), what);
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
  const std::size_t data_size = bytes_.size() - data_begin_;
  require(tensor.begin <= tensor.end && tensor.end <= data_size,
          "has data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
              "] outside the " + std::to_string(data_size) + " bytes of data");
  const auto width = std::find_if(widths.begin(), widths.end(),
                                  [&](const auto& entry) { return entry.first == tensor.type; });
  if (width == widths.end()) {
    throw Error(Errc::unknown_format, place_of(name),
                "has the unknown type " + Json(tensor.type).dump(-1, ' ', true));
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

TOOLDECODE_INLINE void SafeTensors::check_ranges() const {
  std::vector<std::pair<const Tensor*, std::string_view>> ordered;
  for (const auto& [name, tensor] : tensors_) ordered.emplace_back(&tensor, name);
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  std::size_t end = 0;
  for (const auto& [tensor, name] : ordered) {
    if (tensor->begin != end) {
      throw Error(Errc::malformed_file, place_of(name),
                  "begins at byte " + std::to_string(tensor->begin) +
                      " of the data, the one before it ends at " + std::to_string(end));
    }
    end = tensor->end;
  }
  if (end != bytes_.size() - data_begin_) {
    throw Error(Errc::malformed_file, place_,
                "has " + std::to_string(bytes_.size() - data_begin_) +
                    " bytes of data, its tensors take " + std::to_string(end));
  }
}

}  // namespace tooldecode
