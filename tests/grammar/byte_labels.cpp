#include <span>
#include <string>
#include <string_view>

#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/byte_labels.hpp>
#include <tooldecode/grammar/grammar.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;

namespace {

// The innermost mark, or `-` without marks.
ByteLabels::Label innermost(std::span<const std::uint32_t> marks) {
  return marks.empty() ? '-' : marks.front();
}

/// The bytes followed by their labels; a dot for each step that labels no byte.
std::string labelled(const Automaton& automaton, std::string_view text, bool* whole = nullptr) {
  ByteLabels labels(automaton, automaton.initial(), innermost);
  std::string result;
  const auto take = [&](char byte, ByteLabels::Label label) {
    result += byte;
    result += static_cast<char>(label);
  };
  for (const char byte : text) {
    const std::size_t before = result.size();
    if (!labels.push(byte, take)) return result + '!';
    if (result.size() == before) result += '.';
  }
  const bool is_whole = labels.finish(take);
  if (whole != nullptr) *whole = is_whole;
  return result;
}

}  // namespace

TEST_CASE("ByteLabels labels each byte by its marks once all readings agree") {
  Grammar g;
  // Repeats "ab" marked X or "ac" marked Y, then "d" without a mark.
  const NodeId x    = g.tagged('X', g.literal("ab"));
  const NodeId y    = g.tagged('Y', g.literal("ac"));
  const NodeId item = g.sequence({g.choice({x, y}), g.literal("d")});
  const NodeId root = g.repeat(item, {}, g.empty());
  const Automaton automaton(g, root);
  bool whole = false;
  CHECK(labelled(automaton, "abdacd", &whole) == ".aXbXd-.aYcYd-");
  CHECK(whole);
  CHECK(labelled(automaton, "abda", &whole) == ".aXbXd-.aX");
  CHECK_FALSE(whole);
  CHECK(labelled(automaton, "abb") == ".aXbX!");
}

TEST_CASE("ByteLabels keeps the labels of the first of two readings that reach the same position") {
  Grammar g;
  const NodeId tail = g.repeat(g.literal("b"), {}, g.empty());
  const NodeId root =
      g.sequence({g.choice({g.tagged('X', g.literal("a")), g.tagged('Y', g.literal("a"))}), tail});
  const Automaton automaton(g, root);
  CHECK(labelled(automaton, "abb") == "aXb-b-");
}

TEST_CASE("ByteLabels::all_next tells whether a predicate holds for the label of each next byte") {
  Grammar g;
  const NodeId root = g.sequence({g.tagged('X', g.literal("a")), g.optional(g.literal("b"))});
  const Automaton automaton(g, root);
  ByteLabels labels(automaton, automaton.initial(), innermost);
  const auto is_x = [](ByteLabels::Label label) { return label == 'X'; };
  CHECK(labels.all_next(is_x));
  REQUIRE(labels.push('a', [](char, ByteLabels::Label) {}));
  CHECK_FALSE(labels.all_next(is_x));
  CHECK_FALSE(labels.push('a', [](char, ByteLabels::Label) {}));
  CHECK(labels.push('b', [](char, ByteLabels::Label) {}));
}
