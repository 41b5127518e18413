#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include <tooldecode/vocabulary/gguf_metadata.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::string GgufCursor::string() {
  const auto size = read<std::uint64_t>();
  if (size > size_left()) cut_short(size, "a string must not be longer than the file");
  std::string result(bytes_.substr(at_, size));
  at_ += size;
  return result;
}

TOOLDECODE_INLINE void GgufCursor::cut_short(std::uint64_t bytes, const std::string& what) const {
  throw GgufCutShort(at_ + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - at_),
                     Error(Errc::malformed_file, "byte " + std::to_string(at_), what));
}

TOOLDECODE_INLINE void GgufCursor::fail(const std::string& what) const {
  throw Error(Errc::malformed_file, "byte " + std::to_string(at_), what);
}

TOOLDECODE_INLINE GgufMetadata::GgufMetadata(std::string_view bytes) {
  if (!bytes.starts_with("GGUF")) GgufCursor(bytes).fail("must be \"GGUF\"");
  GgufCursor cursor(bytes, 4);
  if (const auto version = cursor.read<std::uint32_t>(); version != 2 && version != 3)
    cursor.fail("version " + std::to_string(version) + ": must be 2 or 3");
  tensor_count_    = cursor.read<std::uint64_t>();
  const auto count = cursor.read<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = cursor.string();
    const auto type = cursor.read<std::uint32_t>();
    values_.insert_or_assign(std::move(key), read_value(cursor, type));
  }
  size_bytes_ = cursor.position();
}

TOOLDECODE_INLINE double GgufMetadata::read_number(GgufCursor& cursor, std::uint32_t type) {
  switch (type) {
    case u8:
    case boolean:
      return cursor.read<std::uint8_t>();
    case i8:
      return cursor.read<std::int8_t>();
    case u16:
      return cursor.read<std::uint16_t>();
    case i16:
      return cursor.read<std::int16_t>();
    case u32:
      return cursor.read<std::uint32_t>();
    case i32:
      return cursor.read<std::int32_t>();
    case f32:
      return static_cast<double>(cursor.read<float>());
    case u64:
      return static_cast<double>(cursor.read<std::uint64_t>());
    case i64:
      return static_cast<double>(cursor.read<std::int64_t>());
    case f64:
      return cursor.read<double>();
    default:
      cursor.fail("value type " + std::to_string(type) + ": must be from 0 to 12");
  }
}

TOOLDECODE_INLINE GgufMetadata::Value GgufMetadata::read_value(GgufCursor& cursor,
                                                               std::uint32_t type) {
  if (type == text) return cursor.string();
  if (type != array) return read_number(cursor, type);
  const auto items = cursor.read<std::uint32_t>();
  const auto count = cursor.read<std::uint64_t>();
  if (items == array) cursor.fail("must not be an array of arrays");
  if (count > cursor.size_left()) {
    cursor.cut_short(count, "an array must not be longer than the file");
  }
  if (items == text) {
    Strings result;
    for (std::uint64_t i = 0; i < count; ++i) result.push_back(cursor.string());
    return result;
  }
  Numbers result;
  for (std::uint64_t i = 0; i < count; ++i) result.push_back(read_number(cursor, items));
  return result;
}

}  // namespace tooldecode::vocabulary
