#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/decode/batch_loop.hpp>
#include <tooldecode/decode/batch_sequence.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/draft/drafter_group.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_table.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using td::test::RandomTable;

namespace {

/// Reads the same text in two caches, and takes each token from the second.
class Doubled final : public td::decode::BatchSequence {
 public:
  Doubled(td::ModelRef model, const td::decode::Run& run, td::CachedPrefix read)
      : model_(model), sequence_(run, run.options.seed), read_(std::move(read)) {
    sequence_.mark_read(model_.length(read_.cache));
    all_ = td::TokenMask(model_.vocabulary_size());
    all_.words().fill(model_.vocabulary_size());
  }

  bool is_finished() const noexcept override { return sequence_.is_finished(); }
  td::Output& output() noexcept override { return sequence_.output(); }
  td::CachedPrefix& read_so_far() noexcept override { return read_; }
  void give_up_cache() override {
    model_.truncate(read_.cache, 0);
    sequence_.mark_unread();
  }
  bool take_forced() override {
    const auto forced = sequence_.find_forced();
    if (forced) sequence_.take(*forced);
    return forced.has_value();
  }
  std::size_t unread_count() const noexcept override { return sequence_.unread().size(); }
  bool is_prefilling() const noexcept override { return false; }
  void limit_reading(std::size_t) noexcept override {}
  void add_readings(std::vector<td::decode::BatchReading>& readings) override {
    twin_.emplace(model_.fork(read_.cache));
    for (td::ModelRef::Cache* cache : {&read_.cache, &*twin_}) {
      readings.push_back(
          {cache, sequence_.unread(), {}, sequence_.unread().size() - 1, all_.words()});
    }
  }
  void take_pass(td::decode::BatchPass& pass, std::size_t first) override {
    sequence_.mark_read();
    if (const auto next = sequence_.draw(pass.row(first + 1))) sequence_.take(*next);
  }

 private:
  td::ModelRef model_;
  td::decode::Sequence sequence_;
  td::CachedPrefix read_;
  td::TokenMask all_;
  std::optional<td::ModelRef::Cache> twin_;
};

}  // namespace

TEST_CASE("BatchLoop gives a BatchSequence with several readings in a pass the row of each") {
  constexpr std::size_t size = 40;
  std::size_t tokens         = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{size, {.seed = seed}};
    const RandomTable table{size, seed};
    const td::DrafterGroup<> none;
    td::decode::BatchLoop loop{model, {.max_batch = 1 + random() % 4}};
    std::vector<std::vector<td::TokenId>> answers(5), alone;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      std::vector<td::TokenId> prompt(1 + random() % 9);
      for (auto& token : prompt) token = static_cast<td::TokenId>(random() % size);
      const td::DecodeOptions options{
          .max_tokens = random() % 25, .temperature = i % 2 == 0 ? 0.0F : 1.0F, .seed = seed + i};
      alone.push_back(td::Decoder{model, table}(prompt, options).tokens);
      tokens += alone.back().size();
      td::decode::BatchItem item{.prompt     = prompt,
                                 .owner      = nullptr,
                                 .constraint = table,
                                 .reset      = {},
                                 .drafter    = td::DrafterRef::under<RandomTable>(none),
                                 .options    = options};
      item.on_end = [&answers, i](const td::Output& output) -> td::AfterTurn {
        answers[i] = output.tokens;
        return td::Leave{};
      };
      if (random() % 3 > 0) {
        item.make = [](td::ModelRef any, const td::decode::Run& run, td::CachedPrefix read) {
          return std::make_unique<Doubled>(any, run, std::move(read));
        };
      }
      loop.add(std::move(item));
    }
    while (loop.step()) {}
    CHECK(answers == alone);
  }
  CHECK(tokens > 500);
}
