/// \file
/// The vocabularies and constraints behind tooldecode.h.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain_refusal.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::c_interface {

/// Shared by a vocabulary's handle and its constraints.
struct Tokens {
  Tokens(const Vocabulary& vocabulary, std::size_t budget)
      : index(vocabulary, budget == 0 ? VocabularyIndex::default_budget : budget) {}

  void set(const Tokenizer& from) {
    tokenizer = from;
    forced.emplace(index, [from](std::string_view text) {
      return from.encode(text, {.parse_special = true});
    });
  }

  VocabularyIndex index;
  std::optional<Tokenizer> tokenizer{};
  std::optional<FastForwardTokens> forced{};
};

/// Makes a vocabulary with the caller's options.
///
/// \param file  null if there is only `vocabulary`
[[nodiscard]] inline std::shared_ptr<const Tokens> make_tokens(Vocabulary vocabulary,
                                                               const Tokenizer* file,
                                                               const td_vocabulary_options* given) {
  td_vocabulary_options options{};
  if (given != nullptr) options = fields_of(given, "options");
  if (options.end_tokens != nullptr) {
    vocabulary = vocabulary.with_end_tokens(
        {options.end_tokens, options.end_tokens + options.end_token_count});
  }
  if (options.size != 0) vocabulary = vocabulary.with_size(options.size);
  auto tokens = std::make_shared<Tokens>(vocabulary, options.memory_bytes);
  if (file != nullptr) tokens->set(*file);
  return tokens;
}

/// A JSON Schema's text and the options that it is built with.
struct SchemaText {
  std::string text;
  SchemaOptions options;
};

/// The result of building a specification.
struct Built {
  Constraint constraint;
  std::optional<ToolCallFSM> calls{};          // if answers may call tools
  std::shared_ptr<const SchemaText> schema{};  // if it is the constraint of a schema
};

/// Builds the constraint of a JSON Schema.
[[nodiscard]] inline Built build_schema(const VocabularyIndex& index, SchemaText schema) {
  Constraint constraint(index, Grammar::json_schema(schema.text, schema.options));
  return {std::move(constraint), {}, std::make_shared<const SchemaText>(std::move(schema))};
}

/// A copy of a specification and its texts.
///
/// \par Errors      Refusal for a required field that is null
class Specification {
 public:
  explicit Specification(const td_specification* from) : fields_(fields_of(from, "specification")) {
    keep(fields_.text, "text");
    keep(fields_.text_schema, "text_schema");
    for (const char** name : {&fields_.root, &fields_.format, &fields_.tool_name,
                              &fields_.reasoning_begin, &fields_.reasoning_end}) {
      if (*name != nullptr) *name = kept_.emplace_back(*name).c_str();
    }
    if (fields_.kind != TD_CHOICE) fields_.choice_count = 0;
    require_array(fields_.choices, fields_.choice_count, "choices");
    for (std::size_t i = 0; i < fields_.choice_count; ++i) {
      const std::string place = "choices/" + std::to_string(i);
      choices_.emplace_back(view(fields_.choices[i], place.c_str()));
    }
    fields_.choices = nullptr;
  }
  Specification(const Specification&)            = delete;  // fields_ points into its texts
  Specification& operator=(const Specification&) = delete;

  /// Builds the constraint within the limits of the specification.
  ///
  /// \param cancelled  see BuildLimits; may be null
  [[nodiscard]] Built build(const VocabularyIndex& index,
                            const std::atomic<bool>* cancelled) const {
    BuildLimits limits = this->limits();
    limits.cancelled   = cancelled;
    const BuildBudget budget(limits);
    BuildBudget::spend(0);
    const std::string_view text = view(fields_.text, "text");
    switch (fields_.kind) {
      case TD_TOOLS:
        return tools(index, text);
      case TD_JSON_SCHEMA:
        return build_schema(index, {std::string(text), schema_options()});
      case TD_REGEX:
        return {Constraint(index, Grammar::regex(text, limits))};
      case TD_EBNF:
        return {Constraint(index, Grammar::ebnf(text, {.root       = or_else(fields_.root, "root"),
                                                       .vocabulary = &index.vocabulary(),
                                                       .limits     = limits}))};
      case TD_CHOICE:
        return {Constraint(index, Grammar::choice(choices_))};
      case TD_STRUCTURAL_TAG:
        return {Constraint(index, Grammar::structural_tag(text, {.vocabulary = &index.vocabulary(),
                                                                 .limits     = limits}))};
      case TD_LARK:
        return {Constraint(
            index, Grammar::lark(text, {.vocabulary = &index.vocabulary(), .limits = limits}))};
      default:
        throw Error(Errc::invalid_option, "kind", fields_.kind, "must be a kind of constraint");
    }
  }

 private:
  static std::string_view or_else(const char* text, std::string_view other) {
    return text != nullptr ? std::string_view(text) : other;
  }

  void keep(td_text& text, const char* argument) {
    text.data = kept_.emplace_back(view(text, argument)).data();
  }
  [[nodiscard]] BuildLimits limits() const {
    BuildLimits limits;
    if (fields_.limits.steps != 0) limits.steps = fields_.limits.steps;
    if (fields_.limits.bytes != 0) limits.bytes = fields_.limits.bytes;
    return limits;
  }
  [[nodiscard]] std::uint32_t whitespace(std::uint32_t usual) const {
    if (fields_.whitespace < TD_NO_WHITESPACE) {
      throw Error(Errc::invalid_option, "whitespace", fields_.whitespace, "must be -1 or more");
    }
    if (fields_.whitespace == 0) return usual;
    return fields_.whitespace > 0 ? static_cast<std::uint32_t>(fields_.whitespace) : 0;
  }
  [[nodiscard]] SchemaOptions schema_options() const {
    SchemaOptions options;
    options.documented_order = fields_.documented_order != 0;
    options.whitespace       = whitespace(options.whitespace);
    options.limits           = limits();
    return options;
  }
  [[nodiscard]] ToolEnforcement enforcement() const {
    if (fields_.enforcement < TD_ENFORCEMENT_STRICT || fields_.enforcement > TD_ENFORCEMENT_DROP) {
      throw Error(Errc::invalid_option, "enforcement", fields_.enforcement, "must be from 0 to 2");
    }
    return std::array{ToolEnforcement::strict, ToolEnforcement::relax,
                      ToolEnforcement::drop}[static_cast<std::size_t>(fields_.enforcement)];
  }
  [[nodiscard]] ChoiceOptions choice_options(const NamedFormat& format) const {
    ChoiceOptions options;
    if (fields_.calls < TD_CALLS_AUTOMATIC || fields_.calls > TD_CALLS_NAMED) {
      throw Error(Errc::invalid_option, "calls", fields_.calls, "must be from 0 to 3");
    }
    options.choice = std::array{ToolChoice::automatic, ToolChoice::none, ToolChoice::required,
                                ToolChoice::named}[static_cast<std::size_t>(fields_.calls)];
    if (options.choice == ToolChoice::named) {
      require(fields_.tool_name, "tool_name");
      options.name = fields_.tool_name;
    }
    if (fields_.max_calls != 0) options.max_calls = fields_.max_calls;
    options.documented_order = fields_.documented_order != 0;
    options.whitespace       = whitespace(options.whitespace);
    options.limits           = limits();
    options.enforcement      = enforcement();
    if (fields_.reasoning < TD_REASONING_NONE || fields_.reasoning > TD_REASONING_OPEN) {
      throw Error(Errc::invalid_option, "reasoning", fields_.reasoning, "must be from 0 to 2");
    }
    if (fields_.reasoning != TD_REASONING_NONE) {
      options.reasoning = formats::ReasoningDelimiters{
          fields_.reasoning == TD_REASONING_OPEN
              ? std::string()
              : std::string(or_else(fields_.reasoning_begin, format.reasoning.begin)),
          std::string(or_else(fields_.reasoning_end, format.reasoning.end))};
    }
    if (fields_.text_schema.size > 0) {
      try {
        options.text_schema = text::parse_exact_json(view(fields_.text_schema, "text_schema"));
      } catch (const Error& error) {
        throw error.within("text_schema");
      }
    }
    return options;
  }
  [[nodiscard]] Built tools(const VocabularyIndex& index, std::string_view text) const {
    require(fields_.format, "format");
    const NamedFormat format = formats::find_format(fields_.format);
    ToolCallFSM calls(index, ToolSet::parse(text, limits(), {}, enforcement()), format.format,
                      choice_options(format));
    return {calls.constraint(), std::move(calls)};
  }

  td_specification fields_;
  std::deque<std::string> kept_;
  std::vector<std::string> choices_;
};

/// A constraint that also checks states passed by a caller.
///
/// \par Threads     every const member may run concurrently
class Constrained {
 public:
  using State = Constraint::State;

  Constrained(std::shared_ptr<const Tokens> tokens, Built built)
      : tokens_(std::move(tokens)),
        constraint_(std::move(built.constraint)),
        calls_(std::move(built.calls)),
        schema_(std::move(built.schema)) {}

  [[nodiscard]] const Tokens& tokens() const noexcept { return *tokens_; }
  [[nodiscard]] const Constraint& constraint() const noexcept { return constraint_; }
  /// The constraint as a ToolCallFSM, if its answers may call tools.
  [[nodiscard]] const std::optional<ToolCallFSM>& calls() const noexcept { return calls_; }
  [[nodiscard]] std::size_t words() const noexcept {
    return mask_word_count(constraint_.vocabulary_size());
  }

  /// The same constraint in new memory, for when this one has grown too large.
  [[nodiscard]] Constrained renewed() const {
    if (calls_) {
      ToolCallFSM copy = *calls_;
      copy.reset();
      return {tokens_, {copy.constraint(), std::move(copy)}};
    }
    Constraint copy = constraint_;
    copy.reset();
    return {tokens_, {std::move(copy), {}, schema_}};
  }

  /// See tooldecode::explain_refusal.
  [[nodiscard]] std::optional<RefusedText> explain_refusal(std::string_view text) const {
    if (calls_) return tooldecode::explain_refusal(*calls_, text);
    if (!schema_) return tooldecode::explain_refusal(constraint_, text);
    return tooldecode::explain_refusal(constraint_, text, schema_->text, schema_->options);
  }

  [[nodiscard]] State initial() const noexcept { return made(constraint_.initial()); }
  /// The state after a token; any number is allowed.
  [[nodiscard]] std::optional<State> advance(State state, std::int32_t token) const {
    if (token < 0 || static_cast<std::size_t>(token) >= constraint_.vocabulary_size()) {
      return std::nullopt;
    }
    return made(constraint_.advance(state, token));
  }
  /// The state after text; marks of control tokens are not allowed.
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const {
    constexpr char marks[] = {control_open, control_close};
    if (bytes.find_first_of(std::string_view(marks, 2)) != std::string_view::npos) {
      return std::nullopt;
    }
    return made(constraint_.advance_bytes(state, bytes));
  }

  [[nodiscard]] std::pair<State, std::size_t> follow(State state,
                                                     std::span<const std::int32_t> tokens) const {
    std::size_t allowed = 0;
    for (; allowed < tokens.size(); ++allowed) {
      const auto next = advance(state, tokens[allowed]);
      if (!next) break;
      state = *next;
    }
    return {state, allowed};
  }
  /// The next tokens, while only one is allowed.
  [[nodiscard]] std::vector<TokenId> only_tokens(State state) const {
    constexpr std::size_t most = 256;
    std::vector<TokenId> tokens;
    TokenMask mask(constraint_.vocabulary_size());
    while (tokens.size() < most && !constraint_.is_accepting(state)) {
      constraint_.fill_mask(state, mask.words());
      if (mask.count() != 1) break;
      mask.for_each([&](TokenId token) { tokens.push_back(token); });
      state = *advance(state, tokens.back());
    }
    return tokens;
  }

  /// Converts a state to the caller's form.
  [[nodiscard]] static td_state give(State state) noexcept {
    return {{std::uint64_t{state.memory} << 32 | state.id, 0}};
  }
  /// Converts a caller's state; Error{unknown_state} unless it exists.
  [[nodiscard]] State take(const td_state& given) const {
    const State state{static_cast<std::uint32_t>(given.words[0]),
                      static_cast<std::uint32_t>(given.words[0] >> 32)};
    if (given.words[1] != 0 || (!constraint_.is_finished(state) && !is_made(state))) {
      throw Error(Errc::unknown_state, "state",
                  "is another constraint's, of memory that was given up since, or none at all");
    }
    return state;
  }
  /// The state whose mask a row holds; State{} unless it is of this constraint's memory.
  [[nodiscard]] State take_shown(const td_state& given) const {
    const auto memory = static_cast<std::uint32_t>(given.words[0] >> 32);
    return memory == constraint_.initial().memory ? take(given) : State{};
  }

 private:
  [[nodiscard]] bool is_made(State state) const {
    if (state.memory != constraint_.initial().memory) return false;
    if (state.id < made_->load(std::memory_order_acquire)) return true;
    raise(constraint_.automaton().size());
    return state.id < made_->load(std::memory_order_acquire);
  }
  void raise(std::size_t count) const noexcept {
    std::size_t known = made_->load(std::memory_order_relaxed);
    while (known < count && !made_->compare_exchange_weak(known, count, std::memory_order_release,
                                                          std::memory_order_relaxed)) {}
  }
  [[nodiscard]] State made(State state) const noexcept {
    if (!constraint_.is_finished(state)) raise(std::size_t{state.id} + 1);
    return state;
  }
  [[nodiscard]] std::optional<State> made(std::optional<State> state) const noexcept {
    return state ? std::optional(made(*state)) : std::nullopt;
  }

  std::shared_ptr<const Tokens> tokens_;
  Constraint constraint_;
  std::optional<ToolCallFSM> calls_;
  std::shared_ptr<const SchemaText> schema_;
  // All states below this number exist. It avoids asking the automaton, whose lock is held while
  // masks are made.
  std::shared_ptr<std::atomic<std::size_t>> made_ = std::make_shared<std::atomic<std::size_t>>(0);
};

/// Rows for masks.
struct MaskRows {
  std::uint32_t* words = nullptr;
  std::size_t width    = 0;

  void require_width(const Constrained& constraint) const {
    if (width >= constraint.words()) return;
    throw Refusal(TD_ERROR_SHAPE_MISMATCH, "row_words",
                  "must be " + std::to_string(constraint.words()) + " or more");
  }
  /// Writes the mask of a state into a row that holds that of `shown`; without a state, an empty
  /// mask.
  void fill(std::size_t row, const Constrained& constraint,
            const std::optional<Constrained::State>& state, Constrained::State shown = {}) const {
    const std::span<std::uint32_t> all(words + row * width, width);
    const std::size_t used = state ? constraint.words() : 0;
    if (state) constraint.constraint().update_mask(shown, *state, MaskView(all.first(used)));
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(used), all.end(), 0U);
  }
};

}  // namespace tooldecode::c_interface
