#pragma once

#include <cstdint>
#include <memory>

#include <tooldecode/ebnf/lark_lexer.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE LarkLexer::LarkLexer(const LarkGraph& graph) : graph_(graph), places_(graph) {
  find_together();
  check_ignored();
  variants_.resize(places_.size());
  for (std::size_t place = 0; place < places_.size(); ++place) {
    if (together_[place].empty()) continue;  // unreachable
    find_variants(place);
  }
}

TOOLDECODE_INLINE const std::vector<LarkVariant>& LarkLexer::variants(std::size_t place) const {
  return variants_[place];
}

TOOLDECODE_INLINE const LarkLexeme& LarkLexer::lexeme(Id number) const {
  return number == graph_.lexemes().size() ? *graph_.ignored() : graph_.lexemes()[number];
}

TOOLDECODE_INLINE LarkMeeting LarkLexer::meeting(Id a, Id b) {
  if (a == b) return {true, false};
  const LarkLexeme &one = lexeme(a), &other = lexeme(b);
  if (!one.dfa || !other.dfa) return {one.is_json && other.is_json, false};
  if (one.literal && other.literal) {
    return {*one.literal == *other.literal, one.literal->size() > other.literal->size() &&
                                                one.literal->starts_with(*other.literal)};
  }
  if ((one.first & other.first).empty()) return {};
  const auto [known, fresh] = meetings_.try_emplace({a, b});
  if (fresh) known->second = find_meeting(*one.dfa, *other.dfa);
  return known->second;
}

TOOLDECODE_INLINE text::ByteSet LarkLexer::continuing(Id ended, Id other) {
  const LarkLexeme &one = lexeme(ended), &longer = lexeme(other);
  if (!one.dfa || !longer.dfa || (one.first & longer.first).empty()) return {};
  if (one.literal && longer.literal) {
    const bool goes_on =
        longer.literal->size() > one.literal->size() && longer.literal->starts_with(*one.literal);
    return goes_on ? text::ByteSet::of(longer.literal->substr(one.literal->size(), 1))
                   : text::ByteSet{};
  }
  const auto [known, fresh] = continuing_.try_emplace({ended, other});
  if (fresh) known->second = find_continuing(*one.dfa, *longer.dfa);
  return known->second;
}

TOOLDECODE_INLINE void LarkLexer::find_together() {
  together_.assign(places_.size(), PlaceSet(places_.size()));
  std::vector<std::pair<std::size_t, std::size_t>> work;
  const auto look_for = [&](const PlaceSet& set) {
    set.for_each([&](std::size_t place) {
      BuildBudget::spend(2 + places_.size() / 32);
      if (!together_[place].add(set)) return;
      set.for_each([&](std::size_t other) {
        if (other < place || !seen_.emplace(place, other).second) return;
        if (meeting(lexeme_at(place), lexeme_at(other)).is_shared) work.emplace_back(place, other);
      });
      if (seen_.size() > max_pairs) {
        throw Error(Errc::limit_exceeded, "", "too many terminals side by side");
      }
    });
  };
  look_for(places_.begins());
  while (!work.empty()) {
    const auto [one, other] = work.back();
    work.pop_back();
    PlaceSet next = places_.next(one);
    next.add(places_.next(other));
    look_for(next);
  }
}

TOOLDECODE_INLINE void LarkLexer::refuse(std::size_t place, Id other,
                                         const std::string& what) const {
  const LarkGraph::Node& node = graph_[places_.node(place)];
  throw Error(Errc::unsupported_keyword, "byte " + std::to_string(node.at),
              "the terminals " + lexeme(node.lexeme).name + " and " + lexeme(other).name +
                  " overlap: " + what);
}

TOOLDECODE_INLINE text::ByteSet LarkLexer::follow(std::size_t place) const {
  text::ByteSet all;
  bool has_terminals = false;
  places_.next(place).for_each([&](std::size_t next) {
    const LarkLexeme& one = lexeme(lexeme_at(next));
    all |= one.first;
    has_terminals = has_terminals || !one.is_json;
  });
  if (has_ignored() && has_terminals) all |= lexeme(ignored_lexeme()).first;
  return all;
}

TOOLDECODE_INLINE void LarkLexer::check_ignored() {
  if (!has_ignored()) return;
  find_ignored();
  text::ByteSet first;
  for (const LarkLexeme& one : graph_.lexemes()) first |= one.first;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    const Id one = lexeme_at(place);
    if (together_[place].empty()) continue;
    if (meeting(one, ignored_lexeme()).is_shared) {
      refuse(place, ignored_lexeme(), "a text of both is ignored in some places and not in others");
    }
    const text::ByteSet on = continuing(ignored_lexeme(), one);
    if (!(on & first).empty() || meeting(ignored_lexeme(), one).is_inside) {
      refuse(place, ignored_lexeme(), "what is ignored may go on as a terminal");
    }
    if (places_.begins().contains(place) && lexeme(one).may_be_empty) {
      refuse(place, ignored_lexeme(),
             "an empty terminal that begins a text has it ignored behind it");
    }
    bool has_json = false, has_terminals = false;
    places_.next(place).for_each([&](std::size_t next) {
      (lexeme(lexeme_at(next)).is_json ? has_json : has_terminals) = true;
    });
    if (has_json && has_terminals) {
      throw Error(Errc::unsupported_keyword,
                  "byte " + std::to_string(graph_[places_.node(place)].at),
                  "%ignore before a choice of %json and terminals is not supported");
    }
  }
}

TOOLDECODE_INLINE void LarkLexer::find_ignored() {
  const LarkLexeme& here = lexeme(ignored_lexeme());
  text::ByteSet first;
  for (const LarkLexeme& one : graph_.lexemes()) first |= one.first;
  const text::ByteSet on = find_continuing(*here.dfa, *here.dfa);
  if ((on & first).empty()) {
    // Several short texts are as good as one long one.
    ignored_ = {{here.dfa, {}}};
  } else {
    ignored_ = split_lexeme(here, {here.dfa.get()}, {}, first | here.first);
  }
}

TOOLDECODE_INLINE void LarkLexer::find_variants(std::size_t place) {
  const Id mine             = lexeme_at(place);
  const LarkLexeme& here    = lexeme(mine);
  const text::ByteSet after = follow(place);
  std::map<Id, bool> longer, lazy;
  together_[place].for_each([&](std::size_t other) {
    const Id theirs         = lexeme_at(other);
    const LarkLexeme& there = lexeme(theirs);
    if (here.is_json != there.is_json) {
      if (!(here.first & there.first).empty()) {
        refuse(place, theirs, "a lexer reads a value's first part with other terminals");
      }
      return;
    }
    if (!here.dfa || !there.dfa) return;
    const auto is_sure = [&] { return theirs == mine || places_.surely(place, other); };
    if (!here.is_lazy && !(continuing(mine, theirs) & after).empty()) {
      bool& all = longer.try_emplace(theirs, false).first->second;
      all       = all || is_sure();
    }
    if (there.is_lazy && theirs != mine) {
      const LarkMeeting met = meeting(mine, theirs);
      if (met.is_inside || (met.is_shared && !here.is_lazy)) {
        bool& all = lazy.try_emplace(theirs, false).first->second;
        all       = all || is_sure();
      }
    }
  });
  if (has_ignored() && !here.is_lazy && here.dfa &&
      !(continuing(mine, ignored_lexeme()) & after).empty()) {
    longer[ignored_lexeme()] = !places_.begins().contains(place);
  }
  if (here.is_json && !(here.more & after).empty()) {
    throw Error(Errc::unsupported_keyword, "byte " + std::to_string(graph_[places_.node(place)].at),
                "%json of a number before what the number might go on with");
  }
  if (longer.empty() && lazy.empty()) return;
  // If another lexeme competes in only some contexts, no set of texts is right for all of them.
  using Automata = std::vector<const text::Dfa*>;
  std::vector<Id> key{mine};
  const auto automata = [&](const std::map<Id, bool>& found) {
    Automata all;
    for (const auto& [number, is_sure] : found) {
      if (!is_sure) refuse(place, number, "only the rules around them tell which is looked for");
      all.push_back(lexeme(number).dfa.get());
      key.push_back(number);
    }
    key.push_back(~Id{0});
    return all;
  };
  const Automata goes_on = automata(longer), ends = automata(lazy);
  std::string bytes;
  after.for_each([&](std::uint8_t byte) { bytes += static_cast<char>(byte); });
  const auto [known, fresh] = split_.try_emplace({key, bytes});
  if (fresh) known->second = split_lexeme(here, goes_on, ends, after);
  variants_[place] = known->second;
  if (variants_[place].empty())
    variants_[place].push_back({std::make_shared<text::Dfa>(std::vector<text::Dfa::Row>{}), {}});
}

}  // namespace tooldecode::ebnf
