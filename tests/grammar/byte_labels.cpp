#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/byte_labels.hpp>
#include <tooldecode/grammar/grammar.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;

namespace {

// The innermost mark, or -.
ByteLabels::Label innermost(std::span<const std::uint32_t> marks) {
  return marks.empty() ? '-' : marks.front();
}

/// Bytes with their labels, one after the other, and where no byte has one a dot.
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

TEST_CASE("A byte is labelled by the marks around it, when all readings agree") {
  Grammar g;
  // "ab" as X, or "ac" as Y; then "d" without a mark, and again.
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

TEST_CASE("Readings that come to the same position differ no more") {
  Grammar g;
  const NodeId tail = g.repeat(g.literal("b"), {}, g.empty());
  const NodeId root =
      g.sequence({g.choice({g.tagged('X', g.literal("a")), g.tagged('Y', g.literal("a"))}), tail});
  const Automaton automaton(g, root);
  CHECK(labelled(automaton, "abb") == "aXb-b-");
}

TEST_CASE("What the next byte may be is known once all have labels") {
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
