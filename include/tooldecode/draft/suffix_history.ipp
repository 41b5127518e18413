#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/draft/suffix_history.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::vector<SuffixMatch> SuffixHistory::View::find(std::string_view text,
                                                                     std::size_t min_bytes,
                                                                     std::size_t most,
                                                                     std::size_t count) const {
  struct Found {
    std::size_t bytes;
    Place place;
  };
  most                = std::min(most, max_bytes);
  const auto& places  = index_->places;
  const auto agree_at = [&](std::size_t i) {
    return i < places.size() ? agreement(index_->before(places[i]), text, most) : 0;
  };
  // Places agree the less the farther they are from where the text itself would be.
  const auto own = std::lower_bound(
      places.begin(), places.end(), text,
      [&](Place place, std::string_view end) { return is_before(index_->before(place), end); });
  auto above = static_cast<std::size_t>(own - places.begin()), below = above - 1;
  std::size_t agree_above = agree_at(above), agree_below = agree_at(below);
  std::vector<Found> found;
  while (true) {
    const std::size_t bytes = std::max(agree_above, agree_below);
    if (bytes < std::max<std::size_t>(min_bytes, 1)) break;
    if (found.size() >= count && (count == 0 || bytes < found.back().bytes)) break;
    if (bytes == agree_above) {
      found.push_back({bytes, places[above]});
      agree_above = agree_at(++above);
    } else {
      found.push_back({bytes, places[below]});
      agree_below = agree_at(--below);
    }
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.place.text != b.place.text ? a.place.text > b.place.text : a.place.end > b.place.end;
  });
  std::vector<SuffixMatch> matches;
  for (std::size_t i = 0; i < std::min(found.size(), count); ++i) {
    const auto& whole = index_->texts[found[i].place.text]->bytes;
    matches.push_back({found[i].bytes, std::string_view(whole).substr(found[i].place.end)});
  }
  return matches;
}

TOOLDECODE_INLINE void SuffixHistory::add(const Vocabulary& vocabulary,
                                          std::span<const TokenId> tokens) {
  tokens = tokens.last(std::min(tokens.size(), max_tokens_));
  Text text{{}, tokens.size()};
  for (const TokenId token : tokens) text.bytes += vocabulary.bytes(token);
  if (text.bytes.size() < 2) return;  // nothing follows anything
  const std::lock_guard writing(writing_);
  auto next = with(*view().index_, std::move(text), max_tokens_);
  const std::lock_guard swapping(swapping_);
  index_.swap(next);
}

TOOLDECODE_INLINE SuffixHistory::View SuffixHistory::view() const {
  const std::lock_guard lock(swapping_);
  return View(index_);
}

TOOLDECODE_INLINE std::size_t SuffixHistory::agreement(std::string_view a, std::string_view b,
                                                       std::size_t most) noexcept {
  most              = std::min({most, a.size(), b.size()});
  std::size_t bytes = 0;
  while (bytes < most && a[a.size() - 1 - bytes] == b[b.size() - 1 - bytes]) ++bytes;
  return bytes;
}

TOOLDECODE_INLINE bool SuffixHistory::is_before(std::string_view a, std::string_view b) noexcept {
  const std::size_t bytes = agreement(a, b, max_bytes);
  if (bytes == max_bytes || bytes == b.size()) return false;
  if (bytes == a.size()) return true;
  return static_cast<unsigned char>(a[a.size() - 1 - bytes]) <
         static_cast<unsigned char>(b[b.size() - 1 - bytes]);
}

TOOLDECODE_INLINE std::shared_ptr<const SuffixHistory::Index> SuffixHistory::with(
    const Index& earlier, Text text, std::size_t max_tokens) {
  auto made          = std::make_shared<Index>();
  made->texts        = earlier.texts;
  made->tokens       = earlier.tokens + text.tokens;
  std::uint32_t gone = 0;
  while (made->tokens > max_tokens) {
    made->tokens -= made->texts.front()->tokens;
    made->texts.pop_front();
    ++gone;
  }
  const auto at = static_cast<std::uint32_t>(made->texts.size());
  std::vector<Place> own;
  for (std::uint32_t end = 1; end < text.bytes.size(); ++end) own.push_back({at, end});
  made->texts.push_back(std::make_shared<const Text>(std::move(text)));
  std::stable_sort(own.begin(), own.end(),
                   [&](Place a, Place b) { return is_before(made->before(a), made->before(b)); });
  // Comparing is what costs, so that new places look for theirs and the rest is copied.
  made->places.reserve(earlier.places.size() + own.size());
  auto from       = earlier.places.begin();
  const auto copy = [&](auto last) {
    for (; from != last; ++from) {
      if (from->text >= gone) made->places.push_back({from->text - gone, from->end});
    }
  };
  for (const Place place : own) {
    copy(std::upper_bound(from, earlier.places.end(), made->before(place),
                          [&](std::string_view before, Place other) {
                            return is_before(before, earlier.before(other));
                          }));
    made->places.push_back(place);
  }
  copy(earlier.places.end());
  return made;
}

}  // namespace tooldecode
