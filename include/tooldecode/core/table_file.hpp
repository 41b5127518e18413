/// \file
/// TableWriter and TableReader: numbers and tables of numbers as bytes of a file.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
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
  /// Of all that was written.
  [[nodiscard]] std::uint64_t checksum() const noexcept { return sum_; }

 private:
  void append(const void* from, std::size_t size);

  std::string bytes_;
  std::uint64_t sum_ = 0;
};

/// Reads what a TableWriter has written, and nothing past its end, from a text or from a file: then
/// tables go from the file to where they stay, without a copy of the whole.
///
/// \par Complexity  O(bytes read); a table is allocated only if the text holds all of it
/// \par Errors      Error{malformed_file} with the place of the text
class TableReader {
 public:
  /// \param place  of the text, for errors; both are kept by the caller
  TableReader(std::string_view bytes, std::string place)
      : rest_(bytes.data()), left_(bytes.size()), place_(std::move(place)) {}
  /// \param left  bytes of the tables
  TableReader(std::istream& file, std::uint64_t left, std::string place)
      : file_(&file), left_(left), place_(std::move(place)) {}

  template <TableValue T>
  [[nodiscard]] T number() {
    std::array<char, sizeof(T)> bytes{};
    read(bytes.data(), sizeof(T));
    return std::bit_cast<T>(bytes);
  }
  template <TableValue T>
  [[nodiscard]] std::vector<T> table() {
    const auto size = number<std::uint64_t>();
    require(size <= left_ / sizeof(T), "ends inside a table");
    std::vector<T> values(static_cast<std::size_t>(size));
    read(values.data(), values.size() * sizeof(T));
    return values;
  }

  /// Refuses the text unless a condition holds.
  ///
  /// \param what  the sentence if it does not
  void require(bool holds, std::string_view what) const {
    if (!holds) fail(what);
  }
  /// Of all that was read; the writer's if that is what was written.
  [[nodiscard]] std::uint64_t checksum() const noexcept { return sum_; }
  void require_end() const { require(left_ == 0, "goes on behind its last table"); }

 private:
  [[noreturn]] void fail(std::string_view what) const;
  void read(void* to, std::size_t size);

  std::istream* file_ = nullptr;
  const char* rest_   = nullptr;  // of a text
  std::uint64_t left_;
  std::uint64_t sum_ = 0;
  std::string place_;
};

/// A checksum of a text, equal on every machine of one byte order. Texts of one length that differ
/// in a single group of eight bytes never have the same.
[[nodiscard]] std::uint64_t checksum(std::string_view bytes) noexcept;

}  // namespace tooldecode::core

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/table_file.ipp>
#endif
