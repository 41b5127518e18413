#pragma once

#include <algorithm>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_lexeme.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE SchemaOptions text_schema_options(const ChoiceOptions& options) {
  return {.documented_order = true, .whitespace = options.whitespace, .rules = {.nullable = true}};
}

TOOLDECODE_INLINE std::vector<std::size_t> chosen_tools(const ToolSet& tools,
                                                        const ChoiceOptions& options) {
  std::vector<std::size_t> chosen;
  if (options.choice == ToolChoice::none) return chosen;
  if (options.choice == ToolChoice::named) {
    const auto tool = tools.find(options.name);
    if (!tool) throw Error(Errc::unknown_tool, options.name, "must be the name of a tool");
    return {*tool};
  }
  for (std::size_t i = 0; i < tools.size(); ++i) chosen.push_back(i);
  if (chosen.empty() && options.choice == ToolChoice::required) {
    throw Error(Errc::invalid_option, "tool choice", "required",
                "must be automatic or none where there are no tools");
  }
  return chosen;
}

/// Builds the grammar of answers from what a format says about them.
class AnswerBuilder {
 public:
  AnswerBuilder(CallGrammar& result, const AnswerParts& parts, bool has_tools,
                const ChoiceOptions& options)
      : result_(result),
        grammar_(result.grammar),
        parts_(parts),
        has_tools_(has_tools),
        is_forced_(has_tools && options.choice != ToolChoice::automatic),
        space_(grammar_.lexeme(text::any_whitespace(), {0, 2})),
        beside_(text_beside()),
        common_(common_text()) {
    if (options.text_schema && !is_forced_) use_schema(options);
  }

  /// The grammar of an answer. Its text does not begin with `not_first`, so that it does not look
  /// like a reasoning block.
  [[nodiscard]] NodeId answer(const std::string& not_first = "") {
    if (is_forced_) return in_calls(grammar_.sequence({space_, empty_frame(), any_calls()}));
    std::vector<NodeId> ways;
    if (value_) {
      ways = {*value_};
      append_tagged_calls(ways);
    } else {
      if (parts_.texts) {
        ways = {parts_.texts->silent};
        if (has_tools_) {
          ways.push_back(grammar_.sequence({parts_.texts->before, parts_.openings.front().calls}));
        }
      }
      if (!parts_.texts || parts_.openings.size() > 1) append_text(ways, not_first);
    }
    return grammar_.choice(std::move(ways));
  }

  /// A reasoning block and what follows it: an answer, or the call that ends the block.
  [[nodiscard]] NodeId reasoned_answer(const formats::ReasoningDelimiters& delimiters) {
    const auto& calls_end_it = parts_.ends_reasoning;
    auto ends                = calls_end_it;
    ends.push_back(delimiters.end);
    result_.reasoning_ends = formats::all_spellings(ends);
    auto without           = calls_end_it;
    without.insert(without.end(), parts_.never_in_text.begin(), parts_.never_in_text.end());
    std::vector<NodeId> ways{
        grammar_.sequence({formats::reasoning_block(grammar_, delimiters.begin,
                                                    std::span(&delimiters.end, 1), without),
                           answer_behind_block()})};
    for (const CallOpening& opening : parts_.openings) {
      const auto at = std::find(calls_end_it.begin(), calls_end_it.end(), opening.delimiter);
      if (!has_tools_ || at == calls_end_it.end()) continue;
      auto others = calls_end_it;
      std::erase(others, opening.delimiter);
      others.push_back(delimiters.end);
      ways.push_back(
          grammar_.sequence({formats::reasoning_block(grammar_, delimiters.begin,
                                                      std::span(&opening.delimiter, 1), others),
                             in_calls(opening.calls)}));
    }
    if (!delimiters.begin.empty()) ways.push_back(answer(delimiters.begin));
    return grammar_.choice(std::move(ways));
  }

 private:
  // Models write white space behind a block, which free text and calls may begin with anyway.
  [[nodiscard]] NodeId answer_behind_block() {
    if (!value_ || is_forced_) return answer();
    std::vector<NodeId> ways{grammar_.sequence({space_, *value_})};
    append_tagged_calls(ways);
    return grammar_.choice(std::move(ways));
  }
  [[nodiscard]] formats::FreeText text_beside() const {
    formats::FreeText text{.barred = parts_.barred};
    for (const CallOpening& opening : parts_.openings) {
      if (opening.delimiter.empty()) continue;  // `texts` has what precedes these calls
      if (opening.only_at_start) {
        if (opening.longer.empty()) text.not_first.push_back(opening.delimiter);
        text.not_first.insert(text.not_first.end(), opening.longer.begin(), opening.longer.end());
        continue;
      }
      const auto delimiters =
          opening.longer.empty() ? formats::delimiter_spellings(opening.delimiter) : opening.longer;
      text.without.insert(text.without.end(), delimiters.begin(), delimiters.end());
    }
    if (is_framed()) {
      if (parts_.frame.end.empty()) text.not_first.push_back(parts_.frame.begin);
      for (const std::string* delimiter : {&parts_.frame.begin, &parts_.frame.end}) {
        if (parts_.frame.end.empty()) continue;
        const auto spellings = formats::delimiter_spellings(*delimiter);
        text.without.insert(text.without.end(), spellings.begin(), spellings.end());
      }
    }
    return text;
  }
  // The text beside calls that is the same for all tools, where text with the delimiter of an
  // opening that needs more to be a call can be read apart: masks of it are then shared by all
  // tools. Otherwise `beside_`.
  [[nodiscard]] formats::FreeText common_text() const {
    formats::FreeText text = beside_;
    if (is_framed() || parts_.texts || !parts_.barred.empty()) return text;
    for (const CallOpening& opening : parts_.openings) {
      if (opening.longer.empty()) continue;
      if (is_across(opening)) return beside_;
      auto& held = opening.only_at_start ? text.not_first : text.without;
      for (const std::string& longer : opening.longer) std::erase(held, longer);
      held.push_back(opening.delimiter);
    }
    return text;
  }
  // Whether a text that is excluded may begin before the opening's delimiter and end in it or
  // after it.
  [[nodiscard]] bool is_across(const CallOpening& opening) const {
    const std::string& delimiter = opening.delimiter;
    return std::ranges::any_of(beside_.without, [&](const std::string& excluded) {
      for (std::size_t at = 1; at < excluded.size(); ++at) {
        const std::string_view rest = std::string_view(excluded).substr(at);
        if (!rest.starts_with(delimiter) && !delimiter.starts_with(rest)) continue;
        const bool is_space = formats::leading_space(excluded) >= at;
        if (!opening.only_at_start || is_space) return true;
      }
      return false;
    });
  }
  [[nodiscard]] bool is_framed() const { return !parts_.frame.begin.empty(); }
  // The delimiters of text around no text.
  [[nodiscard]] NodeId empty_frame() {
    if (!is_framed() || parts_.frame.end.empty()) return grammar_.empty();
    return grammar_.optional(
        grammar_.sequence({formats::delimiter(grammar_, parts_.frame.begin),
                           formats::delimiter(grammar_, parts_.frame.end), space_}));
  }
  void use_schema(const ChoiceOptions& options) {
    if (parts_.texts) {
      throw Error(Errc::invalid_option, std::string(text_schema_place),
                  "must not be given: texts of this format have messages around them");
    }
    value_ =
        grammar_.tagged(formats::mark::text_value,
                        SchemaCompiler(grammar_, *options.text_schema, text_schema_options(options))
                            .value(*options.text_schema, std::string(text_schema_place)));
    result_.openings.emplace();
    for (const CallOpening& opening : parts_.openings) {
      if (has_tools_) result_.openings->push_back(opening.delimiter);
    }
  }

  [[nodiscard]] NodeId free_text(const formats::FreeText& text) {
    return grammar_.tagged(formats::mark::text, grammar_.lexeme(formats::free_text(text)));
  }
  [[nodiscard]] NodeId in_calls(NodeId calls) {
    return grammar_.tagged(CallGrammar::tool_mode, calls);
  }
  [[nodiscard]] NodeId any_calls(bool behind_text = false) {
    std::vector<NodeId> ways;
    for (const CallOpening& opening : parts_.openings) {
      if (behind_text && opening.only_at_start) continue;
      ways.push_back(
          grammar_.sequence({formats::delimiter(grammar_, opening.delimiter), opening.calls}));
    }
    return grammar_.choice(std::move(ways));
  }
  // Calls in place of a value of `text_schema`.
  void append_tagged_calls(std::vector<NodeId>& ways) {
    if (!has_tools_) return;
    for (const CallOpening& opening : parts_.openings) {
      const bool is_tagged = !opening.longer.empty();
      ways.push_back(grammar_.sequence({space_, formats::delimiter(grammar_, opening.delimiter),
                                        is_tagged ? opening.calls : in_calls(opening.calls)}));
    }
  }
  // Free text, and calls in it or after it.
  void append_text(std::vector<NodeId>& ways, const std::string& not_first) {
    const bool is_common   = common_ != beside_;
    formats::FreeText text = common_;
    if (!not_first.empty()) text.not_first.push_back(not_first);
    append_text(ways, text, formats::mark::text, is_common);
    if (is_framed()) append_framed(ways);
    for (const CallOpening& opening : parts_.openings) {
      if (!opening.only_at_start || opening.delimiter.empty()) continue;
      if (is_common && !opening.longer.empty()) {
        std::vector<NodeId> more;
        append_text(more, text_behind(opening, not_first), formats::mark::more_text, false);
        const NodeId begun = grammar_.lexeme(
            std::make_shared<const text::Dfa>(formats::behind_space({opening.delimiter})));
        ways.push_back(grammar_.sequence(
            {grammar_.tagged(formats::mark::text, begun), grammar_.choice(std::move(more))}));
      }
      if (!has_tools_) continue;
      ways.push_back(
          opening.longer.empty()
              ? grammar_.sequence({space_, formats::delimiter(grammar_, opening.delimiter),
                                   in_calls(opening.calls)})
              : grammar_.sequence({space_, grammar_.literal(opening.delimiter), opening.calls}));
    }
  }
  // Text after the delimiter of an opening that is no call there.
  [[nodiscard]] formats::FreeText text_behind(const CallOpening& opening,
                                              const std::string& not_first) const {
    formats::FreeText text = beside_;
    text.begun             = opening.delimiter;
    if (!opening.only_at_start) {
      text.not_first.clear();
    } else if (!not_first.empty()) {
      text.not_first.push_back(not_first);
    }
    return text;
  }
  // A text up to the first of some delimiters, with it.
  [[nodiscard]] static formats::FreeText up_to(formats::FreeText text,
                                               std::vector<std::string> ends) {
    text.until = std::move(ends);
    for (const std::string& delimiter : text.until) std::erase(text.without, delimiter);
    return text;
  }
  [[nodiscard]] formats::FreeText up_to_calls(formats::FreeText text,
                                              const std::string& delimiter) {
    auto before = up_to(std::move(text), formats::delimiter_spellings(delimiter));
    result_.text_ends.insert(result_.text_ends.end(), before.until.begin(), before.until.end());
    return before;
  }
  // A text to the end of the answer, or up to calls that may open anywhere.
  //
  // \param is_common  the text ends at each delimiter, whether a call follows or more text
  void append_text(std::vector<NodeId>& ways, const formats::FreeText& text, std::uint32_t mark,
                   bool is_common) {
    const auto marked = [&](const formats::FreeText& one) {
      return grammar_.tagged(mark, grammar_.lexeme(formats::free_text(one)));
    };
    const NodeId silent = marked(text);
    ways.push_back(silent);
    for (const CallOpening& opening : parts_.openings) {
      if (opening.delimiter.empty() || opening.only_at_start) continue;
      if (!opening.longer.empty()) {  // only what follows the delimiter makes it a call
        if (is_common) {
          result_.turn_ends.push_back(opening.delimiter);
          std::vector<NodeId> next;
          if (has_tools_) next.push_back(opening.calls);
          append_text(next, text_behind(opening, ""), formats::mark::more_text, false);
          ways.push_back(grammar_.sequence(
              {marked(up_to(text, {opening.delimiter})), grammar_.choice(std::move(next))}));
        } else if (has_tools_) {
          ways.push_back(
              grammar_.sequence({silent, grammar_.literal(opening.delimiter), opening.calls}));
        }
      } else if (has_tools_ && (!is_framed() || !parts_.frame.end.empty())) {  // otherwise the
                                                                               // frame identifies
                                                                               // text
        ways.push_back(grammar_.sequence(
            {marked(up_to_calls(text, opening.delimiter)), in_calls(opening.calls)}));
      }
    }
  }

  // Free text in its frame.
  void append_framed(std::vector<NodeId>& ways) {
    const formats::TextFrame& frame = parts_.frame;
    const NodeId begun  = grammar_.sequence({space_, formats::delimiter(grammar_, frame.begin)});
    const NodeId framed = grammar_.sequence(
        {begun, free_text(beside_), formats::delimiter(grammar_, frame.end), space_});
    std::vector<NodeId> then{grammar_.optional(formats::delimiter(grammar_, frame.last))};
    if (has_tools_ && !frame.end.empty()) then.push_back(in_calls(any_calls(true)));
    ways.push_back(grammar_.sequence({framed, grammar_.choice(std::move(then))}));
    if (!has_tools_ || !frame.end.empty()) return;
    // Otherwise the text ends where calls open first: its last bytes may begin their delimiter.
    for (const CallOpening& opening : parts_.openings) {
      if (opening.only_at_start) continue;
      ways.push_back(grammar_.sequence(
          {begun, free_text(up_to_calls(beside_, opening.delimiter)), in_calls(opening.calls)}));
    }
  }

  CallGrammar& result_;
  Grammar& grammar_;
  const AnswerParts& parts_;
  bool has_tools_;
  bool is_forced_;
  NodeId space_;
  formats::FreeText beside_;
  formats::FreeText common_;
  std::optional<NodeId> value_;  // the value that replaces free text
};

TOOLDECODE_INLINE void build_answer(CallGrammar& result, const AnswerParts& parts, bool has_tools,
                                    const ChoiceOptions& options) {
  if (options.reasoning && options.reasoning->end.empty()) {
    throw Error(Errc::invalid_option, "reasoning", "what ends a block must not be empty");
  }
  AnswerBuilder builder(result, parts, has_tools, options);
  result.grammar.set_root(options.reasoning ? builder.reasoned_answer(*options.reasoning)
                                            : builder.answer());
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE text::Occurrences ChoiceOptions::further_calls() const noexcept {
  const std::uint32_t max = calls().max;
  return {0, max == text::Occurrences::unbounded ? max : max - 1};
}

TOOLDECODE_INLINE CallOpening CallOpening::barred(Grammar& grammar, std::string delimiter,
                                                  bool only_at_start) {
  return {std::move(delimiter), grammar.nothing(), only_at_start};
}

TOOLDECODE_INLINE CallGrammar build_call_grammar(const formats::AnyFormat& format,
                                                 const ToolSet& tools, const ChoiceOptions& options,
                                                 Grammar grammar_to_extend) {
  if (options.max_calls == 0) {
    throw Error(Errc::invalid_option, "max_calls", options.max_calls,
                "must be 1 or more; for no call the choice is none");
  }
  const std::vector<std::size_t> chosen = detail::chosen_tools(tools, options);
  CallGrammar result{std::move(grammar_to_extend)};
  ChoiceOptions single = options;
  if (options.choice == ToolChoice::named) {
    single.parallel = false;
  } else {
    single.leading_keys.clear();
    single.open_ended = false;
  }
  const auto parts = format.parts(result.grammar, tools, chosen, single);
  detail::build_answer(result, parts, !chosen.empty(), options);
  return result;
}

}  // namespace tooldecode

namespace tooldecode::formats {

TOOLDECODE_INLINE schema::DocumentRules parameter_rules(const Tool& tool) {
  return {.place = tool.parameters_pointer, .nullable = true, .close_objects = tool.strict};
}

TOOLDECODE_INLINE text::ValueReader call_reader(std::string_view text,
                                                text::ValueReader::Language language) {
  text::ValueReader reader(text, language, Errc::malformed_call);
  reader.allow_repeated_keys();
  reader.keep_integers();  // an order's number may have any length
  return reader;
}

TOOLDECODE_INLINE JsonValue read_arguments(text::ValueReader& reader) {
  reader.skip_space();
  const std::size_t start = reader.position();
  JsonValue arguments     = reader.value();
  if (!arguments.is_object()) reader.fail_at(start, "the arguments are an object");
  reader.skip_space();
  return arguments;
}

TOOLDECODE_INLINE void expect_end(text::ValueReader& reader) {
  reader.expect_end("expected the end of the text after the calls");
}

TOOLDECODE_INLINE SchemaOptions parameter_options(const Tool& tool, const ChoiceOptions& options,
                                                  text::ValueSyntax syntax,
                                                  std::vector<std::string> ends) {
  return {.syntax           = syntax,
          .documented_order = options.documented_order,
          .whitespace       = options.whitespace,
          .leading_keys     = options.leading_keys,
          .excluded         = std::move(ends),
          .rules            = parameter_rules(tool)};
}

}  // namespace tooldecode::formats
