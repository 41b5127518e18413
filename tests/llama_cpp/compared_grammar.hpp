/// \file
/// Included by the compiler's option -include before a test of llama.cpp's that reads grammars: each
/// grammar is read by this library too, and after each character both must say the same of the text
/// so far, whether it may go on and whether it may end. See ../llama_cpp.sh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/text/code_points.hpp>

#include <llama-grammar.h>
#include <support/byte_vocabulary.hpp>

namespace tooldecode::test {

/// A grammar of llama.cpp's as this library reads it, and where the text is.
struct ComparedGrammar {
  std::shared_ptr<const Constraint> constraint;
  llama_grammar_stacks initial;  // tests go back to the beginning by assigning theirs
  std::optional<Constraint::State> state;
  std::string source, text;
};

/// All grammars of a test. At its end the counts are printed, and a difference ends it with 3.
class ComparedGrammars {
 public:
  static ComparedGrammars& all() {
    static ComparedGrammars one;
    return one;
  }

  void made(llama_grammar* theirs, const char* source, const char* root) {
    ++grammars_;
    grammars_made_.erase(theirs);
    try {
      ComparedGrammar ours;
      ours.constraint =
          std::make_shared<const Constraint>(index_, Grammar::ebnf(source, {.root = root}));
      ours.source = source;
      if (theirs == nullptr) {
        ++only_here_;
        std::fprintf(stderr, "compared: read by tooldecode alone:\n%s\n", source);
        return;
      }
      ours.initial           = llama_grammar_get_stacks(theirs);
      ours.state             = ours.constraint->initial();
      grammars_made_[theirs] = std::move(ours);
      compare(grammars_made_.at(theirs), theirs);
    } catch (const std::exception& error) {
      if (theirs == nullptr) return;
      ++refused_;
      std::fprintf(stderr, "compared: refused by tooldecode: %s\n%s\n", error.what(), source);
    }
  }

  /// What `accept` leaves of llama.cpp's stacks is compared with the state after the same text.
  template <class Accept>
  void read(llama_grammar* theirs, const std::string& bytes, Accept accept) {
    const auto found = grammars_made_.find(theirs);
    if (found == grammars_made_.end()) return accept();
    ComparedGrammar& ours = found->second;
    if (llama_grammar_get_stacks(theirs) == ours.initial) {
      ours.state = ours.constraint->initial();
      ours.text.clear();
    }
    ours.text += bytes;
    if (ours.state) ours.state = ours.constraint->advance_bytes(*ours.state, bytes);
    ++characters_;
    try {
      accept();
    } catch (...) {
      compare(ours, theirs);
      throw;
    }
    compare(ours, theirs);
  }

 private:
  ComparedGrammars() = default;
  ~ComparedGrammars() {
    std::fprintf(
        stderr,
        "compared: %zu grammars, %zu characters; refused by tooldecode %zu, read by it alone "
        "%zu, differences %zu\n",
        grammars_, characters_, refused_, only_here_, differences_);
    if (differences_ > 0) std::_Exit(3);
  }

  void compare(ComparedGrammar& ours, llama_grammar* theirs) {
    const llama_grammar_stacks& stacks = llama_grammar_get_stacks(theirs);
    const bool ends =
        std::any_of(stacks.begin(), stacks.end(), [](const auto& stack) { return stack.empty(); });
    const bool goes_on   = !stacks.empty();
    const bool ends_here = ours.state && ours.constraint->is_accepting(*ours.state);
    if (ends == ends_here && goes_on == ours.state.has_value()) return;
    ++differences_;
    std::fprintf(
        stderr, "compared: DIFFERENT after '%s': llama.cpp %s%s, tooldecode %s%s, grammar:\n%s\n",
        ours.text.c_str(), goes_on ? "reads it" : "refuses it", ends ? ", may end" : "",
        ours.state ? "reads it" : "refuses it", ends_here ? ", may end" : "", ours.source.c_str());
    ours.state.reset();
  }

  VocabularyIndex index_{byte_vocabulary()};
  std::map<llama_grammar*, ComparedGrammar> grammars_made_;
  std::size_t grammars_ = 0, characters_ = 0, refused_ = 0, only_here_ = 0, differences_ = 0;
};

template <class... Arguments>
llama_grammar* make_compared(Arguments... arguments) {
  llama_grammar* const theirs = llama_grammar_init_impl(arguments...);
  if constexpr (sizeof...(arguments) == 8) {
    const auto all = std::make_tuple(arguments...);
    ComparedGrammars::all().made(theirs, std::get<1>(all), std::get<2>(all));
  }
  return theirs;
}

inline void accept_compared(llama_grammar* grammar, std::uint32_t character) {
  std::string bytes;
  text::append_utf8(bytes, character);
  ComparedGrammars::all().read(grammar, bytes, [&] { llama_grammar_accept(grammar, character); });
}

inline void accept_token_compared(llama_grammar& grammar, llama_token token,
                                  const std::string& piece) {
  ComparedGrammars::all().read(&grammar, piece,
                               [&] { llama_grammar_accept_token(grammar, token, piece); });
}

}  // namespace tooldecode::test

#define llama_grammar_init_impl tooldecode::test::make_compared
#define llama_grammar_accept tooldecode::test::accept_compared
#define llama_grammar_accept_token tooldecode::test::accept_token_compared
