#pragma once

#include <algorithm>
#include <bitset>
#include <numeric>
#include <unordered_set>

#include <tooldecode/mask/token_classes.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE TokenClasses::TokenClasses(const core::ByteTrie& trie,
                                             std::size_t vocabulary_size)
    : trie_(&trie),
      others_(trie.size(), 0),
      longest_below_(trie.size(), 0),
      whitespace_(trie, vocabulary_size),
      vocabulary_size_(vocabulary_size) {
  for (Class& known : classes_) known.mask = TokenMask(vocabulary_size);
  // The position in the text at a node; parents come before their children.
  struct Text {
    std::uint8_t place = boundary, kinds = 0, depth = 0, characters = 0, first_byte = 0;
  };
  std::vector<Text> texts(trie.size());
  for (core::ByteTrie::NodeIndex node = 0; node < trie.size(); ++node) {
    const auto [first, last] = trie.children(node);
    for (auto child = first; child < last; ++child) {
      const auto one_more_of = [](std::uint8_t n) {
        return static_cast<std::uint8_t>(std::min(n + 1, 255));
      };
      const std::uint8_t byte = trie.label(child);
      Text text               = texts[node];
      if (node == 0) text.first_byte = byte;
      text.kinds |= kind(byte);
      text.place = next_place(text.place, byte);
      text.depth = one_more_of(text.depth);
      if (text.place == boundary) text.characters = one_more_of(text.characters);
      texts[child]      = text;
      const auto values = trie.values(child);
      if (values.empty()) continue;
      const bool is_plain = text.place == boundary && text.depth <= max_bytes;
      if (is_plain) {
        longest_below_[child] = text.characters;
        if (by_characters_.size() <= text.characters) {
          by_characters_.resize(text.characters + std::size_t{1});
        }
        for (const std::uint32_t value : values) {
          const Plain token{static_cast<TokenId>(value), text.kinds};
          by_characters_[text.characters].push_back(token);
          by_first_byte_[text.first_byte].push_back(token);
        }
      }
      for (std::size_t k = 0; k < count; ++k) {
        Class& known = classes_[k];
        if (!is_plain || !has(k, text.kinds)) {
          others_[child] |= bit(k);
          continue;
        }
        known.longest = std::max(known.longest, text.depth);
        known.size += values.size();
        known.by_first_byte[text.first_byte] += values.size();
        if (known.by_characters.size() <= text.characters) {
          known.by_characters.resize(text.characters + std::size_t{1});
        }
        known.by_characters[text.characters] += values.size();
        for (const std::uint32_t token : values) known.mask.insert(static_cast<TokenId>(token));
      }
    }
  }
  for (auto node = static_cast<core::ByteTrie::NodeIndex>(trie.size()); node-- > 0;) {
    const auto [first, last] = trie.children(node);
    for (auto child = first; child < last; ++child) {
      others_[node] |= others_[child];
      longest_below_[node] = std::max(longest_below_[node], longest_below_[child]);
    }
  }
}

TOOLDECODE_INLINE bool TokenClasses::has_others(const Taken& taken,
                                                core::ByteTrie::NodeIndex node) const noexcept {
  return (others_[node] & bit(taken.k)) != 0 ||
         (!taken.is_bounded && longest_below_[node] > taken.most);
}

TOOLDECODE_INLINE const TokenClasses::Others* TokenClasses::others(const Taken& taken) const {
  if (!taken.is_bounded && taken.most + 1 < by_characters(taken.k).size()) return nullptr;
  const std::lock_guard lock(mutex_);
  std::optional<Others>& known = other_nodes_[taken.k];
  if (!known) {
    Others nodes{{}};
    for (std::size_t i = 0; i < nodes.size() && nodes.size() <= max_others(); ++i) {
      nodes[i].first_child     = static_cast<std::uint32_t>(nodes.size());
      const auto [first, last] = trie_->children(nodes[i].node);
      for (auto child = first; child < last; ++child) {
        if ((others_[child] & bit(taken.k)) == 0) continue;
        nodes.push_back({child, 0, trie_->values(child), trie_->label(child)});
      }
    }
    if (nodes.size() > max_others()) nodes.clear();
    if (!nodes.empty()) nodes.push_back({.first_child = static_cast<std::uint32_t>(nodes.size())});
    nodes.shrink_to_fit();
    known = std::move(nodes);
  }
  return known->empty() ? nullptr : &*known;
}

TOOLDECODE_INLINE std::span<const std::size_t> TokenClasses::by_characters(
    std::size_t k) const noexcept {
  return classes_[k].by_characters;
}

TOOLDECODE_INLINE std::optional<TokenClasses::Taken> TokenClasses::find(
    const text::Dfa& dfa, text::Dfa::State state) const {
  std::array<std::size_t, count> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  const std::vector<std::uint8_t> bytes = distinct_bytes(dfa);
  std::optional<Taken> best;  // short tokens of a class
  for (const std::size_t k : order) {
    if (size(k) == 0 || (best && size(k) <= count_up_to(*best))) break;
    Taken taken{.k = k, .counts = dfa.boundary(state), .most = by_characters(k).size() - 1};
    if (find_apart(dfa, state, bytes, taken)) return taken;
    if (taken.most == 0) continue;
    if (!best || count_up_to(taken) > count_up_to(*best)) best = taken;
  }
  return best;
}

TOOLDECODE_INLINE std::vector<text::Dfa::State> TokenClasses::reached(const Taken& taken,
                                                                      const text::Dfa& dfa,
                                                                      text::Dfa::State state,
                                                                      std::size_t limit) const {
  std::vector<text::Dfa::State> states;
  std::unordered_set<text::Dfa::State> known;
  const auto follow = [&](text::Dfa::State from, std::uint8_t byte) {
    const text::Dfa::State to = dfa.next(from, byte);
    if (to != text::Dfa::dead && known.insert(to).second) states.push_back(to);
  };
  std::vector<std::uint8_t> bytes = distinct_bytes(dfa);
  std::erase_if(bytes, [&](std::uint8_t byte) {
    return !has(taken.k, kind(byte)) || (byte < 0x80 && next_place(boundary, byte) == outside);
  });
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (classes_[taken.k].by_first_byte[b] != 0 && !taken.apart.contains(byte)) follow(state, byte);
  }
  std::size_t followed = 0;
  for (std::size_t depth = 1; depth < classes_[taken.k].longest; ++depth) {
    for (const std::size_t last = states.size(); followed < last; ++followed) {
      if (states.size() > limit) return {};
      for (const std::uint8_t byte : bytes) follow(states[followed], byte);
    }
  }
  return states.size() > limit ? std::vector<text::Dfa::State>() : states;
}

TOOLDECODE_INLINE std::optional<TokenClasses::Taken> TokenClasses::find_bounded(
    const text::Dfa& dfa, text::Dfa::State state) const {
  std::optional<Taken> best;
  for (std::size_t k = 0; k < count; ++k) {
    if ((kinds[k] & beyond_ascii) != 0) continue;
    const Taken found{
        .k = k, .counts = dfa.boundary(state), .most = bound_of(k, dfa, state), .is_bounded = true};
    if (found.most == 0) continue;
    if (!best || count_up_to(found) > count_up_to(*best)) best = found;
  }
  return best;
}

TOOLDECODE_INLINE std::size_t TokenClasses::bound_of(std::size_t k, const text::Dfa& dfa,
                                                     text::Dfa::State state) const {
  std::vector<std::uint8_t> bytes;  // one of each column
  std::array<bool, 256> known{};
  for (unsigned b = 0; b < 0x80; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (classes_[k].by_first_byte[b] == 0 || std::exchange(known[dfa.column(byte)], true)) continue;
    bytes.push_back(byte);
  }
  if (bytes.empty()) return 0;
  std::vector<text::Dfa::State> reached{state};
  for (std::size_t most = 0; most < classes_[k].longest; ++most) {
    std::vector<text::Dfa::State> next;
    bool some_end = false;
    for (const text::Dfa::State from : reached) {
      if (dfa.boundary(from) != dfa.boundary(state)) return 0;
      for (const std::uint8_t byte : bytes) {
        const text::Dfa::State to = dfa.next(from, byte);
        if (to == text::Dfa::dead) {
          some_end = true;
        } else if (dfa.accepting(to)) {
          return 0;
        } else {
          next.push_back(to);
        }
      }
    }
    if (some_end) return next.empty() ? most : 0;
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    if (next.size() > max_bounded) return 0;
    reached = std::move(next);
  }
  return 0;
}

TOOLDECODE_INLINE std::size_t TokenClasses::count_up_to(const Taken& taken) const {
  const std::span counts = by_characters(taken.k).first(taken.most + 1);
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

TOOLDECODE_INLINE const TokenMask& TokenClasses::up_to(std::size_t k, std::size_t most) const {
  if (most + 1 >= by_characters(k).size()) return mask(k);
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = up_to_.try_emplace({k, most}, TokenMask(vocabulary_size_));
  for (std::size_t n = 0; is_new && n <= most; ++n) {
    for_each(k, n, [&, &mask = known->second](TokenId token) { mask.insert(token); });
  }
  return known->second;
}

TOOLDECODE_INLINE std::optional<std::vector<TokenId>> TokenClasses::left_out(
    const Taken& taken, std::size_t units) const {
  const std::span counts = by_characters(taken.k);
  std::size_t too_long   = 0;
  for (std::size_t n = units + 1; taken.counts && n <= taken.most; ++n) too_long += counts[n];
  if (too_long > max_apart) return std::nullopt;
  std::vector<TokenId> tokens;
  const auto add = [&](TokenId token) { tokens.push_back(token); };
  for (std::size_t n = units + 1; taken.counts && n <= taken.most; ++n) for_each(taken.k, n, add);
  for_each_apart(taken, add);
  return tokens;
}

TOOLDECODE_INLINE std::vector<std::uint8_t> TokenClasses::distinct_bytes(const text::Dfa& dfa) {
  static const std::array<std::uint8_t, 256> alike = [] {  // the first byte that text positions
                                                           // treat alike
    std::array<std::uint8_t, 256> first{};
    for (unsigned b = 0; b < 256; ++b) {
      const auto is_like = [&](unsigned other) {
        const auto x = static_cast<std::uint8_t>(b), y = static_cast<std::uint8_t>(other);
        bool same = kind(x) == kind(y);
        for (std::uint8_t place = 0; place < outside; ++place) {
          same = same && next_place(place, x) == next_place(place, y);
        }
        return same;
      };
      unsigned other = 0;
      while (!is_like(other)) ++other;
      first[b] = static_cast<std::uint8_t>(other);
    }
    return first;
  }();
  std::vector<std::uint8_t> bytes;
  std::bitset<256 * 256> known;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte       = static_cast<std::uint8_t>(b);
    const std::size_t all = std::size_t{alike[b]} * 256 + dfa.column(byte);
    if (known.test(all)) continue;
    known.set(all);
    bytes.push_back(byte);
  }
  return bytes;
}

TOOLDECODE_INLINE bool TokenClasses::find_apart(const text::Dfa& dfa, text::Dfa::State start,
                                                const std::vector<std::uint8_t>& bytes,
                                                Taken& taken) const {
  const Class& known    = classes_[taken.k];
  const std::size_t max = std::min(max_apart, known.size / 4);
  std::size_t apart     = 0;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (known.by_first_byte[b] == 0 || dfa.next(start, byte) != text::Dfa::dead) continue;
    taken.apart.insert(byte);
    apart += known.by_first_byte[b];
  }
  const std::size_t longest = std::exchange(taken.most, 0);
  if (apart > max) return false;

  // The pairs that the class's texts reach, breadth first, and in which of the characters that end
  // after a pair the lexeme may first refuse a text. What is farther than the longest text does not
  // matter.
  constexpr std::uint32_t never = 255;
  struct Reached {
    PairState place;
    std::uint32_t depth, refused;
    std::vector<std::uint32_t> next{};
  };
  std::vector<Reached> reached;
  // Open-addressing table of the pairs' numbers, from 1: at most 256 more are reached past the last
  // one that is followed, whatever the number of states.
  std::array<std::uint32_t, 4 * max_reached> number{};
  const auto reach = [&](const PairState& place, std::uint32_t depth) {
    std::size_t at = place.state * std::size_t{outside} + place.text;
    for (;; ++at) {
      std::uint32_t& n = number[at % number.size()];
      if (n == 0) {
        reached.push_back({place, depth, never});
        n = static_cast<std::uint32_t>(reached.size());
      }
      if (reached[n - 1].place == place) return n - 1;
    }
  };
  const auto stays = [&](const PairState& place) {
    return place.state != text::Dfa::dead && !dfa.closing(place.state) &&
           dfa.boundary(place.state) == (taken.counts && place.text == boundary);
  };
  const auto after = [&](const PairState& place, std::uint8_t byte) {
    return PairState{dfa.next(place.state, byte), next_place(place.text, byte)};
  };
  const PairState root{start, boundary};
  std::array<std::uint32_t, 256> first{};
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (known.by_first_byte[b] == 0 || taken.apart.contains(byte)) continue;
    first[b] = reach(after(root, byte), 1);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto [place, depth] = std::pair(reached[i].place, reached[i].depth);
    if (!stays(place)) {
      reached[i].refused = place.text == boundary ? 0 : 1;
    } else if (depth < known.longest && reached.size() > max_reached) {
      reached[i].refused = 1;
    } else if (depth < known.longest) {
      std::vector<std::uint32_t> next;
      for (const std::uint8_t byte : bytes) {
        const PairState to = after(place, byte);
        if (to.text == outside || !has(taken.k, kind(byte))) continue;
        if (!stays(to)) {
          reached[i].refused = 1;
          break;
        }
        next.push_back(reach(to, depth + 1));
      }
      if (reached[i].refused == never) reached[i].next = std::move(next);
    }
  }
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (auto at = reached.rbegin(); at != reached.rend(); ++at) {
      for (const std::uint32_t next : at->next) {
        const std::uint32_t in =
            reached[next].refused + (reached[next].place.text == boundary ? 1 : 0);
        if (in >= at->refused) continue;
        at->refused = in;
        is_settled  = false;
      }
    }
  }
  const text::ByteSet dead = taken.apart;
  std::size_t least        = longest;  // no text is refused in its first characters
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (known.by_first_byte[b] == 0 || taken.apart.contains(byte)) continue;
    const Reached& at    = reached[first[b]];
    const std::size_t in = at.refused + (at.place.text == boundary ? 1 : 0);
    if (in > longest) continue;
    least = std::min(least, in - 1);
    taken.apart.insert(byte);
    apart += known.by_first_byte[b];
  }
  if (apart <= max) {
    taken.most = longest;
    return true;
  }
  const auto most = std::find_if(lengths.begin(), lengths.end(),
                                 [&](std::size_t length) { return length <= least; });
  if (most != lengths.end()) taken.most = *most;
  taken.apart = dead;
  return false;
}

}  // namespace tooldecode::mask
