#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/text/speller.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE Dfa::State RowIndex::intern(std::vector<Dfa::SparseRow>& rows,
                                              std::vector<Dfa::Edge> edges) {
  std::uint64_t hash = edges.size();
  for (const Dfa::Edge& edge : edges) {
    hash = (hash ^ (std::uint64_t{edge.to} << 16 | std::uint64_t{edge.first} << 8 | edge.last)) *
           0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  for (;; ++hash) {
    const auto [known, fresh] = known_.emplace(hash, static_cast<Dfa::State>(rows.size()));
    if (fresh) rows.push_back({.edges = std::move(edges)});
    if (fresh || rows[known->second].edges == edges) return known->second;
  }
}

}  // namespace tooldecode::text::detail

namespace tooldecode::text {

TOOLDECODE_INLINE Speller::Runs Speller::runs(const TextDfa& text, TextDfa::State state,
                                              Dfa::State offset) {
  Runs all;
  for (std::size_t c = 0; c < text.classes().size(); ++c) {
    const TextDfa::State to = text.rows()[state].next[c];
    if (to == TextDfa::dead) continue;
    for (const auto& [first, last] : text.classes()[c].ranges()) {
      all.push_back({first, last, to + offset});
    }
  }
  std::sort(all.begin(), all.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  return joined(std::move(all));
}

TOOLDECODE_INLINE void Speller::utf8(const Runs& runs, Edges& edges) {
  ascii(runs, 0, 0x7F, edges);
  beyond_ascii(runs, edges);
}

TOOLDECODE_INLINE void Speller::literal(const Runs& runs, Edges& edges) {
  const auto quote = static_cast<char32_t>(static_cast<unsigned char>(spelling_.quote));
  ascii(runs, 0x20, std::min<char32_t>(quote, '\\') - 1, edges);
  ascii(runs, std::min<char32_t>(quote, '\\') + 1, std::max<char32_t>(quote, '\\') - 1, edges);
  ascii(runs, std::max<char32_t>(quote, '\\') + 1, 0x7F, edges);
  beyond_ascii(runs, edges);
  add(edges, '\\', intern(escape(runs)));
}

TOOLDECODE_INLINE Speller::Tail Speller::tail(std::size_t end, std::size_t count) {
  return Tail(digits_).subspan(end - count, count);
}

TOOLDECODE_INLINE Speller::Runs Speller::joined(Runs all) {
  Runs result;
  for (const Run& run : all) {
    if (!result.empty() && result.back().to == run.to && result.back().last + 1 == run.first) {
      result.back().last = run.last;
    } else {
      result.push_back(run);
    }
  }
  return result;
}

TOOLDECODE_INLINE Speller::Runs Speller::part(const Runs& runs, char32_t first, char32_t last) {
  Runs result;
  auto run = std::lower_bound(runs.begin(), runs.end(), first,
                              [](const Run& r, char32_t c) { return r.last < c; });
  for (; run != runs.end() && run->first <= last; ++run) {
    result.push_back({std::max(run->first, first), std::min(run->last, last), run->to});
  }
  return result;
}

TOOLDECODE_INLINE Dfa::State Speller::at(const Runs& runs, char32_t c) {
  const Runs one = part(runs, c, c);
  return one.empty() ? Dfa::dead : one[0].to;
}

TOOLDECODE_INLINE void Speller::add(Edges& edges, char byte, Dfa::State to) {
  const auto b = static_cast<std::uint8_t>(byte);
  if (to != Dfa::dead) edges.push_back({b, b, to});
}

TOOLDECODE_INLINE void Speller::ascii(const Runs& runs, char32_t first, char32_t last,
                                      Edges& edges) {
  if (first > last) return;
  for (const Run& run : part(runs, first, last)) {
    edges.push_back(
        {static_cast<std::uint8_t>(run.first), static_cast<std::uint8_t>(run.last), run.to});
  }
}

TOOLDECODE_INLINE void Speller::beyond_ascii(const Runs& runs, Edges& edges) {
  number(part(runs, 0x80, 0x7FF), {5, 0xC0}, tail(utf8_end, 1), 0, edges);
  number(part(runs, 0x800, 0xFFFF), {4, 0xE0}, tail(utf8_end, 2), 0, edges);
  number(part(runs, 0x10000, 0x10FFFF), {3, 0xF0}, tail(utf8_end, 3), 0, edges);
}

TOOLDECODE_INLINE Speller::Edges Speller::escape(const Runs& runs) {
  Edges edges;
  const bool python = spelling_.syntax == ValueSyntax::python;
  const auto letter = [&](char byte, char32_t meaning) { add(edges, byte, at(runs, meaning)); };
  letter('\\', '\\'), letter('n', '\n'), letter('r', '\r'), letter('t', '\t');
  if (spelling_.every || spelling_.quote == '"') letter('"', '"');
  if (python && (spelling_.every || spelling_.quote == '\'')) letter('\'', '\'');
  if (spelling_.every || !python) letter('b', '\b'), letter('f', '\f');
  if (spelling_.every && python) letter('a', '\a'), letter('v', '\v');
  if (spelling_.every && !python) letter('/', '/');
  const Runs coded = spelling_.every ? runs : without_letters(runs);
  if (!python) {
    add(edges, 'u', intern(json_unicode(coded)));
    return edges;
  }
  const auto hexadecimal = [&](char byte, char32_t first, char32_t last, const Digit& digit,
                               std::size_t more, std::string_view before) {
    Edges inside;
    number(part(coded, first, last), digit, tail(hexadecimal_end, more), 0, inside);
    add(edges, byte, after(before, intern(std::move(inside))));
  };
  const bool every = spelling_.every;
  hexadecimal('x', 0, 0xFF, {4, 0, true}, 1, "");
  hexadecimal('u', every ? 0 : 0x100, 0xFFFF, {4, 0, true}, 3, "");
  hexadecimal('U', every ? 0 : 0x10000, 0x10FFFF, {1, 0, true}, 5, "00");
  return edges;
}

TOOLDECODE_INLINE Speller::Runs Speller::without_letters(const Runs& runs) const {
  Runs result;
  const auto keep = [&](char32_t first, char32_t last) {
    const Runs some = part(runs, first, last);
    result.insert(result.end(), some.begin(), some.end());
  };
  const bool python = spelling_.syntax == ValueSyntax::python;
  keep(0, python ? 8 : 7), keep(0xB, python ? 0xC : 0xB), keep(0xE, 0x1F);
  keep(0x7F, CodePointSet::last_code_point);
  return joined(std::move(result));
}

TOOLDECODE_INLINE Speller::Edges Speller::json_unicode(const Runs& runs) {
  Edges edges, below;
  const Digit hexadecimal{4, 0, true};
  number(part(runs, 0, 0xCFFF), hexadecimal, tail(hexadecimal_end, 3), 0, edges);
  number(part(runs, 0xD000, 0xD7FF), hexadecimal, tail(hexadecimal_end, 2), 0xD000, below);
  number(part(runs, 0x10000, 0x10FFFF), {2, 8, true}, tail(surrogate_end, 6), 0x10000, below);
  write({0, 0xD, true}, 0, 1, intern(std::move(below)), edges);
  number(part(runs, 0xE000, 0xFFFF), hexadecimal, tail(hexadecimal_end, 3), 0, edges);
  return edges;
}

TOOLDECODE_INLINE void Speller::number(const Runs& runs, const Digit& digit, Tail tail,
                                       char32_t base, Edges& edges) {
  std::size_t run = 0;
  number(runs, run, digit, tail, base, edges);
}

TOOLDECODE_INLINE void Speller::number(const Runs& runs, std::size_t& run, const Digit& digit,
                                       Tail tail, char32_t base, Edges& edges) {
  char32_t block = 1;
  for (const Digit& more : tail) block <<= more.bits;
  const char32_t end = base + (block << digit.bits);
  for (char32_t from = base; from < end;) {
    while (run < runs.size() && runs[run].last < from) ++run;
    if (run == runs.size() || runs[run].first >= end) return;
    if (runs[run].first > from) from += (runs[run].first - from) / block * block;
    const char32_t whole =
        runs[run].first <= from ? (std::min<char32_t>(runs[run].last + 1, end) - from) / block : 0;
    const unsigned value = (from - base) / block;
    if (whole > 0) {
      write(digit, value, whole, any(tail, runs[run].to), edges);
    } else {
      Edges inside;
      number(runs, run, tail[0], tail.subspan(1), from, inside);
      write(digit, value, 1, after(tail[0].before, intern(std::move(inside))), edges);
    }
    from += std::max<char32_t>(whole, 1) * block;
  }
}

TOOLDECODE_INLINE Dfa::State Speller::any(Tail tail, Dfa::State to) {
  if (tail.empty()) return to;
  // The last digits of a surrogate are those of any hexadecimal number.
  const auto at         = static_cast<std::size_t>(tail.data() - digits_.data());
  const auto place      = at >= surrogate_end - 2 ? hexadecimal_end - tail.size() : at;
  const std::size_t key = place * targets_ + to;
  if (any_.size() <= key) any_.resize(digits_.size() * targets_, Dfa::dead);
  if (any_[key] != Dfa::dead) return any_[key];
  Edges edges;
  write(tail[0], 0, 1U << tail[0].bits, any(tail.subspan(1), to), edges);
  return any_[key] = after(tail[0].before, add_row(std::move(edges)));
}

TOOLDECODE_INLINE void Speller::write(const Digit& digit, unsigned value, unsigned count,
                                      Dfa::State to, Edges& edges) {
  if (to == Dfa::dead) return;
  const unsigned first = digit.base + value, last = first + count - 1;
  const auto range = [&](unsigned from, unsigned until) {
    edges.push_back({static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(until), to});
  };
  if (!digit.hexadecimal) return range(first, last);
  if (first < 10) range('0' + first, '0' + std::min(last, 9U));
  if (last < 10) return;
  const unsigned min = std::max(first, 10U) - 10;
  range('a' + min, 'a' + last - 10);
  range('A' + min, 'A' + last - 10);
}

TOOLDECODE_INLINE Dfa::State Speller::after(std::string_view bytes, Dfa::State to) {
  if (to == Dfa::dead) return to;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    Edges one;
    add(one, bytes[i], to);
    to = intern(std::move(one));
  }
  return to;
}

TOOLDECODE_INLINE Dfa::State Speller::add_row(Edges edges) {
  rows_.push_back({.edges = std::move(edges)});
  return static_cast<Dfa::State>(rows_.size() - 1);
}

TOOLDECODE_INLINE Dfa::State Speller::intern(Edges edges) {
  return edges.empty() ? Dfa::dead : index_.intern(rows_, std::move(edges));
}

}  // namespace tooldecode::text
