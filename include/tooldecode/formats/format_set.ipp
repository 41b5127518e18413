#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/format_set.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>

namespace tooldecode::detail {

// JSON in a fence or without a delimiter, as a fall-back of other formats; other formats as they
// are. Fences that an earlier format has are left out.
TOOLDECODE_INLINE formats::AnyFormat as_fall_back(const formats::AnyFormat& format,
                                                  std::span<const formats::AnyFormat> earlier) {
  const auto* json     = format.find<JsonCall>();
  const bool is_marked = json == nullptr || json->list || json->name.empty() ||
                         !json->fences.empty() ||
                         !(json->begin.empty() || json->begin.starts_with("```"));
  if (is_marked) return format;
  JsonCall result     = *json;
  result.only_fences  = true;
  const bool is_fence = !json->begin.empty();
  result.fences       = {{json->begin + (is_fence ? json->separator : ""),
                          (is_fence ? json->separator : "") + json->end}};
  for (const formats::AnyFormat& other : earlier) {
    const auto* before = other.find<JsonCall>();
    if (before == nullptr || before->name.empty()) continue;
    if (&other == &earlier.front()) {
      result.name      = before->name;
      result.arguments = before->arguments;
    }
    std::erase_if(result.fences, [&](const formats::CallFence& fence) {
      return std::ranges::any_of(before->fences, [&](const formats::CallFence& known) {
        return known.begin == fence.begin;
      });
    });
  }
  return result;
}

// The openings of several formats: each delimiter once, and every one can be reached.
TOOLDECODE_INLINE std::vector<CallOpening> united(Grammar& grammar,
                                                  const std::vector<CallOpening>& openings) {
  std::vector<CallOpening> result;
  for (const CallOpening& opening : openings) {
    const auto same = std::ranges::find_if(result, [&](const CallOpening& one) {
      return one.delimiter == opening.delimiter && one.only_at_start == opening.only_at_start &&
             one.longer.empty() == opening.longer.empty();
    });
    if (same == result.end()) {
      result.push_back(opening);
      continue;
    }
    same->calls = grammar.choice({same->calls, opening.calls});
    for (const std::string& longer : opening.longer) {
      if (std::ranges::find(same->longer, longer) == same->longer.end())
        same->longer.push_back(longer);
    }
  }
  const std::size_t count = result.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      const std::string& outer = result[i].delimiter;
      const std::string& inner = result[j].delimiter;
      if (outer == inner || inner.empty() || !result[j].longer.empty()) continue;
      const std::size_t at = outer.find(inner);
      if (at == std::string::npos || result[i].only_at_start) continue;
      if (result[j].only_at_start) {
        // Text does not begin with the inner one, so the outer one opens calls there by itself.
        if (at == 0) result.push_back({outer, result[i].calls, true, result[i].longer});
        continue;
      }
      if (!result[i].longer.empty() || at + inner.size() == outer.size()) continue;
      if (at != 0) {
        throw Error(Errc::invalid_option, "formats", outer,
                    "must not hold " + inner + ", which opens calls in another format of the set");
      }
      const NodeId rest = formats::delimiter(grammar, outer.substr(inner.size()));
      result[j].calls =
          grammar.choice({result[j].calls, grammar.sequence({rest, result[i].calls})});
    }
  }
  return result;
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE FormatSet::FormatSet(std::vector<formats::AnyFormat> formats) {
  static constexpr std::size_t max_formats = 128;
  if (formats.empty() || formats.size() > max_formats) {
    throw Error(Errc::invalid_option, "formats", formats.size(), "must be 1 to 128 formats");
  }
  for (formats::AnyFormat& format : formats) {
    const bool is_first = members_.empty();
    if (format.find<FormatSet>() != nullptr) {
      throw Error(Errc::invalid_option, "formats", "must not hold a set");
    }
    Grammar grammar;
    const auto parts = format.parts(grammar, {}, {}, {.choice = ToolChoice::none});
    if (is_first && !parts.openings.empty()) {
      trigger_       = parts.openings.front().delimiter;
      only_at_start_ = parts.openings.front().only_at_start;
    }
    const bool can_have_messages =
        is_first && (formats.size() == 1 || format.find<HarmonyCall>() != nullptr);
    if (parts.texts && !can_have_messages) {
      throw Error(Errc::invalid_option, "formats",
                  "must have harmony as the first one, and no other format with messages around "
                  "text");
    }
    members_.push_back(is_first ? std::move(format) : detail::as_fall_back(format, members_));
  }
}

TOOLDECODE_INLINE std::string FormatSet::write(std::span<const ToolCall> calls,
                                               const ToolSet& tools) const {
  return members_.front().write(calls, tools);
}

TOOLDECODE_INLINE std::vector<FormatSet::FoundOpening> FormatSet::find_openings(
    std::string_view text, const ToolSet& tools) const {
  std::vector<FoundOpening> all;
  const std::size_t start = formats::leading_space(text);
  Grammar grammar;
  for (std::size_t member = 0; member < members_.size(); ++member) {
    const auto add = [&](std::string_view delimiter, bool only_at_start) {
      const bool is_at_start  = text.substr(start).starts_with(delimiter);
      const std::size_t begin = !only_at_start ? text.find(delimiter)
                                : is_at_start  ? start
                                               : std::string_view::npos;
      if (begin != std::string_view::npos) all.push_back({begin, begin + delimiter.size(), member});
    };
    const auto parts =
        members_[member].parts(grammar, tools, {}, {.choice = ToolChoice::none, .whitespace = 1});
    for (const CallOpening& opening : parts.openings) {
      if (opening.delimiter.empty()) {
        for (const std::string& delimiter : parts.never_in_text) add(delimiter, false);
      } else if (opening.longer.empty()) {
        add(opening.delimiter, opening.only_at_start);
      }
      for (const std::string& longer : opening.longer) add(longer, opening.only_at_start);
    }
  }
  if (all.empty()) return all;
  const std::size_t first = std::ranges::min(all, {}, &FoundOpening::end).end;
  std::erase_if(all, [&](const FoundOpening& one) { return one.begin >= first; });
  return all;
}

TOOLDECODE_INLINE std::vector<ToolCall> FormatSet::parse(std::string_view text,
                                                         const ToolSet& tools) const {
  std::vector<ToolCall> unknown;  // calls of tools that are not in the set
  std::exception_ptr error;
  std::optional<std::size_t> last;
  for (const FoundOpening& opening : find_openings(text, tools)) {
    if (last == opening.member) continue;
    last = opening.member;
    try {
      std::vector<ToolCall> calls = members_[opening.member].parse(text, tools);
      if (calls.empty()) continue;
      if (std::ranges::all_of(
              calls, [&](const ToolCall& call) { return tools.find(call.name).has_value(); })) {
        return calls;
      }
      if (unknown.empty()) unknown = std::move(calls);
    } catch (const Error&) {
      if (!error) error = std::current_exception();
    }
  }
  if (!unknown.empty() || !error) return unknown;
  std::rethrow_exception(error);
}

TOOLDECODE_INLINE std::vector<CallOpening> FormatSet::openings(Grammar& grammar,
                                                               const ToolSet& tools,
                                                               std::span<const std::size_t> chosen,
                                                               const ChoiceOptions& options) const {
  return parts(grammar, tools, chosen, options).openings;
}

TOOLDECODE_INLINE detail::AnswerParts FormatSet::parts(Grammar& grammar, const ToolSet& tools,
                                                       std::span<const std::size_t> chosen,
                                                       const ChoiceOptions& options) const {
  detail::AnswerParts result;
  const bool may_be_text =
      options.choice == ToolChoice::automatic || options.choice == ToolChoice::none;
  const std::size_t count = may_be_text ? members_.size() : 1;
  std::vector<CallOpening> openings;
  for (std::size_t i = 0; i < count; ++i) {
    grammar.number_parts_from(static_cast<std::uint32_t>(i * tools.size()));
    detail::AnswerParts one = members_[i].parts(grammar, tools, chosen, options);
    const auto mark         = formats::mark::format_of_set + static_cast<std::uint32_t>(i);
    for (CallOpening& opening : one.openings) {
      opening.calls = grammar.tagged(mark, opening.calls);
      openings.push_back(std::move(opening));
    }
    if (!one.barred.empty()) {
      result.barred += (result.barred.empty() ? "(?:" : "|(?:") + one.barred + ')';
    }
    for (const auto& [from, to] : {std::pair(&one.ends_reasoning, &result.ends_reasoning),
                                   std::pair(&one.never_in_text, &result.never_in_text)}) {
      to->insert(to->end(), from->begin(), from->end());
    }
    if (i == 0) {
      result.texts = one.texts;
      result.frame = std::move(one.frame);
    }
  }
  grammar.number_parts_from(0);
  result.openings = detail::united(grammar, openings);
  if (result.texts && count > 1) {
    formats::FreeText beside;
    for (const CallOpening& opening : result.openings) {
      if (opening.delimiter.empty()) continue;
      const auto spellings =
          opening.longer.empty() ? formats::delimiter_spellings(opening.delimiter) : opening.longer;
      auto& list = opening.only_at_start ? beside.not_first : beside.without;
      list.insert(list.end(), spellings.begin(), spellings.end());
    }
    result.texts = HarmonyCall::texts(grammar, std::move(beside));
    for (const std::string& delimiter : HarmonyCall::text_of_delimiters())
      result.barred += (result.barred.empty() ? "" : "|") + formats::pattern_of(delimiter);
  }
  return result;
}

TOOLDECODE_INLINE std::vector<std::string> FormatSet::ends_reasoning() const {
  std::vector<std::string> result;
  for (const formats::AnyFormat& format : members_) {
    const auto ends = format.ends_reasoning();
    result.insert(result.end(), ends.begin(), ends.end());
  }
  return result;
}

TOOLDECODE_INLINE const std::vector<FormatFamily>& format_families() {
  static const std::vector<FormatFamily> all{
      {"qwen", {"qwen-2.5", "qwen3-coder", "json-fence", "json"}},
      {"hermes", {"hermes", "json-fence", "json"}},
      {"llama", {"llama", "functionary-3.1", "json-fence"}},
      {"mistral", {"mistral", "mistral-args", "json-fence", "json"}},
      {"deepseek", {"deepseek-v3.1", "deepseek-v3", "json-fence", "json"}},
      {"granite", {"granite", "hermes", "json-fence", "json"}},
      {"phi", {"phi-4-mini", "firefunction", "json-fence", "json"}},
  };
  return all;
}

TOOLDECODE_INLINE std::string with_fall_backs(std::string_view format) {
  static const std::vector<std::string> usual{"json-fence", "json"};
  const std::vector<std::string>* others = &usual;
  for (const FormatFamily& family : format_families()) {
    const auto& known = family.formats;
    // Every family has the usual fall-backs; they identify none.
    if (std::ranges::find(usual, format) == usual.end() &&
        std::ranges::find(known, format) != known.end()) {
      others = &known;
      break;
    }
  }
  std::string names(format);
  for (const std::string& other : *others) {
    if (other != format) names += ',' + other;
  }
  return names;
}

TOOLDECODE_INLINE NamedFormat format_set(std::string_view names) {
  static constexpr std::string_view automatic = "auto:";
  std::vector<std::string> all;
  const auto add = [&](std::string_view name) {
    if (std::ranges::find(all, name) == all.end()) all.emplace_back(name);
  };
  const auto each_of = [](std::string_view list, const auto& visit) {
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      visit(formats::trimmed(list.substr(at, end - at)));
      at = end + 1;
    }
  };
  each_of(names, [&](std::string_view name) {
    if (!name.starts_with(automatic)) return add(name);
    name.remove_prefix(automatic.size());
    for (const FormatFamily& family : format_families()) {
      if (family.name != name) continue;
      for (const std::string& one : family.formats) add(one);
      return;
    }
    each_of(with_fall_backs(name), add);
  });
  const auto named = [](const std::string& one) {
    if (auto format = format_with_suffix(one)) return *std::move(format);
    return format_named(one);
  };
  const NamedFormat first = named(all.front());
  if (all.size() == 1) return first;
  std::vector<formats::AnyFormat> formats;
  std::string name;
  for (const std::string& one : all) {
    formats.push_back(named(one).format);
    name += (name.empty() ? "" : ",") + one;
  }
  return {name, FormatSet(std::move(formats)), first.reasoning};
}

}  // namespace tooldecode
