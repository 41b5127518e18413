/// \file
/// make_grammar_sampler: llama.cpp's grammar sampler over this library's automata.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/adapters/llama_cpp_sampler.hpp>
#include <tooldecode/adapters/llama_cpp_vocabulary.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <llama.h>

namespace tooldecode::llama_cpp {

/// When a lazy grammar begins. Until then every token is allowed.
struct GrammarTriggers {
  /// Regular expressions of ECMAScript, searched in the text so far, or matched with all of it if
  /// they begin with ^ and end with $. The grammar reads from the first group that is not empty.
  std::vector<std::string> patterns;
  std::vector<llama_token> tokens;  ///< the grammar reads from the token on
};

/// The vocabulary as llama.cpp's grammars see it: a control token is its text, and all tokens of
/// `llama_vocab_is_eog` end the text.
///
/// \par Complexity  O(bytes of the tokens)
/// \par Errors      as make_vocabulary
[[nodiscard]] inline Vocabulary make_text_vocabulary(const llama_vocab* vocab) {
  const std::int32_t count = llama_vocab_n_tokens(vocab);
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE || count <= 0) {
    throw Error(Errc::malformed_vocabulary, "llama_vocab", "must have tokens");
  }
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(static_cast<std::size_t>(count));
  VocabularyOptions options;
  for (llama_token token = 0; token < count; ++token) {
    std::string text = detail::piece_of(vocab, token);
    if (llama_vocab_is_eog(vocab, token)) {
      options.end_tokens.push_back(token);
      entries.push_back({std::move(text), TokenType::control});
    } else if (text.empty() || text.front() == '\0') {
      entries.push_back({llama_vocab_get_text(vocab, token), TokenType::unused});
    } else {
      entries.push_back({std::move(text), TokenType::normal});
    }
  }
  return Vocabulary(entries, std::move(options));
}

/// A grammar of llama-server for an answer with a required call, without the text that it lets stand
/// before the call; other grammars as they are. Reasoning before the call stays.
///
/// Such a root ends with a rule `until-N`, any text without what opens a call, and a rule of calls.
///
/// \par Complexity  O(bytes of the grammar)
[[nodiscard]] inline std::string without_text_before_calls(std::string_view grammar) {
  const std::string whole(grammar);
  constexpr std::string_view head = "root ::= ";
  std::size_t begin               = 0;
  while (grammar.substr(begin, head.size()) != head) {
    begin = grammar.find('\n', begin);
    if (begin++ == grammar.npos) return whole;
  }
  const std::string_view root = grammar.substr(begin, grammar.find('\n', begin) - begin);
  const std::size_t text      = root.rfind(" until-");
  if (text == root.npos) return whole;
  const std::size_t after = root.find(' ', text + 1);
  if (after == root.npos) return whole;
  std::string_view rule = root.substr(text + 7, after - text - 7);
  if (rule.ends_with('?')) rule.remove_suffix(1);
  std::string_view calls = root.substr(after + 1);
  if (calls.starts_with("space ")) calls.remove_prefix(6);
  const bool is_number = !rule.empty() && rule.find_first_not_of("0123456789") == rule.npos;
  const bool are_calls =
      calls.find("tool-call") != calls.npos &&
      calls.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == calls.npos;
  if (!is_number || !are_calls) return whole;
  return whole.substr(0, begin + text) + whole.substr(begin + after);
}

/// A model's vocabulary, and the last constraints that were built over it: a server makes a sampler
/// for each request, often of the same grammar.
///
/// \par Threads     const members may run concurrently
class GrammarCache {
 public:
  /// \param capacity     constraints that are kept
  /// \param budget       see VocabularyIndex
  /// \param mask_limits  see VocabularyIndex
  explicit GrammarCache(const llama_vocab* vocab, std::size_t capacity = 32,
                        std::size_t budget             = VocabularyIndex::default_budget,
                        const BuildLimits& mask_limits = {});

  /// Whether this is the vocabulary that the cache was made for. A freed model's address may belong
  /// to another model later, so tokens are compared too.
  [[nodiscard]] bool is_of(const llama_vocab* vocab) const;

  /// The constraint of a GBNF grammar, for a new text: in new memory if the old has grown past the
  /// budget.
  ///
  /// Errors: those of Grammar::ebnf and Constraint; Error{unknown_token} for a token in angle
  /// brackets, which a grammar of texts cannot tell from its text.
  [[nodiscard]] std::shared_ptr<const Constraint> get(std::string_view grammar,
                                                      std::string_view root) const;

 private:
  struct Entry {
    std::string grammar, root;
    std::shared_ptr<const Constraint> constraint;
  };

  static std::vector<std::string> sample(const llama_vocab* vocab);
  [[nodiscard]] bool has_same_ends(const llama_vocab* vocab) const;

  const llama_vocab* vocab_;
  std::vector<std::string> sampled_;  // texts of some tokens
  VocabularyIndex index_;
  std::size_t capacity_;
  mutable std::mutex mutex_;
  mutable std::list<Entry> entries_;  // most recently used first
};

namespace detail {

/// The triggers of a lazy grammar, compiled; shared by a sampler and its clones.
class TriggerPatterns {
 public:
  explicit TriggerPatterns(GrammarTriggers triggers);

  [[nodiscard]] bool contains(llama_token token) const;
  /// Where the grammar begins in a text; nullopt if it does not yet.
  [[nodiscard]] std::optional<std::size_t> find(const std::string& text) const;

 private:
  struct Pattern {
    std::regex regex;
    bool is_whole;
  };
  std::vector<Pattern> patterns_;
  std::vector<llama_token> tokens_;
};

/// A grammar's text so far.
///
/// If a mask or a token costs more than its limit, the answer fails: only end tokens stay, and the
/// reason is on stderr. An exception would end the program, such as a server, for all its answers.
class GrammarSampler {
 public:
  GrammarSampler(std::shared_ptr<const Constraint> constraint,
                 std::shared_ptr<const TriggerPatterns> triggers);

  void accept(llama_token token);
  void apply(llama_token_data_array& candidates);
  void reset();

  static llama_sampler* make(GrammarSampler sampler);

 private:
  // Goes on with new memory where the constraint's has grown past its budget.
  void renew();
  void fail(const Error& error);
  [[nodiscard]] bool is_end(llama_token token) const;
  [[nodiscard]] bool allows(llama_token token);
  void fill();
  void take(llama_token token, std::string_view bytes);

  std::shared_ptr<const Constraint> constraint_;
  std::shared_ptr<const TriggerPatterns> triggers_;  // null: not lazy
  Constraint::State state_;
  bool waits_ = false;  // for a trigger
  std::string text_;    // while it waits
  TokenMask mask_;      // of state_, if is_filled_; of the end tokens after a failure
  bool is_filled_  = false;
  bool has_failed_ = false;
};

}  // namespace detail

inline GrammarCache::GrammarCache(const llama_vocab* vocab, std::size_t capacity,
                                  std::size_t budget, const BuildLimits& mask_limits)
    : vocab_(vocab),
      sampled_(sample(vocab)),
      index_(make_text_vocabulary(vocab), budget, mask_limits),
      capacity_(std::max<std::size_t>(capacity, 1)) {}

inline bool GrammarCache::is_of(const llama_vocab* vocab) const {
  return vocab == vocab_ &&
         static_cast<std::size_t>(llama_vocab_n_tokens(vocab)) == index_.vocabulary().size() &&
         sample(vocab) == sampled_ && has_same_ends(vocab);
}

inline std::vector<std::string> GrammarCache::sample(const llama_vocab* vocab) {
  constexpr std::int32_t most = 64;
  const std::int32_t count    = llama_vocab_n_tokens(vocab);
  std::vector<std::string> texts;
  for (llama_token token = 0; token < count; token += 1 + count / most) {
    texts.push_back(detail::piece_of(vocab, token));
  }
  return texts;
}

inline bool GrammarCache::has_same_ends(const llama_vocab* vocab) const {
  for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    if (llama_vocab_is_eog(vocab, token) != index_.vocabulary().is_end(token)) return false;
  }
  return true;
}

inline std::shared_ptr<const Constraint> GrammarCache::get(std::string_view grammar,
                                                           std::string_view root) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.grammar == grammar && entry.root == root;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    const auto fresh = std::make_shared<Constraint>(*found->constraint);
    fresh->reset();
    if (fresh->initial().memory != found->constraint->initial().memory) found->constraint = fresh;
    return found->constraint;
  }
  const auto made =
      std::make_shared<const Constraint>(index_, Grammar::ebnf(grammar, {.root = root}));
  entries_.push_front({std::string(grammar), std::string(root), made});
  if (entries_.size() > capacity_) entries_.pop_back();
  return made;
}

namespace detail {

inline TriggerPatterns::TriggerPatterns(GrammarTriggers triggers)
    : tokens_(std::move(triggers.tokens)) {
  for (const std::string& pattern : triggers.patterns) {
    try {
      patterns_.push_back({std::regex(pattern), pattern.size() > 1 && pattern.starts_with('^') &&
                                                    pattern.ends_with('$')});
    } catch (const std::regex_error& error) {
      throw Error(Errc::malformed_pattern, pattern, error.what());
    }
  }
}

inline bool TriggerPatterns::contains(llama_token token) const {
  return std::find(tokens_.begin(), tokens_.end(), token) != tokens_.end();
}

inline std::optional<std::size_t> TriggerPatterns::find(const std::string& text) const {
  for (const Pattern& pattern : patterns_) {
    std::smatch match;
    if (!(pattern.is_whole && std::regex_match(text, match, pattern.regex)) &&
        !std::regex_search(text, match, pattern.regex)) {
      continue;
    }
    std::size_t group = 1;
    while (group < match.size() && match.length(group) == 0) ++group;
    return static_cast<std::size_t>(match.position(group < match.size() ? group : 0));
  }
  return std::nullopt;
}

inline GrammarSampler::GrammarSampler(std::shared_ptr<const Constraint> constraint,
                                      std::shared_ptr<const TriggerPatterns> triggers)
    : constraint_(std::move(constraint)),
      triggers_(std::move(triggers)),
      state_(constraint_->initial()),
      waits_(triggers_ != nullptr),
      mask_(constraint_->vocabulary_size()) {}

inline void GrammarSampler::reset() {
  try {
    renew();
  } catch (const Error& error) {  // the old memory stays in use
    std::fprintf(stderr, "tooldecode: a grammar keeps its memory: %s\n", error.what());
  }
  state_      = constraint_->initial();
  waits_      = triggers_ != nullptr;
  is_filled_  = false;
  has_failed_ = false;
  text_.clear();
}

inline void GrammarSampler::renew() {
  Constraint copy = *constraint_;
  copy.reset();
  if (copy.initial() == constraint_->initial()) return;
  constraint_ = std::make_shared<const Constraint>(std::move(copy));
}

inline bool GrammarSampler::is_end(llama_token token) const {
  return constraint_->vocabulary().is_end(token);
}

inline void GrammarSampler::fail(const Error& error) {
  std::fprintf(stderr, "tooldecode: an answer ends, as its grammar failed: %s\n", error.what());
  has_failed_ = true;
  mask_       = TokenMask(constraint_->vocabulary_size());
  for (const TokenId end : constraint_->vocabulary().end_tokens()) mask_.insert(end);
}

inline bool GrammarSampler::allows(llama_token token) {
  if (token < 0 || static_cast<std::size_t>(token) >= constraint_->vocabulary_size()) return false;
  try {
    if (!has_failed_ && is_end(token)) return constraint_->is_accepting(state_);
    if (!has_failed_) return constraint_->advance(state_, token).has_value();
  } catch (const Error& error) {
    fail(error);
  }
  return is_end(token);
}

inline void GrammarSampler::fill() {
  if (is_filled_ || has_failed_) return;
  try {
    constraint_->fill_mask(state_, mask_.words());
    is_filled_ = true;
  } catch (const Error& error) {
    fail(error);
  }
}

inline void GrammarSampler::apply(llama_token_data_array& candidates) {
  if (waits_) return;
  constexpr float never = -std::numeric_limits<float>::infinity();
  if (candidates.size == 1) {
    if (!allows(candidates.data[0].id)) candidates.data[0].logit = never;
    return;
  }
  fill();
  for (std::size_t i = 0; i < candidates.size; ++i) {
    const llama_token token = candidates.data[i].id;
    if (static_cast<std::size_t>(token) >= constraint_->vocabulary_size() ||
        !mask_.contains(token)) {
      candidates.data[i].logit = never;
    }
  }
}

inline void GrammarSampler::accept(llama_token token) {
  const auto bytes_of = [&]() -> std::string_view {
    const Vocabulary& vocabulary = constraint_->vocabulary();
    if (static_cast<std::size_t>(token) >= vocabulary.size()) return {};
    // As text before the grammar begins, or as its trigger, an end token is its name.
    return vocabulary.is_end(token) ? vocabulary.name(token) : vocabulary.bytes(token);
  };
  if (waits_) {
    if (triggers_->contains(token)) {
      waits_ = false;
      text_.clear();
      return take(token, bytes_of());
    }
    text_ += bytes_of();
    const auto begin = triggers_->find(text_);
    if (!begin) return;
    waits_                  = false;
    const std::string whole = std::exchange(text_, {});
    return take(token, std::string_view(whole).substr(*begin));
  }
  if (has_failed_) return;
  if (is_end(token)) {
    if (constraint_->is_accepting(state_)) return;
    throw std::runtime_error("tooldecode: the grammar's text cannot end here, before token " +
                             std::to_string(token));
  }
  take(token, bytes_of());
}

inline void GrammarSampler::take(llama_token token, std::string_view bytes) {
  std::optional<Constraint::State> next;
  try {
    next = constraint_->advance_bytes(state_, bytes);
  } catch (const Error& error) {
    return fail(error);
  }
  if (!next) {
    throw std::runtime_error("tooldecode: the grammar cannot read token " + std::to_string(token) +
                             ", text: " + std::string(bytes));
  }
  state_     = *next;
  is_filled_ = false;
}

inline llama_sampler* GrammarSampler::make(GrammarSampler sampler) {
  static const auto of = [](const llama_sampler* one) -> GrammarSampler& {
    return *static_cast<GrammarSampler*>(one->ctx);
  };
  static llama_sampler_i interface = [] {
    llama_sampler_i all{};
    all.name   = [](const llama_sampler*) { return "tooldecode-grammar"; };
    all.accept = [](llama_sampler* one, llama_token token) { of(one).accept(token); };
    all.apply  = [](llama_sampler* one, llama_token_data_array* candidates) {
      of(one).apply(*candidates);
    };
    all.reset = [](llama_sampler* one) { of(one).reset(); };
    all.clone = [](const llama_sampler* one) { return make(of(one)); };
    all.free  = [](llama_sampler* one) { delete &of(one); };
    set_copy_state(all, [](const llama_sampler* from, llama_sampler* to) { of(to) = of(from); });
    return all;
  }();
  auto owned             = std::make_unique<GrammarSampler>(std::move(sampler));
  llama_sampler* created = llama_sampler_init(&interface, owned.get());
  static_cast<void>(owned.release());
  return created;
}

}  // namespace detail

/// Makes a sampler that does what those of `llama_sampler_init_grammar` and
/// `llama_sampler_init_grammar_lazy_patterns` do: it removes the tokens that the grammar cannot
/// read, and `llama_sampler_accept` throws std::runtime_error for such a token. A list of one
/// candidate is judged without a mask.
///
/// `llama_sampler_reset` begins a new text, in new memory where the constraint has grown past its
/// budget.
///
/// \param triggers  of a lazy grammar; nullopt: the grammar begins at once
/// \par Complexity  O(candidates) and a mask of the constraint; a lazy grammar's patterns are
///                  searched in the whole text after each token
/// \par Threads     one thread at a time; samplers share the constraint
/// \par Errors      Error{malformed_pattern} for a pattern that is no regular expression
[[nodiscard]] inline llama_sampler* make_grammar_sampler(
    std::shared_ptr<const Constraint> constraint, const std::optional<GrammarTriggers>& triggers) {
  return detail::GrammarSampler::make(
      {std::move(constraint),
       triggers ? std::make_shared<const detail::TriggerPatterns>(*triggers) : nullptr});
}

}  // namespace tooldecode::llama_cpp
