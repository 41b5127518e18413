/// \file
/// What the handles of tooldecode.h hold, and how what is thrown becomes a code.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/constraint/choice_constraint.hpp>
#include <tooldecode/constraint/ebnf_constraint.hpp>
#include <tooldecode/constraint/forced_tokens.hpp>
#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/json_schema_constraint.hpp>
#include <tooldecode/constraint/named_format.hpp>
#include <tooldecode/constraint/regex_constraint.hpp>
#include <tooldecode/constraint/structural_tag_constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::c_interface {

/// The codes of what input gets.
inline constexpr std::pair<Errc, td_code> codes[] = {
    {Errc::file_unreadable, TD_ERROR_FILE_UNREADABLE},
    {Errc::malformed_json, TD_ERROR_MALFORMED_JSON},
    {Errc::malformed_file, TD_ERROR_MALFORMED_FILE},
    {Errc::malformed_vocabulary, TD_ERROR_MALFORMED_VOCABULARY},
    {Errc::malformed_document, TD_ERROR_MALFORMED_DOCUMENT},
    {Errc::malformed_schema, TD_ERROR_MALFORMED_SCHEMA},
    {Errc::unsupported_keyword, TD_ERROR_UNSUPPORTED_KEYWORD},
    {Errc::unsatisfiable_schema, TD_ERROR_UNSATISFIABLE_SCHEMA},
    {Errc::malformed_pattern, TD_ERROR_MALFORMED_PATTERN},
    {Errc::unsupported_pattern, TD_ERROR_UNSUPPORTED_PATTERN},
    {Errc::unsupported_name, TD_ERROR_UNSUPPORTED_NAME},
    {Errc::malformed_grammar, TD_ERROR_MALFORMED_GRAMMAR},
    {Errc::limit_exceeded, TD_ERROR_LIMIT_EXCEEDED},
    {Errc::duplicate_tool, TD_ERROR_DUPLICATE_TOOL},
    {Errc::unknown_tool, TD_ERROR_UNKNOWN_TOOL},
    {Errc::unknown_format, TD_ERROR_UNKNOWN_FORMAT},
    {Errc::malformed_call, TD_ERROR_MALFORMED_CALL},
    {Errc::unknown_state, TD_ERROR_UNKNOWN_STATE},
    {Errc::unknown_token, TD_ERROR_UNKNOWN_TOKEN},
    {Errc::shape_mismatch, TD_ERROR_SHAPE_MISMATCH},
    {Errc::invalid_option, TD_ERROR_INVALID_OPTION},
    {Errc::device_failure, TD_ERROR_DEVICE_FAILURE},
    {Errc::cancelled, TD_ERROR_CANCELLED},
};

/// The code of an error; TD_ERROR for one that has none.
[[nodiscard]] constexpr td_code code_of(Errc error) noexcept {
  for (const auto& [known, code] : codes) {
    if (known == error) return code;
  }
  return TD_ERROR;
}

/// The name of a code; it ends with a zero.
[[nodiscard]] constexpr const char* name_of(td_code code) noexcept {
  for (const auto& [error, known] : codes) {
    if (known == code) return name(error).data();
  }
  switch (code) {
    case TD_OK:
      return "ok";
    case TD_NOT_ALLOWED:
      return "not_allowed";
    case TD_PENDING:
      return "pending";
    case TD_ERROR:
      return "error";
    case TD_ERROR_INVALID_ARGUMENT:
      return "invalid_argument";
    case TD_ERROR_BUFFER_TOO_SMALL:
      return "buffer_too_small";
    case TD_ERROR_OUT_OF_MEMORY:
      return "out_of_memory";
    default:
      return "unknown";
  }
}

/// What is wrong with a call of the interface itself, not with the input.
class Refusal : public std::runtime_error {
 public:
  Refusal(td_code code, std::string where, const std::string& what)
      : std::runtime_error(where + ": " + what), code_(code), where_(std::move(where)) {}

  [[nodiscard]] td_code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  td_code code_;
  std::string where_;
};

/// An error as the interface tells it.
struct Failure {
  td_code code = TD_ERROR;
  std::string where;
  std::string text;
};

/// What the exception that is being handled becomes.
[[nodiscard]] inline Failure current_failure() {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return {refusal.code(), refusal.where(), refusal.what()};
  } catch (const Error& error) {
    return {code_of(error.code()), error.where(), error.what()};
  } catch (const std::bad_alloc&) {
    return {TD_ERROR_OUT_OF_MEMORY, "", "there is no more memory"};
  } catch (const std::length_error& error) {
    return {TD_ERROR_OUT_OF_MEMORY, "", error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return {TD_ERROR_FILE_UNREADABLE, error.path1().string(), error.what()};
  } catch (const std::system_error& error) {
    return {TD_ERROR_OUT_OF_MEMORY, "", error.what()};
  } catch (const std::exception& error) {
    return {TD_ERROR, "", error.what()};
  } catch (...) {
    return {TD_ERROR, "", "an exception of no known type"};
  }
}

/// Requires what a caller gives.
inline void require(const void* pointer, const char* argument) {
  if (pointer == nullptr) throw Refusal(TD_ERROR_INVALID_ARGUMENT, argument, "must not be null");
}
/// The elements of an array; null where there are none.
inline void require_array(const void* pointer, std::size_t count, const char* argument) {
  if (count > 0) require(pointer, argument);
}

/// The fields of a caller's struct that this library knows.
template <class Struct>
[[nodiscard]] Struct fields_of(const Struct* from, const char* argument) {
  require(from, argument);
  if (from->struct_size != sizeof(Struct)) {
    throw Refusal(TD_ERROR_INVALID_ARGUMENT, std::string(argument) + ".struct_size",
                  "must be " + std::to_string(sizeof(Struct)) + ", the size of the type, and is " +
                      std::to_string(from->struct_size));
  }
  return *from;
}

/// A caller's text.
[[nodiscard]] inline std::string_view view(const td_text& text, const char* argument) {
  require_array(text.data, text.size, argument);
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}

/// What a vocabulary's handle and its constraints share.
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
  std::optional<ForcedTokens> forced{};
};

/// A vocabulary as a caller wants it.
///
/// \param file  null where there is none, and `vocabulary` is all
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

/// What a specification describes.
struct Built {
  GrammarConstraint constraint;
  std::optional<ToolCallFSM> calls{};  // of answers that may call tools
};

/// A specification with texts of its own.
///
/// \par Errors  Refusal for null where there must be something
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
  Specification(const Specification&)            = delete;  // texts are where they are
  Specification& operator=(const Specification&) = delete;

  /// The constraint, at a cost that the specification bounds.
  ///
  /// \param cancelled  see BuildBudget; may be null
  [[nodiscard]] Built build(const VocabularyIndex& index,
                            const std::atomic<bool>* cancelled) const {
    const BuildBudget budget(limits(), cancelled);
    BuildBudget::spend(0);
    const std::string_view text = view(fields_.text, "text");
    switch (fields_.kind) {
      case TD_TOOLS:
        return tools(index, text);
      case TD_JSON_SCHEMA:
        return {JsonSchemaConstraint::parse(index, text, schema_options())};
      case TD_REGEX:
        return {RegexConstraint(index, text, limits())};
      case TD_EBNF:
        return {EbnfConstraint(index, text, or_else(fields_.root, "root"), limits())};
      case TD_CHOICE:
        return {ChoiceConstraint(index, choices_)};
      case TD_STRUCTURAL_TAG:
        return {StructuralTagConstraint::parse(index, text, {.limits = limits()})};
      default:
        throw Error(Errc::invalid_option, "kind", fields_.kind, "must be a kind of constraint");
    }
  }

 private:
  static std::string or_else(const char* text, std::string_view other) {
    return text != nullptr ? std::string(text) : std::string(other);
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
    if (fields_.reasoning < TD_REASONING_NONE || fields_.reasoning > TD_REASONING_OPEN) {
      throw Error(Errc::invalid_option, "reasoning", fields_.reasoning, "must be from 0 to 2");
    }
    if (fields_.reasoning != TD_REASONING_NONE) {
      options.reasoning =
          tools::ReasoningDelimiters{fields_.reasoning == TD_REASONING_OPEN
                                         ? std::string()
                                         : or_else(fields_.reasoning_begin, format.reasoning.begin),
                                     or_else(fields_.reasoning_end, format.reasoning.end)};
    }
    if (fields_.text_schema.size > 0) {
      try {
        options.text_schema = tools::parse_exact_json(view(fields_.text_schema, "text_schema"));
      } catch (const Error& error) {
        throw error.within("text_schema");
      }
    }
    return options;
  }
  [[nodiscard]] Built tools(const VocabularyIndex& index, std::string_view text) const {
    require(fields_.format, "format");
    const NamedFormat& format = format_named(fields_.format);
    ToolCallFSM calls =
        format.constrain(index, ToolSet::parse(text, limits()), choice_options(format));
    return {calls.grammar(), std::move(calls)};
  }

  td_specification fields_;
  std::deque<std::string> kept_;
  std::vector<std::string> choices_;
};

/// A constraint, with the check of states that come from outside.
///
/// \par Threads  every const member may run concurrently
class Constrained {
 public:
  using State = GrammarConstraint::State;

  Constrained(std::shared_ptr<const Tokens> tokens, Built built)
      : tokens_(std::move(tokens)),
        constraint_(std::move(built.constraint)),
        calls_(std::move(built.calls)) {}

  [[nodiscard]] const Tokens& tokens() const noexcept { return *tokens_; }
  [[nodiscard]] const GrammarConstraint& constraint() const noexcept { return constraint_; }
  /// The constraint again, where its answers may call tools.
  [[nodiscard]] const std::optional<ToolCallFSM>& calls() const noexcept { return calls_; }
  [[nodiscard]] std::size_t words() const noexcept {
    return mask_word_count(constraint_.vocabulary_size());
  }

  /// The same constraint in other memory, once this one's has grown too large.
  [[nodiscard]] Constrained renewed() const {
    if (calls_) {
      ToolCallFSM copy = *calls_;
      copy.renew();
      return {tokens_, {copy.grammar(), std::move(copy)}};
    }
    GrammarConstraint copy = constraint_;
    copy.renew();
    return {tokens_, {std::move(copy)}};
  }

  [[nodiscard]] State initial() const noexcept { return made(constraint_.initial()); }
  /// The state after a token, whatever its number.
  [[nodiscard]] std::optional<State> advance(State state, std::int32_t token) const {
    if (token < 0 || static_cast<std::size_t>(token) >= constraint_.vocabulary_size()) {
      return std::nullopt;
    }
    return made(constraint_.advance(state, token));
  }
  /// The state after text; marks of control tokens are none.
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const {
    constexpr char marks[] = {control_open, control_close};
    if (bytes.find_first_of(std::string_view(marks, 2)) != std::string_view::npos) {
      return std::nullopt;
    }
    return made(constraint_.advance_bytes(state, bytes));
  }

  /// A state as a caller keeps it.
  [[nodiscard]] static td_state give(State state) noexcept {
    return {{std::uint64_t{state.memory} << 32 | state.id, 0}};
  }
  /// A caller's state; Error{unknown_state} unless it has been made.
  [[nodiscard]] State take(const td_state& given) const {
    const State state{static_cast<std::uint32_t>(given.words[0]),
                      static_cast<std::uint32_t>(given.words[0] >> 32)};
    if (given.words[1] != 0 || (!constraint_.is_finished(state) && !is_made(state))) {
      throw Error(Errc::unknown_state, "state",
                  "is another constraint's, of memory that was given up since, or none at all");
    }
    return state;
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
  GrammarConstraint constraint_;
  std::optional<ToolCallFSM> calls_;
  // States below it are known to have been made, so that few checks ask the automaton, whose lock
  // is held while masks are made. Whoever raises it has seen the last of them.
  std::shared_ptr<std::atomic<std::size_t>> made_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace tooldecode::c_interface
