#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

struct ReadSet {
  NodeStore store;
  StoredId id;
  KeyReader reader{store};

  ReadSet(const std::vector<std::string>& names, const char* others, Occurrences count = {},
          bool every_spelling = true) {
    Grammar grammar;
    const NodeId value = grammar.literal(":");
    KeyedSet set{.members        = {},
                 .others         = {},
                 .separator      = grammar.literal(","),
                 .count          = count,
                 .strings        = ValueSyntax::json,
                 .every_spelling = every_spelling};
    for (const std::string& name : names) {
      set.members.push_back({{StringEscape::quoted(name, ValueSyntax::json, '"')}, value, false});
    }
    if (others != nullptr) {
      const Dfa lexeme = key_lexeme(compile_pattern(others), ValueSyntax::json, '"');
      set.others.push_back({std::make_shared<const Dfa>(lexeme), value});
    }
    id = store.add(grammar, grammar.keyed_set(set));
  }
  [[nodiscard]] const KeyReader::Node& node() const { return *store[id].as<KeyReader::Node>(); }
  // What the last byte of a key leads to: "member 0", "other" or "inside"; "" if it is rejected.
  std::string read(std::string_view key, MembersSeen::Set seen = {}) {
    KeyReader::KeyPosition at = 0;
    Dfa::State state          = Dfa::dead;
    for (std::size_t i = 0; i < key.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(key[i]);
      if (state != Dfa::dead) {  // in the lexeme of other keys
        state = store.lexeme(node().others[0].key).next(state, byte);
        if (state == Dfa::dead) return "";
        continue;
      }
      KeyReader::Steps steps;
      reader.read(node(), seen, at, byte, steps);
      if (reader.seen().may_add(node(), seen)) {
        if (const auto inside = reader.inside(node(), seen, at, byte)) {
          ++found_inside;
          REQUIRE((steps.size() == 1 && steps[0].kind == KeyReader::Step::Kind::inside));
          REQUIRE(steps[0].at == *inside);
        }
      }
      if (steps.empty()) return "";
      REQUIRE(steps.size() == 1);
      switch (steps[0].kind) {
        case KeyReader::Step::Kind::inside:
          REQUIRE(reader.candidates(node(), at).contains(byte));
          at = steps[0].at;
          break;
        case KeyReader::Step::Kind::other:
          state = steps[0].at;
          break;
        case KeyReader::Step::Kind::member:
          return i + 1 == key.size() ? "member " + std::to_string(steps[0].index) : "too early";
        default:
          number = steps[0].at;
          return i + 1 == key.size() ? "other" : "too early";
      }
    }
    if (state == Dfa::dead) return "inside";
    return store.lexeme(node().others[0].key).accepting(state) ? "other" : "inside";
  }
  std::uint32_t number     = 0;  // of the last other key that ended
  std::size_t found_inside = 0;  // by KeyReader::inside
};

}  // namespace

TEST_CASE("KeyReader reads the key of a member in each spelling and no other key", "[key_reader]") {
  ReadSet set({"citt\xC3\xA0", "a\x0B", "\xF0\x9F\x98\x80", "x/\x7F"}, nullptr);
  for (const char* key : {"\"citt\xC3\xA0\"", R"("citt\u00E0")", R"("\u0063itt\u00e0")"}) {
    CHECK(set.read(key) == "member 0");
  }
  for (const char* key : {R"("a\u000b")", R"("a\u000B")"}) CHECK(set.read(key) == "member 1");
  for (const char* key : {R"("\ud83d\ude00")", R"("\uD83D\uDe00")", "\"\xF0\x9F\x98\x80\""}) {
    CHECK(set.read(key) == "member 2");
  }
  for (const char* key : {"\"x/\x7F\"", R"("x\/\u007F")"}) CHECK(set.read(key) == "member 3");
  for (const char* key :
       {R"("citt\u00E1)", R"("\ud83d\ude01)", R"("\ud83e)", R"("x\u005c)", "\"b"}) {
    CHECK(set.read(key) == "");
  }
  CHECK(set.read(R"("\ud83d\ude0)") == "inside");
}

TEST_CASE("KeyReader reads other keys only if they differ from members and never enters a dead end",
          "[key_reader]") {
  ReadSet set({"ab"}, "^a[bc]$");
  CHECK(set.read(R"("a\u0062")") == "member 0");
  CHECK(set.read(R"("a\u0063")") == "other");
  CHECK(set.read(R"("\u0061\u006)") == "inside");
  CHECK(set.found_inside > 0);
  const auto seen = set.reader.seen().after(set.node(), {}, 0);
  CHECK(set.read(R"("a\u0063")", seen) == "other");
  CHECK(set.read(R"("a\u0062)", seen) == "");
  CHECK(set.read("\"ab", seen) == "");
  ReadSet dead({"ab", "ac"}, "^(a[bc]|d)$");
  auto all = dead.reader.seen().after(dead.node(), {}, 0);
  all      = dead.reader.seen().after(dead.node(), all, 1);
  CHECK(dead.read("\"a", all) == "");
  CHECK(dead.read(R"("\u0061)", all) == "");
  CHECK(dead.read(R"("\u006)", all) == "inside");  // of d
}

TEST_CASE("KeyReader rejects a repeated key in each spelling while a minimum needs different keys",
          "[key_reader]") {
  ReadSet set({}, "", {2, Occurrences::unbounded});
  REQUIRE(set.read(R"("\u0061\n")") == "other");
  REQUIRE(set.number != 0);
  const auto seen = set.reader.seen().after_other(set.node(), {}, set.number);
  for (const char* key : {R"("a\n")", R"("\u0061\u000A")", R"("a\u000a")"}) {
    CHECK(set.read(key, seen) == "");
  }
  CHECK(set.read(R"("a\n\u0061")", seen) == "other");
  CHECK(set.read(R"("a\n)", seen) == "inside");
  CHECK(set.read(R"("A\n")", seen) == "other");
}

TEST_CASE("KeyReader remembers a long key in memory linear in its length", "[key_reader]") {
  ReadSet set({}, "", {2, Occurrences::unbounded});
  std::string key = "\"";
  while (key.size() < 3'000) key += "ab\\n" + std::to_string(key.size());
  key += '"';
  REQUIRE(set.read(key) == "other");
  CHECK(set.reader.bytes() < 2'000'000);
  const auto seen = set.reader.seen().after_other(set.node(), {}, set.number);
  CHECK(set.read(key, seen) == "");
  CHECK(set.read(key.substr(0, key.size() - 2) + '"', seen) == "other");

  // Another reader of the same nodes numbers places in another order.
  KeyReader other(set.store);
  KeyReader::Steps steps;
  other.read(set.node(), {}, 0, '"', steps);
  const auto adopted = other.adopt(set.reader, set.node(), seen);
  const auto known   = other.seen().remembered(set.node(), adopted);
  REQUIRE(known.size() == 1);
  KeyReader::KeyPosition at = 0;
  for (std::size_t i = 0; i < key.size(); ++i) {
    steps.clear();
    other.read(set.node(), adopted, at, static_cast<std::uint8_t>(key[i]), steps);
    REQUIRE(steps.size() == (i + 1 == key.size() ? 0U : 1U));
    if (!steps.empty()) at = steps[0].at;
  }
}

TEST_CASE("KeyReader reads a byte of a long key without going over what was read before",
          "[key_reader]") {
  ReadSet set({}, "", {2, Occurrences::unbounded});
  constexpr std::size_t size = 20'000;
  std::string key            = "\"";
  while (key.size() < size) key += "ab\\n\\u00e9" + std::to_string(key.size());
  MembersSeen::Set seen{};
  // Another key; the same one; one that begins as the other does; one that never does.
  for (const std::string& one : {key + '"', key + '"', key + "a\"", "\"b" + key.substr(1) + '"'}) {
    const bool is_known = seen != MembersSeen::Set{} && one == key + '"';
    const BuildBudget budget;
    REQUIRE(set.read(one, seen) == (is_known ? "" : "other"));
    CHECK(budget.spent().steps < 100 * size);
    if (!is_known) seen = set.reader.seen().after_other(set.node(), seen, set.number);
  }
}

TEST_CASE("KeyReader looks for other keys along a remembered one step by step", "[key_reader]") {
  // Behind `a` only `b` may come, as in the remembered key: its end alone shows that there are others.
  ReadSet set({}, "^(ab)*$", {9, Occurrences::unbounded});
  const auto repeated = [](std::size_t count) {
    std::string text = "\"";
    for (std::size_t i = 0; i < count; ++i) text += "ab";
    return text + '"';
  };
  MembersSeen::Set seen{};
  for (const std::size_t count : {2'000U, 0U, 1U, 3U}) {
    REQUIRE(set.read(repeated(count), seen) == "other");
    seen = set.reader.seen().after_other(set.node(), seen, set.number);
    CHECK(set.read(repeated(count), seen) == "");
  }
  const BuildBudget budget;
  CHECK(set.read(repeated(2), seen) == "other");
  CHECK(set.read(repeated(1'999), seen) == "other");
  CHECK(set.read(repeated(2'001), seen) == "other");
  CHECK(budget.spent().steps < 8'000 * 4'000);  // bytes read, bytes of the remembered key

  // Of a lexeme with few keys no place in the last of them is left.
  ReadSet few({}, "^(x|abcdefgh|abcdefgi)$", {9, Occurrences::unbounded});
  REQUIRE(few.read("\"abcdefgh\"") == "other");
  seen = few.reader.seen().after_other(few.node(), {}, few.number);
  CHECK(few.read("\"abcdefg", seen) == "inside");
  REQUIRE(few.read("\"abcdefgi\"", seen) == "other");
  seen = few.reader.seen().after_other(few.node(), seen, few.number);
  CHECK(few.read("\"a", seen) == "");
  CHECK(few.read("\"x", seen) == "inside");
}

TEST_CASE("KeyReader reads unusual escapes in a member's key only if every spelling is allowed") {
  for (const bool every : {false, true}) {
    CAPTURE(every);
    for (const char* others : {static_cast<const char*>(nullptr), "", "^[a-d]*$"}) {
      ReadSet set({"ab", "a/\u00e9"}, others, {}, every);
      const bool is_open = others != nullptr;
      CHECK(set.read("\"ab\"") == "member 0");
      CHECK(set.read("\"\\u0061b\"") == (every ? "member 0" : ""));
      CHECK(set.read("\"a\\u0062\"") == (every ? "member 0" : ""));
      CHECK(set.read("\"a\\u006") == (every || is_open ? "inside" : ""));
      CHECK(set.read("\"a\\/\\u00E9\"") == "member 1");
      CHECK(set.read("\"a\\u002f\u00e9\"") == "member 1");
      CHECK(set.read("\"a\\u0063\"") == (is_open ? "other" : ""));  // may be another key
    }
    ReadSet closed({"abc"}, nullptr, {}, every);
    CHECK(closed.read("\"a\\") == (every ? "inside" : ""));  // the key is the only continuation
  }
}

TEST_CASE("KeyReader reads a key of any length") {
  const std::string name(200'000, 'a');
  ReadSet set({name, name + 'b', "c"}, nullptr, {}, false);
  CHECK(set.read('"' + name + '"') == "member 0");
  CHECK(set.read('"' + name + "b\"") == "member 1");
  CHECK(set.read('"' + name + 'a').empty());
}

TEST_CASE("KeyReader goes on from a key only where an available member's key does") {
  ReadSet set({"a", "ab", "abc", "b"}, nullptr, {}, false);
  MembersSeen::Set seen;
  CHECK(set.read("\"ab", seen) == "inside");
  seen = set.reader.seen().after(set.node(), seen, 2);
  CHECK(set.read("\"abc", seen).empty());
  CHECK(set.read("\"ab", seen) == "inside");
  seen = set.reader.seen().after(set.node(), seen, 1);
  CHECK(set.read("\"ab", seen).empty());
  CHECK(set.read("\"a", seen) == "inside");
  CHECK(set.reader.has_more(set.node(), 0, seen));
  for (const std::uint32_t member : {0U, 3U}) {
    seen = set.reader.seen().after(set.node(), seen, member);
  }
  CHECK_FALSE(set.reader.has_more(set.node(), 0, seen));
}
