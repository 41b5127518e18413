/// \file
/// Definitions of mask_file.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/table_file.hpp>
#include <tooldecode/mask/mask_file.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/version.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::mask {

/// The tables of a vocabulary's masks behind a header, which names the vocabulary.
class MaskFile {
 public:
  MaskFile(const std::filesystem::path& path, const Vocabulary& vocabulary);

  // The checksum is compared last, when all is read.
  [[nodiscard]] VocabularyIndex read(Vocabulary vocabulary, std::size_t budget,
                                     const BuildLimits& mask_limits);

  // Whether there is a file, and it begins as these files do; throws if it begins otherwise.
  [[nodiscard]] static bool is_at(const std::filesystem::path& path);
  static void write(const std::filesystem::path& path, const Vocabulary& vocabulary,
                    const core::TableWriter& tables);

 private:
  struct Header {
    static constexpr std::uint32_t native_order = 0x01020304, swapped_order = 0x04030201;
    // Counts up when the tables or what they mean change between two versions of the library.
    static constexpr std::uint32_t latest_format = 1;

    static Header of(const Vocabulary& vocabulary) {
      Header header;
      std::copy_n(version.begin(), std::min(version.size(), header.library.size()),
                  header.library.begin());
      header.vocabulary = vocabulary.hash();
      header.size       = vocabulary.size();
      return header;
    }
    [[nodiscard]] std::uint64_t sum(std::uint64_t of_tables) const {
      Header unsigned_header   = *this;
      unsigned_header.checksum = of_tables;
      return core::checksum(
          {reinterpret_cast<const char*>(&unsigned_header), sizeof unsigned_header});
    }

    std::array<char, 16> name{'t', 'o', 'o', 'l', 'd', 'e', 'c', 'o',
                              'd', 'e', ' ', 'm', 'a', 's', 'k', 's'};
    std::uint32_t order  = native_order;
    std::uint32_t format = latest_format;
    std::array<char, 16> library{};  // version, padded with zeros
    std::uint64_t vocabulary  = 0;   // hash
    std::uint64_t size        = 0;   // V
    std::uint64_t table_bytes = 0;
    std::uint64_t checksum    = 0;
  };

  static constexpr const char* other_kind =
      "is no file of masks, and is not replaced: name another path";
  static constexpr const char* damaged = "is damaged: make it anew";

  void require(bool holds, const char* what) const {
    if (!holds) throw Error(Errc::malformed_file, place_, what);
  }

  std::string place_;
  std::ifstream file_;
  Header header_;
};

TOOLDECODE_INLINE MaskFile::MaskFile(const std::filesystem::path& path,
                                     const Vocabulary& vocabulary)
    : place_(path.string()), file_(path, std::ios::binary) {
  static_assert(core::TableValue<Header>);
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure) || !file_) {
    throw Error(Errc::file_unreadable, place_, "is not a file that can be read");
  }
  const Header expected = Header::of(vocabulary);
  file_.read(reinterpret_cast<char*>(&header_), sizeof header_);
  require(header_.name == expected.name, other_kind);
  require(!file_.fail(), "is cut off: make it anew");
  require(header_.order != Header::swapped_order,
          "was written on a machine of another byte order: make it anew on this one");
  require(header_.order == expected.order, damaged);
  require(header_.format == expected.format && header_.library == expected.library,
          "was written by another version of the library: make it anew");
  file_.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(file_.tellg());
  file_.seekg(sizeof header_);
  require(!file_.fail() && header_.table_bytes == size - sizeof header_,
          "is cut off, or goes on behind its tables: make it anew");
  require(header_.vocabulary == expected.vocabulary && header_.size == expected.size,
          "belongs to another vocabulary: use one file for each vocabulary, or make it anew");
}

TOOLDECODE_INLINE VocabularyIndex MaskFile::read(Vocabulary vocabulary, std::size_t budget,
                                                 const BuildLimits& mask_limits) {
  core::TableReader tables(file_, header_.table_bytes, place_);
  try {
    VocabularyIndex index(std::move(vocabulary), tables, budget, mask_limits);
    require(header_.checksum == header_.sum(tables.checksum()), damaged);
    return index;
  } catch (const Error& error) {
    require(error.code() != Errc::malformed_file, damaged);
    throw;
  }
}

TOOLDECODE_INLINE bool MaskFile::is_at(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return false;
  const std::array<char, 16> expected = Header{}.name;
  std::array<char, 16> name{};
  std::ifstream(path, std::ios::binary).read(name.data(), name.size());
  if (name != expected) {
    throw Error(Errc::malformed_file, path.string(), other_kind);
  }
  return true;
}

TOOLDECODE_INLINE void MaskFile::write(const std::filesystem::path& path,
                                       const Vocabulary& vocabulary,
                                       const core::TableWriter& tables) {
  Header header      = Header::of(vocabulary);
  header.table_bytes = tables.bytes().size();
  header.checksum    = header.sum(tables.checksum());
  auto partial       = path;
  partial += ".partial-" + std::to_string(std::random_device{}());
  std::error_code failure, ignored;
  {
    std::ofstream file(partial, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file << tables.bytes();
    file.close();
    if (!file) failure = std::make_error_code(std::errc::io_error);
  }
  if (!failure) std::filesystem::rename(partial, path, failure);
  if (failure) {
    std::filesystem::remove(partial, ignored);
    throw Error(Errc::file_unreadable, path.string(), "cannot be written");
  }
}

}  // namespace tooldecode::mask

namespace tooldecode {

TOOLDECODE_INLINE void save_masks(const VocabularyIndex& index, const std::filesystem::path& path) {
  core::TableWriter tables;
  index.write(tables);
  mask::MaskFile::write(path, index.vocabulary(), tables);
}

TOOLDECODE_INLINE VocabularyIndex load_masks(Vocabulary vocabulary,
                                             const std::filesystem::path& path, std::size_t budget,
                                             const BuildLimits& mask_limits) {
  mask::MaskFile file(path, vocabulary);
  return file.read(std::move(vocabulary), budget, mask_limits);
}

TOOLDECODE_INLINE VocabularyIndex load_or_make_masks(Vocabulary vocabulary,
                                                     const std::filesystem::path& path,
                                                     std::size_t budget,
                                                     const BuildLimits& mask_limits) {
  if (mask::MaskFile::is_at(path)) {
    try {
      return load_masks(vocabulary, path, budget, mask_limits);
    } catch (const Error& error) {
      if (error.code() != Errc::malformed_file) throw;
    }
  }
  VocabularyIndex index(std::move(vocabulary), budget, mask_limits);
  save_masks(index, path);
  return index;
}

}  // namespace tooldecode
