#include <cstddef>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/research/graphviz.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;
using namespace tooldecode::grammar;

namespace {

std::string draw(const char* grammar, std::size_t max_states = 200) {
  const Grammar parsed = parse_grammar(grammar);
  const Automaton automaton(parsed);
  return write_graphviz(automaton, automaton.initial(), max_states);
}

}  // namespace

TEST_CASE("write_graphviz prints a small automaton with escaped labels") {
  CHECK(draw("root ::= \"a\" [b-d\"\\\\x]* \"-\"") == R"(digraph automaton {
  rankdir=LR;
  begin [shape=point];
  begin -> 0;
  0 [shape=circle];
  0 -> 1 [label="a"];
  1 [shape=circle];
  1 -> 1 [label="\"\\\\b-dx"];
  1 -> 2 [label="\\-"];
  2 [shape=doublecircle];
}
)");
}

TEST_CASE("write_graphviz prints a graph that accepts what its grammar accepts") {
  std::istringstream lines(
      draw("root ::= root \"+\" term | term\nterm ::= \"a\" | \"(b)\" \"c\"?"));
  std::map<std::pair<int, char>, int> edges;
  std::set<int> accepting;
  for (std::string line; std::getline(lines, line);) {
    int from = 0, to = 0;
    char bytes[16];
    if (std::sscanf(line.c_str(), " %d -> %d [label=\"%15[^\"]", &from, &to, bytes) == 3) {
      for (const char* c = bytes; *c != 0; ++c) edges[{from, *c}] = to;
    } else if (line.find("doublecircle") != std::string::npos) {
      accepting.insert(std::stoi(line));
    }
  }
  const auto accepts = [&](const std::string& text) {
    int at = 0;
    for (const char c : text) {
      const auto edge = edges.find({at, c});
      if (edge == edges.end()) return false;
      at = edge->second;
    }
    return accepting.count(at) != 0;
  };
  for (const char* text : {"a", "a+a", "(b)+a", "(b)c+(b)c"}) CHECK(accepts(text));
  for (const char* text : {"", "a+", "(b", "ac", "a+a+(b)cc"}) CHECK_FALSE(accepts(text));
}

TEST_CASE("write_graphviz throws limit_exceeded for more than max_states states") {
  CHECK_NOTHROW(draw("root ::= \"aaaa\"", 5));
  try {
    (void)draw("root ::= \"aaaa\"", 4);
    FAIL("drawn");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::limit_exceeded);
    CHECK(std::string(error.what()) == "max_states 4: must be as many as texts reach, or more");
  }
}
