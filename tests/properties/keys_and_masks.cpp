#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/string_escape.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

// Keys in any spelling against a reference that knows only their texts, and masks against trying
// every token, with tokens that cut escapes anywhere.

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

using Json = tooldecode::JsonValue;
using Text = std::u32string;

std::string utf8_of(const Text& text) {
  std::string result;
  for (const char32_t c : text) append_utf8(result, c);
  return result;
}

// Patterns, each with a function that decides the same.
struct KnownPattern {
  const char* pattern;
  bool (*holds)(const Text&);
};
const KnownPattern known_patterns[] = {
    {"^a", [](const Text& t) { return !t.empty() && t[0] == U'a'; }},
    {"\\u00e9", [](const Text& t) { return t.find(U'\u00E9') != Text::npos; }},
    {"^[^b]{0,2}$", [](const Text& t) { return t.size() <= 2 && t.find(U'b') == Text::npos; }},
    {"^.{3}$",
     [](const Text& t) {
       return t.size() == 3 && t.find_first_of(U"\n\r\u2028\u2029") == Text::npos;
     }},
    {"[\\x00-\\x1f\"]",
     [](const Text& t) {
       return std::any_of(t.begin(), t.end(), [](char32_t c) { return c < 0x20 || c == U'"'; });
     }},
    {"^(a|b\\u007f?|\\u{1F600})$",
     [](const Text& t) { return t == U"a" || t == U"b" || t == U"b\x7F" || t == U"\U0001F600"; }}};

// An object's rules, for the schema and for the reference.
struct Rules {
  enum class Value { any, integer, text, never };
  std::vector<std::pair<Text, Value>> named;
  std::vector<std::pair<std::size_t, Value>> patterns;
  Value others = Value::any;
  std::set<Text> required, not_required;
  std::vector<std::pair<Text, Text>> dependent;
  std::optional<std::size_t> name_pattern;  // of all names
  std::optional<std::size_t> longest, min, max;
};

struct KeyMaker {
  std::mt19937 random;

  std::size_t below(std::size_t n) { return random() % n; }
  Text text() {
    static const Text letters = U"aab\x01\n\t\x0B\x7F\"'\\/\u00E9\u00E8\u65E5\U0001F600\U0001F601";
    Text result;
    for (std::size_t n = below(8) == 0 ? 0 : 1 + below(3); n > 0; --n) {
      result += letters[below(letters.size())];
    }
    return result;
  }
  Rules::Value value() { return static_cast<Rules::Value>(below(4)); }

  Rules rules() {
    Rules made;
    for (std::size_t n = below(4); n > 0; --n) {
      const Text name = text();
      const auto same = [&](const auto& one) { return one.first == name; };
      if (std::none_of(made.named.begin(), made.named.end(), same)) {
        made.named.emplace_back(name, value());
      }
    }
    const auto some_name = [&] {
      return made.named.empty() || below(4) == 0 ? text()
                                                 : made.named[below(made.named.size())].first;
    };
    std::set<std::size_t> used;
    while (below(3) == 0) {
      const std::size_t k = below(std::size(known_patterns));
      if (used.insert(k).second) made.patterns.emplace_back(k, value());
    }
    made.others = below(2) ? Rules::Value::any : value();
    if (below(3) == 0) made.required.insert(some_name());
    if (below(4) == 0) made.not_required.insert(some_name());
    if (below(4) == 0) made.dependent.emplace_back(some_name(), some_name());
    if (below(4) == 0) made.name_pattern = below(std::size(known_patterns));
    if (below(5) == 0) made.longest = below(4);
    if (below(3) == 0) made.min = below(4);
    if (below(6) == 0) made.max = made.min.value_or(0) + below(3);
    return made;
  }
  Json schema(const Rules& rules) {
    const auto value_schema = [](Rules::Value value) -> Json {
      switch (value) {
        case Rules::Value::any:
          return true;
        case Rules::Value::integer:
          return {{"type", "integer"}};
        case Rules::Value::text:
          return {{"type", "string"}};
        default:
          return false;
      }
    };
    Json made{{"type", "object"}, {"properties", Json::object()}};
    for (const auto& [name, value] : rules.named) {
      made["properties"][utf8_of(name)] = value_schema(value);
    }
    for (const auto& [k, value] : rules.patterns) {
      made["patternProperties"][known_patterns[k].pattern] = value_schema(value);
    }
    if (rules.others != Rules::Value::any) {
      made["additionalProperties"] = value_schema(rules.others);
    }
    for (const Text& name : rules.required) made["required"].push_back(utf8_of(name));
    for (const Text& name : rules.not_required) {
      made["allOf"].push_back({{"not", {{"required", Json::array({utf8_of(name)})}}}});
    }
    for (const auto& [name, needed] : rules.dependent) {
      made["dependentRequired"][utf8_of(name)] = Json::array({utf8_of(needed)});
    }
    if (rules.name_pattern) {
      made["propertyNames"]["pattern"] = known_patterns[*rules.name_pattern].pattern;
    }
    if (rules.longest) made["propertyNames"]["maxLength"] = *rules.longest;
    if (rules.min) made["minProperties"] = *rules.min;
    if (rules.max) made["maxProperties"] = *rules.max;
    return made;
  }

  bool has_needless_escape = false;  // some character was escaped that no writer escapes

  // A character in one of its spellings.
  std::string spelt(char32_t c, bool python, char quote) {
    const auto digits = [&](char32_t number, int count) {
      std::string result;
      while (count-- > 0) {
        const char digit = "0123456789abcdef"[number >> 4 * count & 15];
        result += below(2) && digit > '9' ? static_cast<char>(digit - 32) : digit;
      }
      return result;
    };
    std::string plain;
    append_utf8(plain, c);
    const bool is_free = c >= 0x20 && c != U'\\' && c != static_cast<char32_t>(quote);
    if (is_free && below(2)) return plain;
    has_needless_escape             = has_needless_escape || StringEscape::is_plain(c);
    const std::string_view letters  = python ? "\\'\"abfnrtv" : "\\\"/bfnrt";
    const std::u32string_view meant = python ? U"\\'\"\a\b\f\n\r\t\v" : U"\\\"/\b\f\n\r\t";
    const auto at                   = meant.find(c);
    if (at != std::u32string_view::npos && below(2)) return std::string{'\\', letters[at]};
    if (python && c < 0x100 && below(2)) return "\\x" + digits(c, 2);
    if (python && (c > 0xFFFF || below(2))) return "\\U" + digits(c, 8);
    if (c <= 0xFFFF) return "\\u" + digits(c, 4);
    return "\\u" + digits(0xD800 + ((c - 0x10000) >> 10), 4) + "\\u" +
           digits(0xDC00 + (c & 0x3FF), 4);
  }
  std::string spelt(const Text& text, bool python) {
    const char quote = python && below(2) ? '\'' : '"';
    std::string result(1, quote);
    for (const char32_t c : text) result += spelt(c, python, quote);
    return result + quote;
  }
};

struct WrittenMember {
  Text name;
  bool is_integer = false;  // else a string
};

// The reference's verdict, by the names' texts alone.
struct Judgement {
  bool conforms = true, repeats_named = false, repeats_other = false;
};
Judgement judge(const Rules& rules, const std::vector<WrittenMember>& members) {
  Judgement result;
  std::set<Text> names;
  const auto check = [&](Rules::Value value, bool is_integer) {
    if (value == Rules::Value::any) return;
    if (value == Rules::Value::never || (value == Rules::Value::integer) != is_integer) {
      result.conforms = false;
    }
  };
  for (const auto& [name, is_integer] : members) {
    bool matched = false, is_named = false;
    for (const auto& [own, value] : rules.named) {
      if (own != name) continue;
      matched = is_named = true;
      check(value, is_integer);
    }
    for (const auto& [k, value] : rules.patterns) {
      if (!known_patterns[k].holds(name)) continue;
      matched = true;
      check(value, is_integer);
    }
    if (!matched) check(rules.others, is_integer);
    if (rules.name_pattern && !known_patterns[*rules.name_pattern].holds(name)) {
      result.conforms = false;
    }
    if (rules.longest && name.size() > *rules.longest) result.conforms = false;
    if (!names.insert(name).second) (is_named ? result.repeats_named : result.repeats_other) = true;
  }
  for (const Text& name : rules.required) result.conforms &= names.count(name) != 0;
  for (const Text& name : rules.not_required) result.conforms &= names.count(name) == 0;
  for (const auto& [name, needed] : rules.dependent) {
    result.conforms &= names.count(name) == 0 || names.count(needed) != 0;
  }
  if (rules.min && names.size() < *rules.min) result.conforms = false;
  if (rules.max && names.size() > *rules.max) result.conforms = false;
  return result;
}

const Vocabulary& cutting_vocabulary() {
  static const Vocabulary vocabulary = [] {
    std::vector<Vocabulary::Entry> more;
    for (const char* text :
         {"\\u",  "\\u0",    "\\u00",  "\\u00e",      "e9\"",       "00E9",     "E9\":",    "9\": ",
          "u00",  "0061",    "61\":",  "\\ud83d",     "\\uD83D\\u", "\\ude00",  "de0",      "0\"",
          "\":",  "\": ",    "\":1",   "\":\"",       "\"a\"",      "a\"",      "aa",       "ab",
          "a\":", "b\":1,",  ",\"",    ", \"a",       "\"}",        "1}",       "1,\"a\":", "\\x",
          "\\xe", "\\U0001", "F600",   "\\n",         "\\na",       "n\"",      "\\\"",     "\\\\",
          "\\/",  "\xC3",    "\xA9\"", "\xC3\xA9\":", "\x7F\"",     "{\"",      "{\"a",     "['",
          "'a",   "'a':",    "name",   "x1",          "\\u003c",    "\\u003C/", "\\x3c",    "<",
          "</",   "\\u00e9", "\\xe9",  "\\U000000e9"}) {
      more.push_back({text, TokenType::normal});
    }
    return test::byte_vocabulary(more);
  }();
  return vocabulary;
}

// Walks by masks, each equal to what trying every token gives and never empty before the end.
// Returns what is wrong, if anything.
template <class C>
std::string walk_masks(const C& constraint, std::mt19937& random, std::size_t steps) {
  const Vocabulary& vocabulary = constraint.vocabulary();
  TokenMask mask(vocabulary.size());
  auto state = constraint.initial();
  std::string text;
  for (std::size_t step = 0; step < steps && !constraint.is_finished(state); ++step) {
    constraint.fill_mask(state, mask.words());
    std::vector<TokenId> allowed, ending;
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const auto token = static_cast<TokenId>(i);
      const bool taken = constraint.advance(state, token).has_value();
      if (taken != mask.contains(token)) {
        return "after " + text + " the token '" + std::string(vocabulary.name(token)) +
               (taken ? "' is taken and not allowed" : "' is allowed and not taken");
      }
      if (!taken) continue;
      allowed.push_back(token);
      const std::string_view name = vocabulary.name(token);
      if (name.size() > 1 || name == "\"" || name == ":" || name == "\\") ending.push_back(token);
    }
    if (allowed.empty()) return "nothing may follow " + text;
    const auto& drawn   = ending.empty() || random() % 3 == 0 ? allowed : ending;
    const TokenId token = drawn[random() % drawn.size()];
    text += vocabulary.bytes(token);
    state = *constraint.advance(state, token);
  }
  return "";
}

}  // namespace

TEST_CASE("SchemaCompiler takes every spelling of a key as that key and counts different keys",
          "[keys_and_masks]") {
  std::size_t accepted = 0, refused = 0, repeated = 0, without_values = 0;
  for (std::uint32_t seed = 1; seed <= 1500; ++seed) {
    KeyMaker make{std::mt19937(seed)};
    const Rules rules = make.rules();
    const bool python = make.below(3) == 0;
    const Json schema = make.schema(rules);
    Grammar grammar;
    INFO("seed " << seed << ", schema " << schema.text());
    std::optional<Automaton> automaton;
    try {
      SchemaOptions options;
      options.syntax         = python ? ValueSyntax::python : ValueSyntax::json;
      options.every_spelling = seed % 2 == 0;
      const NodeId root      = SchemaCompiler(grammar, schema, options).value(schema, "#");
      automaton.emplace(grammar, root);
    } catch (const Error& error) {
      if (error.code() != Errc::unsatisfiable_schema) throw;
      ++without_values;
    }
    for (int i = 0; i < 40; ++i) {
      std::vector<WrittenMember> members;
      for (std::size_t n = make.below(5); n > 0; --n) {
        Text name = make.text();
        if (!rules.named.empty() && make.below(2))
          name = rules.named[make.below(rules.named.size())].first;
        if (!rules.required.empty() && make.below(4) == 0) name = *rules.required.begin();
        if (!rules.dependent.empty() && make.below(4) == 0) name = rules.dependent[0].second;
        if (!members.empty() && make.below(8) == 0) name = members[0].name;
        members.push_back({name, make.below(2) == 0});
      }
      std::string text         = "{";
      make.has_needless_escape = false;
      for (const WrittenMember& member : members) {
        if (text.size() > 1) text += ", ";
        text += make.spelt(member.name, python) + ": " + (member.is_integer ? "1" : "\"s\"");
      }
      text += '}';
      INFO("text " << text);
      const Judgement wanted = judge(rules, members);
      const auto end = automaton ? automaton->advance(automaton->initial(), text) : std::nullopt;
      const bool accepts = end && automaton->is_accepting(*end);
      if (accepts) {
        REQUIRE(wanted.conforms);
        REQUIRE_FALSE(wanted.repeats_named);
      } else if (!wanted.repeats_named && !wanted.repeats_other &&
                 (seed % 2 == 0 || !make.has_needless_escape)) {
        REQUIRE_FALSE(wanted.conforms);
      }
      ++(accepts ? accepted : refused);
      repeated += accepts && wanted.repeats_other;
    }
  }
  INFO(accepted << " accepted, " << refused << " refused, " << repeated << " with repeated keys, "
                << without_values << " schemas without values");
  CHECK(accepted > 5000);
  CHECK(refused > 20000);
  CHECK(repeated > 20);
  CHECK(without_values < 600);
}

TEST_CASE("Constraint over keys in any spelling has masks of exactly the accepted tokens",
          "[keys_and_masks]") {
  const VocabularyIndex cache(cutting_vocabulary());
  std::size_t walks = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    KeyMaker make{std::mt19937(seed)};
    const Rules rules = make.rules();
    const Json schema = make.schema(rules);
    INFO("seed " << seed << ", schema " << schema.text());
    SchemaOptions options;
    if (seed % 3 == 0) options.syntax = ValueSyntax::python;
    options.documented_order = seed % 5 == 0;
    options.every_spelling   = seed % 2 == 0;
    if (seed % 7 < 3) options.excluded = {seed % 7 == 0 ? "<" : "</"};
    std::optional<Constraint> constraint;
    try {
      constraint.emplace(cache, Grammar::json_schema(schema, options));
    } catch (const Error& error) {
      if (error.code() != Errc::unsatisfiable_schema) throw;
      continue;
    }
    for (int walk = 0; walk < 2; ++walk, ++walks) {
      REQUIRE(walk_masks(*constraint, make.random, 10 + make.below(30)) == "");
    }
  }
  CHECK(walks > 300);
}

TEST_CASE("ToolCallFSM knows keys in every spelling, and has masks of exactly the accepted tokens",
          "[keys_and_masks]") {
  const VocabularyIndex cache(cutting_vocabulary());
  const auto tools = ToolSet::parse(
      R"([{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"},
        "o":{"type":"object","properties":{"\u00e9":{"type":"string"},"\u65e5\"":false,
                                           "b\u007f":{"type":"integer"}},
             "required":["\u00e9"],"minProperties":2,"additionalProperties":true}},
        "required":["o"]}}])");
  const ToolCallFSM hermes{cache, tools, JsonCall::hermes(), {.choice = ToolChoice::required}};
  const ToolCallFSM python{cache, tools, PythonCall{}, {.choice = ToolChoice::required}};
  const auto accepts = [](const ToolCallFSM& calls, std::string_view text) {
    const auto end = calls.advance_bytes(calls.initial(), text);
    return end && calls.is_accepting(*end);
  };
  const auto in_hermes = [&](const std::string& object) {
    return accepts(hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"o\": " + object +
                               "}}\n</tool_call>");
  };
  const auto in_python = [&](const std::string& object) {
    return accepts(python, "[f(o=" + object + ")]");
  };
  CHECK(in_hermes(R"({"\u00E9": "x", "c": 1})"));
  CHECK(in_hermes(R"({"\u00e9": "x", "b\u007F": 1})"));
  CHECK_FALSE(in_hermes(R"({"\u00e9": "x", "\u0062\u007F": 1})"));  // no writer escapes a letter
  CHECK_FALSE(in_hermes(R"({"\u00E9": 5, "c": 1})"));
  CHECK_FALSE(in_hermes(R"({"\u00E9": "x", "b\u007F": "x"})"));
  CHECK_FALSE(in_hermes("{\"\\u00E9\": \"x\", \"b\x7F\": \"x\"}"));
  CHECK_FALSE(in_hermes(R"({"\u00E9": "x", "\u65E5\u0022": 1})"));
  CHECK_FALSE(in_hermes(R"({"\u00E9": "x"})"));
  CHECK(in_python(R"({'\xE9': 'x', 'c': 1})"));
  CHECK(in_python(R"({"\U000000e9": 'x', 'b\x7F': 1})"));
  CHECK_FALSE(in_python(R"({'\xE9': 5, 'c': 1})"));
  CHECK_FALSE(in_python(R"({'\xE9': 'x', '\u65E5"': 1})"));
  CHECK_FALSE(in_python("{'\\xE9': 'x', 'b\x7F': 'x'}"));
  CHECK_FALSE(in_python(R"({'\xE9': 'x', "\xe9": 'x'})"));
  std::mt19937 random(11);
  for (int walk = 0; walk < 6; ++walk) {
    REQUIRE(walk_masks(hermes, random, 60) == "");
    REQUIRE(walk_masks(python, random, 60) == "");
  }
}
