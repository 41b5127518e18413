/// \file
/// SuffixHistory: earlier answers, searched for the places that agree with the end of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// A place in an earlier text whose beginning agrees with the end of the text at hand.
struct SuffixMatch {
  std::size_t bytes = 0;    ///< that agree
  std::string_view follow;  ///< what follows there
};

/// The latest texts of at most so many tokens, sorted by what comes before each place. Requests
/// share one; SuffixDrafter reads it, and you add each answer that ends.
///
/// The oldest texts leave. Of a text that is longer than the whole history, the end is kept. How
/// fast a text is decoded tells whether any request wrote it before: use separate histories for
/// users who must not learn this about each other.
///
/// \par Complexity  add: O(bytes kept), for one copy of the index; find: O(log bytes) and the
///                  places that agree as far as the last that is returned; 8 bytes per byte of text
/// \par Threads     thread-safe. Copy on write: a view does not change, and a reader waits for a
///                  writer only while it swaps a pointer
/// \par Source      Oliaro et al., SuffixDecoding, arXiv:2411.04975; here with bytes and a suffix
///                  array
class SuffixHistory {
  struct Index;

 public:
  /// Agreement beyond so many bytes is not told apart.
  static constexpr std::size_t max_bytes = 64;

  /// The history at one time. What it returns points into it.
  class View {
   public:
    /// The places that agree longest with the end of `text`, the latest first among equals.
    ///
    /// \param min_bytes  that agree; at least 1 is asked for
    /// \param most       bytes that are compared
    /// \param count      places
    [[nodiscard]] std::vector<SuffixMatch> find(std::string_view text, std::size_t min_bytes,
                                                std::size_t most, std::size_t count) const;
    [[nodiscard]] std::size_t texts() const noexcept { return index_->texts.size(); }
    [[nodiscard]] std::size_t tokens() const noexcept { return index_->tokens; }

   private:
    friend class SuffixHistory;
    explicit View(std::shared_ptr<const Index> index) : index_(std::move(index)) {}

    std::shared_ptr<const Index> index_;
  };

  explicit SuffixHistory(std::size_t max_tokens)
      : max_tokens_(max_tokens), index_(std::make_shared<const Index>()) {}

  void add(const Vocabulary& vocabulary, std::span<const TokenId> tokens);
  [[nodiscard]] View view() const;

 private:
  struct Text {
    std::string bytes;
    std::size_t tokens;
  };
  struct Place {
    std::uint32_t text;  // its index
    std::uint32_t end;   // of what comes before
  };
  struct Index {
    std::deque<std::shared_ptr<const Text>> texts = {};  // oldest first
    std::vector<Place> places                     = {};  // by the reversed bytes before them
    std::size_t tokens                            = 0;

    [[nodiscard]] std::string_view before(Place place) const noexcept {
      return std::string_view(texts[place.text]->bytes).substr(0, place.end);
    }
  };

  // How many last bytes are equal, at most `most`.
  static std::size_t agreement(std::string_view a, std::string_view b, std::size_t most) noexcept;
  // By reversed bytes, of which the first max_bytes count.
  static bool is_before(std::string_view a, std::string_view b) noexcept;
  // The index with a text, and with as many of the earlier ones as fit.
  [[nodiscard]] static std::shared_ptr<const Index> with(const Index& earlier, Text text,
                                                         std::size_t max_tokens);

  std::size_t max_tokens_;
  std::mutex writing_;
  mutable std::mutex swapping_;
  std::shared_ptr<const Index> index_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/suffix_history.ipp>
#endif
