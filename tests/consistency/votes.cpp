#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_writer.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

using Json = tooldecode::JsonValue;

struct Said {
  std::string key;
  Json value;
  double log_probability = 0;
};

Candidate candidate(std::size_t order, const std::vector<Said>& values, bool complete = true) {
  Candidate result{.order = order, .is_complete = complete};
  for (const auto& [key, value, log_probability] : values) {
    result.values.push_back({key, value, log_probability});
  }
  return result;
}

// Values that differ in spelling only are among them.
CandidateValue random_value(const std::string& key, std::mt19937& random) {
  const Json values[] = {1, 1.0, 2, "x", Json{{"p", 1}, {"q", 2}}, Json{{"q", 2.0}, {"p", 1}}};
  return {key, values[random() % 6], -static_cast<double>(random() % 8) / 4};
}

Candidate random_candidate(std::size_t order, std::mt19937& random) {
  Candidate result = candidate(order, {}, random() % 5 != 0);
  for (const char* key : {"a", "b", "c"}) {
    if (random() % 4 != 0) result.values.push_back(random_value(key, random));
  }
  result.log_probability = -static_cast<double>(random() % 8) / 4;
  return result;
}

// The winners as they are written, without parameters that are left out.
std::string winners(const std::vector<Candidate>& candidates, std::span<const std::string> keys,
                    VoteRule rule) {
  std::string text;
  for (const ParameterVote& parameter : vote(candidates, keys, rule)) {
    const auto& value = parameter.choices.front().value;
    if (value) text += parameter.key + "=" + text::write_json(*value) + ";";
  }
  return text;
}

const std::vector<std::string> one_key{"a"};

}  // namespace

TEST_CASE("vote by majority counts equal values, not spellings") {
  const std::vector<Candidate> candidates{
      candidate(0, {{"a", "x", -0.1}}), candidate(1, {{"a", 1, -2}}),
      candidate(2, {{"a", 1.0, -3}}), candidate(3, {{"a", "1", -0.1}})};
  const auto votes = vote(candidates, one_key);
  REQUIRE(votes.size() == 1);
  CHECK(*votes[0].choices[0].value == 1);
  CHECK(votes[0].choices[0].votes == 2);
  CHECK(votes[0].choices[0].log_probability == Approx(-2.5));
  CHECK(votes[0].choices.size() == 3);
  CHECK(votes[0].agreement() == Approx(0.5));
}

TEST_CASE("vote with a tie takes the greater mean log-probability, then the lower order") {
  std::vector<Candidate> candidates{candidate(0, {{"a", "x", -1}}),
                                    candidate(1, {{"a", "y", -0.5}})};
  CHECK(*vote(candidates, one_key)[0].choices[0].value == "y");
  candidates[1].values[0].log_probability = -1;
  CHECK(*vote(candidates, one_key)[0].choices[0].value == "x");
}

TEST_CASE("vote by log-probability weighs candidates, and by first_order takes the first alone") {
  const std::vector<Candidate> candidates{candidate(0, {{"a", "x", -3}}),
                                          candidate(1, {{"a", "x", -3}}),
                                          candidate(2, {{"a", "y", -0.1}})};
  CHECK(*vote(candidates, one_key, VoteRule::majority)[0].choices[0].value == "x");
  const auto weighed = vote(candidates, one_key, VoteRule::log_probability);
  CHECK(*weighed[0].choices[0].value == "y");
  CHECK(weighed[0].agreement() == Approx(std::exp(-0.1) / (std::exp(-0.1) + 2 * std::exp(-3))));
  const auto first = vote(candidates, one_key, VoteRule::first_order);
  CHECK(*first[0].choices[0].value == "x");
  CHECK(first[0].agreement() == 1);
}

TEST_CASE("vote counts a parameter that is left out, except in a candidate that was cut") {
  std::vector<Candidate> candidates{candidate(0, {}), candidate(1, {{"a", 1, -1}}),
                                    candidate(2, {}, false), candidate(3, {})};
  auto votes = vote(candidates, one_key);
  CHECK_FALSE(votes[0].choices[0].value.has_value());
  CHECK(votes[0].choices[0].votes == 2);
  candidates[2].values.push_back({"a", Json(1), -1});  // cut after it
  candidates.pop_back();
  votes = vote(candidates, one_key);
  CHECK(votes[0].choices[0].value == Json(1));
}

TEST_CASE("vote includes undocumented parameters after the others") {
  const std::vector<Candidate> candidates{candidate(0, {{"z", 1, -1}, {"a", 2, -1}}),
                                          candidate(1, {{"a", 2, -1}})};
  const auto votes = vote(candidates, one_key);
  REQUIRE(votes.size() == 2);
  CHECK(votes[0].key == "a");
  CHECK(votes[1].key == "z");
  CHECK(vote(std::span<const Candidate>(), one_key).empty());
}

TEST_CASE("vote does not depend on the order of the candidates") {
  std::mt19937 random(11);
  const std::vector<std::string> keys{"a", "b", "c"};
  for (int round = 0; round < 500; ++round) {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < 1 + random() % 8; ++i) {
      candidates.push_back(random_candidate(i, random));
    }
    for (const VoteRule rule :
         {VoteRule::majority, VoteRule::log_probability, VoteRule::first_order}) {
      INFO("round " << round << ", rule " << static_cast<int>(rule));
      const auto expected = vote(candidates, keys, rule);
      auto shuffled       = candidates;
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      const auto got = vote(shuffled, keys, rule);
      REQUIRE(got.size() == expected.size());
      for (std::size_t p = 0; p < got.size(); ++p) {
        REQUIRE(got[p].key == expected[p].key);
        REQUIRE(got[p].choices.size() == expected[p].choices.size());
        for (std::size_t c = 0; c < got[p].choices.size(); ++c) {
          const Choice &a = got[p].choices[c], &b = expected[p].choices[c];
          REQUIRE(a.value == b.value);
          REQUIRE(a.votes == b.votes);
          REQUIRE(a.weight == b.weight);
          REQUIRE(a.log_probability == b.log_probability);
          REQUIRE(a.order == b.order);
        }
      }
    }
  }
}

TEST_CASE("votes_needed is 0 only when no further vote can change a winner") {
  std::mt19937 random(12);
  const std::vector<std::string> keys{"a"};  // "b" and "c" are undocumented
  std::size_t settled = 0, open = 0, gaps = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto rule       = static_cast<VoteRule>(random() % 3);
    const std::size_t all = 4 + random() % 6;
    std::vector<std::size_t> orders(all);
    std::iota(orders.begin(), orders.end(), 0);
    // Orders that run together end in any sequence.
    if (random() % 2 == 0) std::shuffle(orders.begin(), orders.end(), random);
    const std::size_t known = all - 1 - random() % 3;
    // Alike, as candidates of a good model are.
    const Candidate first = random_candidate(0, random);
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < known; ++i) {
      candidates.push_back(random() % 4 == 0 ? random_candidate(0, random) : first);
      candidates.back().order = orders[i];
    }
    INFO("round " << round << ", rule " << static_cast<int>(rule) << ", " << known << " of "
                  << all);
    const std::string before = winners(candidates, keys, rule);
    const std::size_t needed = votes_needed(candidates, keys, rule, all - known);
    CHECK(needed <= all - known);
    (needed == 0 ? settled : open) += 1;
    if (needed > 0) continue;
    gaps += *std::min_element(orders.begin() + static_cast<std::ptrdiff_t>(known), orders.end()) <
            known;
    for (int completion = 0; completion < 40; ++completion) {
      auto whole = candidates;
      for (std::size_t i = known; i < all; ++i) {
        whole.push_back(random_candidate(orders[i], random));
        if (completion % 2 == 0) whole.back() = whole[known], whole.back().order = orders[i];
      }
      // A parameter that no candidate had may still appear, but never win.
      REQUIRE(winners(whole, keys, rule) == before);
    }
  }
  CHECK(gaps > 100);
  CHECK(settled > 200);
  CHECK(open > 200);
  CHECK(votes_needed({}, keys, VoteRule::majority, 5) == 3);
  CHECK(votes_needed({}, keys, VoteRule::majority, 0) == 0);
}

TEST_CASE("votes_needed asks for a lower order that could spell the winner otherwise") {
  const std::vector<Candidate> numbers{candidate(0, {{"a", 2, -1}}), candidate(2, {{"a", 1, -1}}),
                                       candidate(3, {{"a", 1, -1}}), candidate(4, {{"a", 1, -1}})};
  CHECK(votes_needed(numbers, one_key, VoteRule::majority, 1) == 1);
  auto with_it = numbers;
  with_it.push_back(candidate(1, {{"a", 1.0, -1}}));
  CHECK(votes_needed(with_it, one_key, VoteRule::majority, 1) == 0);
  const std::vector<Candidate> texts{candidate(0, {{"a", "y", -1}}), candidate(2, {{"a", "x", -1}}),
                                     candidate(3, {{"a", "x", -1}}),
                                     candidate(4, {{"a", "x", -1}})};
  CHECK(votes_needed(texts, one_key, VoteRule::majority, 1) == 0);
}

TEST_CASE("votes_needed is enough when all those votes agree") {
  std::mt19937 random(13);
  const std::vector<std::string> keys{"a", "b", "c"};
  for (int round = 0; round < 300; ++round) {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < random() % 5; ++i)
      candidates.push_back(random_candidate(i, random));
    const std::size_t remaining = 1 + random() % 7;
    const std::size_t needed    = votes_needed(candidates, keys, VoteRule::majority, remaining);
    Candidate winner            = candidate(0, {});
    for (const ParameterVote& parameter : vote(candidates, keys)) {
      const auto& value = parameter.choices.front().value;
      if (value) winner.values.push_back({parameter.key, *value, -1});
    }
    for (std::size_t i = 0; i < needed; ++i) {
      winner.order = 100 + i;
      candidates.push_back(winner);
    }
    INFO("round " << round);
    CHECK(votes_needed(candidates, keys, VoteRule::majority, remaining - needed) == 0);
  }
}
