// The program's trace files: spans that nest on each thread, texts of whole characters.
#include <chrono>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>

#include <program/answer_trace.hpp>
#include <program/timeline.hpp>
#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using program::AnswerTrace;
using program::Json;
using program::TimelineSpan;

namespace {

using Clock = TimelineSpan::Clock;

Clock::time_point at(int nanoseconds) {
  return Clock::time_point(std::chrono::nanoseconds(nanoseconds));
}

Output bytes_one_by_one(const std::string& text, std::optional<TokenId> end = {}) {
  Output output;
  output.end_token = end;
  for (const char c : text) output.tokens.push_back(static_cast<unsigned char>(c));
  for (const TokenId token : output.tokens) output.trace.tokens.push_back({.token = token});
  if (end) output.trace.tokens.push_back({.token = *end, .is_end = true});
  output.log_probabilities.resize(output.tokens.size());
  return output;
}

std::vector<std::string> members(const Json& answer, const char* key) {
  std::vector<std::string> texts;
  for (const Json& token : answer["tokens"]) texts.push_back(token[key].string());
  return texts;
}

}  // namespace

TEST_CASE("trace_events puts spans that overlap on a track on threads where they nest") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<TimelineSpan> spans;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      const int begin = static_cast<int>(random() % 50);
      spans.push_back({random() % 2 == 0 ? "a" : "b", std::to_string(i), "model", at(begin),
                       at(begin + static_cast<int>(random() % 20))});
    }
    const Json events = program::trace_events("test", spans);
    std::map<int, std::string> names;
    std::map<int, std::vector<std::pair<double, double>>> threads;
    std::set<std::string> seen;
    for (const Json& event : events) {
      if (event["name"] == "thread_name")
        names[event["tid"].get<int>()] = event["args"]["name"].string();
      if (event["ph"] != "X") continue;
      REQUIRE(seen.insert(event["name"].string()).second);
      REQUIRE(event["dur"].get<double>() >= 0.0);
      REQUIRE(event["ts"].get<double>() >= 0.0);
      const double begin  = event["ts"].get<double>() * 1000,
                   length = event["dur"].get<double>() * 1000;
      threads[event["tid"].get<int>()].emplace_back(begin, begin + length);
    }
    REQUIRE(seen.size() == count);
    REQUIRE(names.size() == threads.size());
    for (const auto& [thread, own] : threads) {
      REQUIRE(names.contains(thread));
      for (std::size_t i = 0; i < own.size(); ++i) {
        for (std::size_t j = i + 1; j < own.size(); ++j) {
          const auto& [a, b]      = own[i];
          const auto& [c, d]      = own[j];
          constexpr double little = 1e-6;
          const bool is_apart     = b <= c + little || d <= a + little;
          const bool is_within =
              (a <= c + little && d <= b + little) || (c <= a + little && b <= d + little);
          REQUIRE((is_apart || is_within));
        }
      }
    }
  }
}

TEST_CASE("trace_events puts a track whose spans nest or follow one another on one thread") {
  const Json events =
      program::trace_events("test", {{"answer", "whole", "answer", at(5), at(30)},
                                     {"answer", "first", "model", at(5), at(12)},
                                     {"answer", "none", "model", at(12), at(12)},
                                     {"answer", "second", "model", at(12), at(30)},
                                     {"answer", "behind", "cache", at(30), at(31)}});
  std::vector<std::string> names;
  for (const Json& event : events) {
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"].string());
    if (event["ph"] == "X") CHECK(event["tid"] == 1);
  }
  CHECK(names == std::vector<std::string>{"answer"});
  CHECK(events[0]["name"] == "whole");
  CHECK(events[0]["ts"] == 0.0);
  CHECK(events[0]["dur"] == 0.025);
}

TEST_CASE("AnswerTrace splits the answer into texts of whole characters") {
  const Vocabulary vocabulary = test::byte_vocabulary();
  AnswerTrace answer(vocabulary, "a");
  answer.add(bytes_one_by_one("x\xE2\x82\xAC\xFF\xE2\x82", 256));
  const Json json = answer.json();
  CHECK(members(json, "text") == std::vector<std::string>{"x", "", "", "\xE2\x82\xAC",
                                                          "\xEF\xBF\xBD", "",
                                                          "\xEF\xBF\xBD\xEF\xBF\xBD", ""});
  CHECK(json["text"] == "x\xE2\x82\xAC\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK_FALSE(json["tokens"][0].contains("bytes"));
  CHECK(json["tokens"][1]["bytes"] == "e2");
  CHECK(json["tokens"][7]["end"] == true);
  CHECK(json["tokens"][7]["name"] == "<end>");
  CHECK(json["totals"]["tokens"] == 7);
}

TEST_CASE("AnswerTrace marks tokens that a method has replaced as supplied") {
  const Vocabulary vocabulary = test::byte_vocabulary();
  const auto kinds = [&](const std::string& written, const std::string& repaired, bool ends) {
    Output output = bytes_one_by_one(written, ends ? std::optional<TokenId>(256) : std::nullopt);
    output.tokens = bytes_one_by_one(repaired).tokens;
    AnswerTrace answer(vocabulary, "a");
    answer.add(output);
    const Json json = answer.json();
    CHECK(json["text"] == repaired);
    std::string marks;
    for (const std::string& kind : members(json, "kind")) marks += kind == "supplied" ? '+' : '.';
    return marks;
  };
  CHECK(kinds("f(x)", "f(x)", true) == ".....");
  CHECK(kinds("f(x)", "fog(x)", true) == ".++....");
  CHECK(kinds("f(x)", "g(x)", false) == "+...");
  CHECK(kinds("(x)", "g(x)", false) == "+...");
  CHECK(kinds("f(x)", "f(x)!", true) == "....+.");
  CHECK(kinds("aaa", "aa", false) == "..");
  CHECK(kinds("", "ab", false) == "++");
  CHECK(kinds("ab", "", true) == ".");
}

TEST_CASE("AnswerTrace joins the turns of an answer, with the results between them") {
  const Vocabulary vocabulary = test::byte_vocabulary();
  AnswerTrace answer(vocabulary, "a");
  Output first = bytes_one_by_one("f()");
  DraftTree tree(0);
  tree.add(0, 'f');
  first.trace.trees.push_back({tree, {1}});
  first.trace.tokens[0].draft = DraftPlace{0, 1};
  answer.add(first);
  answer.add_results(bytes_one_by_one("= 4").tokens, at(10));
  answer.add(first);
  const Json json = answer.json();
  CHECK(json["text"] == "f()f()");
  CHECK(json["totals"]["cached_tokens"] == 3);
  CHECK(json["totals"]["tokens"] == 6);
  CHECK(json["tokens"][3]["kind"] == "cached");
  CHECK(json["tokens"][0]["tree"] == 0);
  CHECK(json["tokens"][6]["tree"] == 1);
  CHECK(json["trees"].size() == 2);
  CHECK(json["trees"][1]["nodes"][1]["accepted"] == true);
}
