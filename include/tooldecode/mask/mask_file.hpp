/// \file
/// save_masks and load_masks: what masks need of one vocabulary, in a file.
#pragma once

#include <cstddef>
#include <filesystem>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Writes a vocabulary's index, with the slices that its constraints have made so far. Replaces a
/// file at once: who reads it meanwhile sees the old one or the new one.
///
/// \par Complexity  O(bytes of the file)
/// \par Threads     may run concurrently with everything else, in other processes too
/// \par Errors      Error{file_unreadable} with the path if it cannot be written
void save_masks(const VocabularyIndex& index, const std::filesystem::path& path);

/// Reads the index of a vocabulary from a file of `save_masks`, which takes less time than making
/// it; masks are the same bits.
///
/// A file serves one vocabulary, one version of the library and one order of bytes. Its checksum
/// finds damage, not intent: a file can make masks wrong, so read it only from a place that you
/// trust like the program itself.
///
/// \param budget, mask_limits  as for VocabularyIndex
///
/// \par Complexity  O(bytes of the file)
/// \par Threads     as save_masks
/// \par Errors      Error{file_unreadable} if there is no file; Error{malformed_file} if it does not
///                  serve; both with the path
[[nodiscard]] VocabularyIndex load_masks(Vocabulary vocabulary, const std::filesystem::path& path,
                                         std::size_t budget = VocabularyIndex::default_budget,
                                         const BuildLimits& mask_limits = {});

/// The same, but where no file of masks serves, it makes the index and saves it.
///
/// \par Errors      Error{malformed_file} for a file of another kind, which it does not replace;
///                  Error{file_unreadable} if the file cannot be written
[[nodiscard]] VocabularyIndex load_or_make_masks(
    Vocabulary vocabulary, const std::filesystem::path& path,
    std::size_t budget = VocabularyIndex::default_budget, const BuildLimits& mask_limits = {});

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/mask_file.ipp>
#endif
