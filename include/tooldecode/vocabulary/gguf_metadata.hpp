/// \file
/// GgufMetadata: the key-value part of a GGUF file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tooldecode/core/error.hpp>

namespace tooldecode::vocabulary {

/// Error{malformed_file} of bytes that end before a field does.
class GgufCutShort : public Error {
 public:
  GgufCutShort(std::uint64_t needed, const Error& error) : Error(error), needed_(needed) {}
  /// How many bytes of the file the field needs.
  [[nodiscard]] std::uint64_t needed() const noexcept { return needed_; }

 private:
  std::uint64_t needed_;
};

/// Reads the fields of a GGUF file one after another; the bytes must outlive it.
///
/// \par Errors      GgufCutShort with the byte offset if the file is truncated
class GgufCursor {
 public:
  explicit GgufCursor(std::string_view bytes, std::size_t position = 0)
      : bytes_(bytes), at_(position) {}

  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] std::size_t size_left() const noexcept { return bytes_.size() - at_; }

  template <class T>
  T read() {
    static_assert(std::endian::native == std::endian::little, "the format is little-endian");
    if (size_left() < sizeof(T)) {
      cut_short(sizeof(T), "must be followed by " + std::to_string(sizeof(T)) +
                               " bytes: the file is cut short");
    }
    T result;
    std::memcpy(&result, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return result;
  }
  std::string string();
  /// Throws GgufCutShort: so many bytes are needed here, and fewer are left.
  [[noreturn]] void cut_short(std::uint64_t bytes, const std::string& what) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view bytes_;
  std::size_t at_;
};

/// The key-value part of a GGUF file, versions 2 and 3, little-endian.
///
/// Numbers and booleans are stored as doubles; arrays hold numbers or strings. The tensors that
/// follow are not read, and may be missing.
///
/// \par Complexity  O(size of the metadata)
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_file} from the constructor with the byte offset
/// \par Source      ggml-org/ggml, docs/gguf.md
class GgufMetadata {
 public:
  using Numbers = std::vector<double>;
  using Strings = std::vector<std::string>;
  using Value   = std::variant<double, std::string, Numbers, Strings>;

  explicit GgufMetadata(std::string_view bytes);

  [[nodiscard]] bool has(const std::string& key) const { return values_.count(key) != 0; }
  /// The value of a key; Error{malformed_file} if it is missing or of another type.
  template <class T>
  [[nodiscard]] const T& value(const std::string& key) const {
    const auto found = values_.find(key);
    const T* value   = found == values_.end() ? nullptr : std::get_if<T>(&found->second);
    if (value == nullptr) throw Error(Errc::malformed_file, key, "must be there, and of its type");
    return *value;
  }

  /// The number of tensors that the file lists after its metadata, and the metadata's size in
  /// bytes.
  [[nodiscard]] std::uint64_t tensor_count() const noexcept { return tensor_count_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  enum Type : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    text,
    array,
    u64,
    i64,
    f64
  };

  static double read_number(GgufCursor& cursor, std::uint32_t type);
  static Value read_value(GgufCursor& cursor, std::uint32_t type);

  std::uint64_t tensor_count_ = 0;
  std::size_t size_bytes_     = 0;
  std::map<std::string, Value> values_;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/gguf_metadata.ipp>
#endif
