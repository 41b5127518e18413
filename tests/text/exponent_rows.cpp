#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/exponent_rows.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("ExponentRows accepts exponents between its bounds with any sign and leading zeros") {
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{
           {0, 0}, {1, 1}, {-7, -7}, {-324, 308}, {3, 308}, {-12, 105}, {99, 101}, {-400, -300}}) {
    std::vector<Dfa::SparseRow> rows(1);
    ExponentRows exponents(rows, -324, 308);
    const Dfa::State mark = exponents.between(from, to);
    rows[0].edges.push_back({'e', 'e', mark});
    const Dfa dfa(rows);
    std::string wrong;
    const auto look = [&, from = from, to = to](const std::string& text, int value) {
      Dfa::State state = dfa.next(0, 'e');
      for (const char c : text) {
        if (state != Dfa::dead) state = dfa.next(state, static_cast<std::uint8_t>(c));
      }
      const bool is_accepted = state != Dfa::dead && dfa.accepting(state);
      const bool fits        = value >= from && value <= to && value >= -324 && value <= 308;
      if (is_accepted != (fits && text.find_last_of("+-") + 4 >= text.size())) wrong += text + ' ';
    };
    INFO(from << " to " << to);
    for (int size = 0; size <= 1100; ++size) {
      const std::string digits = std::to_string(size);
      for (const char* zeros : {"", "0", "00", "000"}) {
        for (const char* sign : {"", "+", "-"}) {
          look(sign + (zeros + digits), *sign == '-' ? -size : size);
        }
      }
    }
    CHECK(wrong == "");
  }
}

TEST_CASE(
    "ExponentRows returns no state for an empty interval and shares states between intervals") {
  std::vector<Dfa::SparseRow> rows;
  ExponentRows exponents(rows, -324, 308);
  CHECK(exponents.between(1, 0) == Dfa::dead);
  CHECK(exponents.between(309, 400) == Dfa::dead);
  const Dfa::State all = exponents.between(-324, 308);
  CHECK(exponents.between(-1000, 1000) == all);
  const std::size_t states = rows.size();
  for (int from = 0; from <= 20; ++from) (void)exponents.between(from, 308);
  CHECK(rows.size() < states + 120);
}
