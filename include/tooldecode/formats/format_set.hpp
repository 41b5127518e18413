/// \file
/// FormatSet: several call formats at once, for models that do not keep to their template's one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// Answers that may be text make their calls in any of several formats; text holds none of their
/// calls.
///
/// The first format is the model's own: `write` uses it, its frame surrounds text, and where a call
/// is required an answer has no other. All calls of an answer are in the format of its first call.
/// The others are what the model falls back to. JSON in a code fence or without any delimiter is
/// common in text, so as a fall-back it is a call only if it begins with a tool's name, as in
/// `JsonCall::fences`, and it has the keys of the first format.
///
/// The opening delimiter that ends first opens the calls. Where a format's delimiter begins with
/// another's, what follows decides.
///
/// \par Complexity  as the formats together; parse O(length of the text x delimiters) more
/// \par Threads     immutable; const members may run concurrently
/// \par Errors      Error{invalid_option} from the constructor for no format, more than 128, a set in
///                  a set, and a fall-back with its own messages around text; from `openings` for
///                  two delimiters of which one stands inside the other; those of the formats
class FormatSet {
 public:
  explicit FormatSet(std::vector<formats::AnyFormat> formats);

  /// The language of JSON formats; each format has its own, see AnyFormat::member.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;

  /// The formats, the first one's fall-backs as they are in the set.
  [[nodiscard]] std::span<const formats::AnyFormat> members() const noexcept { return members_; }

  [[nodiscard]] std::string_view trigger() const noexcept { return trigger_; }
  [[nodiscard]] bool only_at_start() const noexcept { return only_at_start_; }
  [[nodiscard]] std::string write(std::span<const ToolCall> calls, const ToolSet& tools = {}) const;
  /// The calls of an answer, by the format in which the first one is written.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;
  [[nodiscard]] detail::AnswerParts parts(Grammar& grammar, const ToolSet& tools,
                                          std::span<const std::size_t> chosen,
                                          const ChoiceOptions& options) const;
  [[nodiscard]] std::vector<std::string> ends_reasoning() const;

 private:
  // A delimiter in a text.
  struct FoundOpening {
    std::size_t begin, end, member;
  };
  // The delimiters that may open the first call of a text, the formats' order.
  [[nodiscard]] std::vector<FoundOpening> find_openings(std::string_view text,
                                                        const ToolSet& tools) const;

  std::vector<formats::AnyFormat> members_;
  std::string trigger_;
  bool only_at_start_ = false;
};
static_assert(CallFormat<FormatSet>);

/// A model family and the formats that its models are known to write.
struct FormatFamily {
  std::string name;
  std::vector<std::string> formats;  ///< names; the first is the usual one
};

/// The families. A format that is in several belongs to the first.
[[nodiscard]] const std::vector<FormatFamily>& format_families();

/// The names of a format and of what its models fall back to, with commas: `"hermes"` gives
/// `"hermes,json-fence,json"`.
[[nodiscard]] std::string with_fall_backs(std::string_view format);

/// The set of several formats, `"hermes,json-fence,json"`. `auto:FAMILY` in the list means the
/// formats of a family, and `auto:FORMAT` those of `with_fall_backs`. A list of one name is that
/// format.
///
/// \par Errors      Error{unknown_format} lists the names; those of FormatSet
[[nodiscard]] NamedFormat format_set(std::string_view names);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/format_set.ipp>
#endif
