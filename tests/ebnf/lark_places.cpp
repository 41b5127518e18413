#include <string_view>

#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/ebnf/lark_places.hpp>
#include <tooldecode/ebnf/lark_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode::ebnf;

namespace {

struct Read {
  explicit Read(std::string_view text)
      : file(LarkReader(text).read()), graph(file, parts), places(graph) {}

  // The place of a literal that occurs once.
  [[nodiscard]] std::size_t at(std::string_view literal) const {
    for (std::size_t place = 0; place < places.size(); ++place) {
      if (graph.lexemes()[graph[places.node(place)].lexeme].literal == literal) return place;
    }
    FAIL("no such literal");
    return 0;
  }

  LarkParts parts{};
  LarkFile file;
  LarkGraph graph;
  LarkPlaces places;
};

}  // namespace

TEST_CASE("LarkPlaces::next follows rules and repetitions") {
  const Read read("start: a* \"t\"\na: \"x\"? b \"y\"\nb: \"z\" | \"(\" b \")\"");
  const auto follows = [&](std::string_view one, std::string_view next) {
    return read.places.next(read.at(one)).contains(read.at(next));
  };
  CHECK(read.places.begins().contains(read.at("t")));
  CHECK(read.places.begins().contains(read.at("(")));
  CHECK_FALSE(read.places.begins().contains(read.at("y")));
  CHECK(follows("y", "x"));
  CHECK(follows("y", "z"));
  CHECK(follows("y", "t"));
  CHECK(follows("z", "y"));
  CHECK(follows("z", ")"));
  CHECK_FALSE(follows("x", "y"));
  CHECK(read.places.next(read.at("t")).empty());
}

TEST_CASE("LarkPlaces::surely holds only for places that always occur together") {
  const Read read("start: a \"x\" | b \"y\"\na: \"1\"\nb: \"2\" c \"3\"\nc: \"4\"? | a");
  CHECK(read.places.surely(read.at("2"), read.at("1")));
  CHECK_FALSE(read.places.surely(read.at("1"), read.at("2")));
  CHECK(read.places.surely(read.at("4"), read.at("3")));
  CHECK_FALSE(read.places.surely(read.at("3"), read.at("4")));
}
