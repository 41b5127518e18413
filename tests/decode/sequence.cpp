#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

using Tokens = std::vector<td::TokenId>;

/// A run over four tokens, of which the last ends the text.
struct Four {
  explicit Four(td::DecodeOptions settings = {}, std::size_t context = 100)
      : options(std::move(settings)), run{any, prompt, pipeline, options, context} {}

  td::Unconstrained any{4, {3}};
  Tokens prompt{0, 1};
  td::DecodeOptions options;
  td::LogitsPipeline pipeline{options.logits()};
  td::decode::Run run;
};

std::vector<td::TokenId> read(const td::decode::Sequence& sequence) {
  return {sequence.unread().begin(), sequence.unread().end()};
}

}  // namespace

TEST_CASE("Sequence after a copy continues independently") {
  const Four four;
  td::decode::Sequence a{four.run, 0};
  CHECK(read(a) == Tokens{0, 1});
  a.mark_read();
  a.take({.token = 1, .log_probability = -0.5});
  td::decode::Sequence b = a;
  a.take({.token = 2, .log_probability = -1});
  b.take({.token = 0, .log_probability = -2, .forced = true});
  b.take({.token = 3, .log_probability = -3});
  CHECK(a.output().tokens == Tokens{1, 2});
  CHECK(a.output().log_probabilities == std::vector{-0.5, -1.0});
  CHECK(read(a) == Tokens{1, 2});
  CHECK(a.length() == 2);
  CHECK_FALSE(a.is_finished());
  CHECK(b.output().tokens == Tokens{1, 0});
  CHECK(b.output().forced_tokens == 1);
  CHECK(b.length() == 3);
  CHECK(b.is_finished());
  CHECK(b.output().finish == td::Finish::end);
}

TEST_CASE("Sequence::find_forced and draw respect a caller's further mask") {
  const Four four;
  td::decode::Sequence sequence{four.run, 0};
  const auto allow = [](std::uint32_t tokens) {
    return [tokens](td::MaskView mask) { mask[0] &= tokens; };
  };
  CHECK_FALSE(sequence.find_forced(allow(0b0110)));
  std::vector<float> row{5, 1, 2, 5};
  const auto drawn = sequence.draw(row);
  REQUIRE(drawn);
  CHECK(drawn->token == 2);
  const auto only = sequence.find_forced(allow(0b0010));
  REQUIRE(only);
  CHECK(only->token == 1);
  CHECK(only->forced);
  CHECK_FALSE(sequence.find_forced());
}

TEST_CASE("Sequence::mark_read of some tokens leaves the rest to read") {
  const Four four;
  td::decode::Sequence sequence{four.run, 0};
  sequence.take({.token = 2});
  CHECK(sequence.state().as<td::Unconstrained::State>() == four.any.initial());
  CHECK(read(sequence) == Tokens{0, 1, 2});
  sequence.mark_read(2);
  CHECK(read(sequence) == Tokens{2});
  sequence.mark_read(1);
  CHECK(read(sequence).empty());
}

TEST_CASE("Sequence ends by its options, at the context length, or without an allowed token") {
  const Four none{{.max_tokens = 0}};
  CHECK(td::decode::Sequence{none.run, 0}.output().finish == td::Finish::length);
  CHECK(td::decode::Sequence{none.run, 0}.is_finished());

  const Four narrow{{}, 3};
  CHECK(narrow.run.max_tokens() == 2);
  td::decode::Sequence sequence{narrow.run, 0};
  sequence.take({.token = 0});
  CHECK_FALSE(sequence.is_finished());
  sequence.take({.token = 0});
  CHECK(sequence.is_finished());
  CHECK(sequence.output().finish == td::Finish::context);

  const Four endless{{.max_tokens = 7}, std::numeric_limits<std::size_t>::max()};
  CHECK(endless.run.max_tokens() == 7);

  td::DecodeOptions banned;
  for (td::TokenId t = 0; t < 4; ++t) {
    banned.bias.emplace_back(t, -std::numeric_limits<float>::infinity());
  }
  const Four dry{banned};
  td::decode::Sequence stuck{dry.run, 0};
  CHECK_FALSE(stuck.find_forced());
  std::vector<float> row(4);
  CHECK_FALSE(stuck.draw(row));
  CHECK(stuck.is_finished());
  CHECK(stuck.output().finish == td::Finish::stuck);
}

TEST_CASE("Sequence draws with the noise of its seed") {
  const Four four{{.temperature = 1}};
  std::vector<bool> seen(4);
  for (unsigned seed = 0; seed < 50; ++seed) {
    td::decode::Sequence sequence{four.run, seed};
    CHECK_FALSE(sequence.find_forced());
    std::vector<float> row(4);
    const auto drawn = sequence.draw(row);
    REQUIRE(drawn);
    CHECK(drawn->token == td::find_gumbel(std::vector<float>(4), {.seed = seed, .position = 2}));
    seen[static_cast<std::size_t>(drawn->token)] = true;
  }
  CHECK(seen == std::vector<bool>(4, true));
}

TEST_CASE("Sequence::report reports each token once") {
  std::vector<td::TokenEvent> events;
  const Four four{{.on_token = [&](const td::TokenEvent& event) { events.push_back(event); }}};
  td::decode::Sequence sequence{four.run, 0};
  sequence.report();
  CHECK(events.empty());
  sequence.take({.token = 2, .log_probability = -1});
  sequence.take({.token = 1, .forced = true});
  sequence.report();
  sequence.report();
  REQUIRE(events.size() == 2);
  CHECK(events[0].token == 2);
  CHECK(events[0].log_probability == -1);
  CHECK_FALSE(events[0].forced);
  CHECK(events[1].index == 1);
  CHECK(events[1].forced);
  sequence.take({.token = 0});
  sequence.report();
  REQUIRE(events.size() == 3);
  CHECK(events[2].index == 2);
}

TEST_CASE("Sequence with likeliest records the likeliest tokens of each distribution") {
  std::vector<td::TokenEvent> events;
  const Four four{
      {.on_token = [&](const td::TokenEvent& event) { events.push_back(event); }, .likeliest = 2}};
  td::decode::Sequence sequence{four.run, 0};
  CHECK_FALSE(sequence.find_forced([](td::MaskView mask) { mask[0] &= 0b0111; }));
  std::vector<float> row{1, 3, 2, 9};
  const auto drawn = sequence.draw(row);
  REQUIRE(drawn);
  REQUIRE(drawn->likeliest.size() == 2);
  CHECK(drawn->likeliest[0] == td::LikelyToken{1, drawn->log_probability});
  CHECK(drawn->likeliest[1].token == 2);
  CHECK(std::abs(drawn->likeliest[1].log_probability - drawn->log_probability + 1) < 1e-6);
  sequence.take(*drawn);
  const auto only = sequence.find_forced([](td::MaskView mask) { mask[0] &= 0b0100; });
  REQUIRE(only);
  CHECK(only->likeliest == std::vector{td::LikelyToken{2, 0}});
  sequence.take(*only);
  CHECK(sequence.output().likeliest == std::vector{drawn->likeliest, only->likeliest});
  sequence.report();
  REQUIRE(events.size() == 2);
  CHECK(events[0].likeliest == drawn->likeliest);
  CHECK(events[1].likeliest == only->likeliest);

  const Four quiet;
  td::decode::Sequence other{quiet.run, 0};
  CHECK_FALSE(other.find_forced());
  std::vector<float> same{1, 3, 2, 0};
  const auto plain = other.draw(same);
  REQUIRE(plain);
  CHECK(plain->likeliest.empty());
  other.take(*plain);
  CHECK(other.output().likeliest.empty());
}
