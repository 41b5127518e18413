#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/speller.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

// The state after the bytes, or `dead`; edges must not overlap.
Dfa::State follow(const std::vector<Dfa::SparseRow>& rows, std::string_view bytes) {
  Dfa::State state = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    Dfa::State next = Dfa::dead;
    for (const Dfa::Edge& edge : rows[state].edges) {
      if (edge.first <= byte && byte <= edge.last) {
        REQUIRE(next == Dfa::dead);
        next = edge.to;
      }
    }
    if (next == Dfa::dead) return next;
    state = next;
  }
  return state;
}

}  // namespace

TEST_CASE("Speller leads each character in UTF-8 and in JSON escapes to the state of its run") {
  const Speller::Runs runs{{0, '"', 1},           {'#', 'z', 2},          {0x7F, 0x7FF, 1},
                           {0x800, 0xD7FF, 2},    {0xE123, 0x1F600, 1},   {0x1F601, 0x1FBFF, 2},
                           {0x1FC00, 0x1FFFF, 1}, {0x100000, 0x10FFFE, 2}};
  std::vector<Dfa::SparseRow> json(3), plain(3);
  Speller in_json(json, {}), in_utf8(plain, {});
  Speller::Edges edges;
  in_json.literal(runs, edges);
  json[0].edges = edges;
  edges.clear();
  in_utf8.utf8(runs, edges);
  plain[0].edges    = edges;
  std::size_t wrong = 0;
  for (char32_t c = 0; c <= CodePointSet::last_code_point;
       c += c < 0xE200 || c % 0x400 < 3 ? 1 : 41) {
    if (c >= 0xD800 && c < 0xE000) continue;
    Dfa::State to = Dfa::dead;
    for (const auto& run : runs) to = run.first <= c && c <= run.last ? run.to : to;
    std::string utf8;
    append_utf8(utf8, c);
    const auto inside = [](const std::string& literal) {
      return literal.substr(1, literal.size() - 2);
    };
    const std::string all = inside(nlohmann::json(utf8).dump());
    wrong += follow(plain, utf8) != to;
    wrong += follow(json, all) != to;
    if (c != 0x7F) wrong += follow(json, inside(nlohmann::json(utf8).dump(-1, ' ', true))) != to;
  }
  CHECK(wrong == 0);
  CHECK(json.size() < 60);
}
