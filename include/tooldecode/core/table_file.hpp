/// \file
/// TableWriter and TableReader: numbers and tables of numbers as bytes of a file.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::core {

/// A type whose bytes are its value, so that they can be stored: an integer, or a struct of
/// integers without padding.
template <class T>
concept TableValue =
    std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T> &&
    !std::same_as<T, bool> && !std::is_pointer_v<T>;

/// Appends numbers and tables to a text, in the machine's byte order.
class TableWriter {
 public:
  template <TableValue T>
  void number(const T& value) {
    append(&value, sizeof value);
  }
  /// The length of a table, then its values.
  template <TableValue T>
  void table(std::span<const T> values) {
    number(std::uint64_t{values.size()});
    append(values.data(), values.size_bytes());
  }
  template <class T>
  void table(const std::vector<T>& values) {
    table(std::span<const T>(values));
  }

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void append(const void* from, std::size_t size) {
    if (size != 0) bytes_.append(static_cast<const char*>(from), size);
  }

  std::string bytes_;
};

/// Reads what a TableWriter has written, and nothing past its end.
///
/// \par Complexity  O(bytes read); a table is allocated only if the text holds all of it
/// \par Errors      Error{malformed_file} with the place of the text
class TableReader {
 public:
  /// \param place  of the text, for errors; both are kept by the caller
  TableReader(std::string_view bytes, std::string place) : rest_(bytes), place_(std::move(place)) {}

  template <TableValue T>
  [[nodiscard]] T number() {
    std::array<char, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), take(sizeof(T)), sizeof(T));
    return std::bit_cast<T>(bytes);
  }
  template <TableValue T>
  [[nodiscard]] std::vector<T> table() {
    const auto size = number<std::uint64_t>();
    require(size <= rest_.size() / sizeof(T), "ends inside a table");
    std::vector<T> values(static_cast<std::size_t>(size));
    if (!values.empty()) {
      std::memcpy(values.data(), take(values.size() * sizeof(T)), values.size() * sizeof(T));
    }
    return values;
  }

  /// Refuses the text unless a condition holds.
  ///
  /// \param what  the sentence if it does not
  void require(bool holds, std::string_view what) const {
    if (!holds) fail(what);
  }
  void require_end() const { require(rest_.empty(), "goes on behind its last table"); }

 private:
  [[noreturn]] void fail(std::string_view what) const;
  const char* take(std::size_t size);

  std::string_view rest_;
  std::string place_;
};

/// A checksum of a text, equal on every machine of one byte order. Texts of one length that differ
/// in a single group of eight bytes never have the same.
[[nodiscard]] std::uint64_t checksum(std::string_view bytes) noexcept;

}  // namespace tooldecode::core

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/table_file.ipp>
#endif
