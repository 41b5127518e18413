/// \file
/// TokenCounts: counts how often each token occurs in a streamed text, on all cores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <istream>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Occurrences of every token of a vocabulary.
///
/// \par Shapes      V counts
/// \par Complexity  O(L) to add L tokens, O(V) to add other counts
/// \par Errors      Error{unknown_token} for a token outside the vocabulary; no token of that call
///                  is then counted. Error{shape_mismatch} for counts of another vocabulary's size
class TokenCounts {
 public:
  explicit TokenCounts(std::size_t vocabulary_size) : counts_(vocabulary_size) {}

  /// Counts the tokens of a text; `bytes` is the text's length.
  void add(std::span<const TokenId> tokens, std::size_t bytes = 0);
  TokenCounts& operator+=(const TokenCounts& other);

  /// V.
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return counts_.size(); }
  [[nodiscard]] std::span<const std::uint64_t> counts() const noexcept { return counts_; }  // [V]
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// Number of different tokens that occur; O(V).
  [[nodiscard]] std::size_t distinct() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  friend bool operator==(const TokenCounts&, const TokenCounts&) = default;

 private:
  std::vector<std::uint64_t> counts_;  // [V]
  std::uint64_t total_ = 0, bytes_ = 0;
};

/// Options of count_tokens.
struct CountOptions {
  std::size_t threads     = 0;       ///< 0: one per core
  std::size_t piece_bytes = 65'536;  ///< maximum length of the pieces that are encoded
  /// Called after every piece with the bytes counted so far, by one thread at a time.
  std::function<void(std::uint64_t)> on_progress = {};
};

namespace detail {

// Reads a text in pieces.
class TextPieces {
 public:
  TextPieces(std::istream& text, std::size_t size) : text_(text), size_(size) {}

  // Reads the next piece; false at the end.
  bool next(std::string& piece);

 private:
  // The best place to end a piece, and among equals the last one. Every pre-tokenizer splits at a
  // newline between two visible characters. Blank lines, leading spaces and a slash (of a comment)
  // may be in one piece with the newline.
  static std::size_t place_to_cut(std::string_view text);

  std::istream& text_;
  std::size_t size_;
  std::string rest_;
  std::uint64_t read_ = 0;
};

}  // namespace detail

/// Counts the tokens of a text of any length in constant memory.
///
/// The text is cut where that does not change its tokens: at the end of a line, or between words if
/// no line ends within a piece. Names of control tokens are read as text. The result does not
/// depend on the number of threads.
///
/// \param tokenizer  a Tokenizer, or any object whose `encode(std::string_view)` returns tokens and
///                   whose `vocabulary().size()` is V; several threads use it at once
/// \par Complexity   that of `encode`; O(threads (V + piece_bytes)) memory
/// \par Errors      Error{file_unreadable} if reading fails; Error{invalid_option} for pieces of
///                  less than 8 bytes; exceptions of `encode` and `on_progress`
template <class Encoder>
[[nodiscard]] TokenCounts count_tokens(const Encoder& tokenizer, std::istream& text,
                                       const CountOptions& options = {}) {
  if (options.piece_bytes < 8) {
    throw Error(Errc::invalid_option, "piece_bytes", options.piece_bytes, "must be 8 or more");
  }
  TokenCounts counts(tokenizer.vocabulary().size());
  detail::TextPieces pieces(text, options.piece_bytes);
  std::mutex mutex;  // guards counts, pieces, done and failure
  std::uint64_t done = 0;
  std::exception_ptr failure;
  const auto work = [&, size = counts.vocabulary_size()] {
    try {
      TokenCounts own(size);
      for (std::string piece;;) {
        {
          const std::lock_guard lock(mutex);
          if (failure || !pieces.next(piece)) break;
        }
        own.add(tokenizer.encode(piece), piece.size());
        const std::lock_guard lock(mutex);
        done += piece.size();
        if (options.on_progress) options.on_progress(done);
      }
      const std::lock_guard lock(mutex);
      counts += own;
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads(options.threads == 0 ? cores : options.threads);
    for (std::jthread& thread : threads) thread = std::jthread(work);
  }
  if (failure) std::rethrow_exception(failure);
  return counts;
}

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/token_counts.ipp>
#endif
