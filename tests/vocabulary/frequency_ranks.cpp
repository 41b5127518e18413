#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>

namespace td = tooldecode;
using Ids    = std::vector<td::TokenId>;
using Counts = std::vector<std::uint64_t>;
using td::FrequencyRanks;

namespace {

Ids in_order(const FrequencyRanks& ranks) {
  const auto all = ranks.first(ranks.size());
  return {all.ranked().begin(), all.ranked().end()};
}

Ids listed(std::span<const td::TokenId> tokens) {
  return {tokens.begin(), tokens.end()};
}

template <class Call>
void check_error(td::Errc code, const std::string& where, Call call) {
  INFO(where);
  try {
    static_cast<void>(call());
    FAIL_CHECK("nothing thrown");
  } catch (const td::Error& error) {
    CHECK(error.code() == code);
    CHECK(error.where() == where);
  }
}

}  // namespace

TEST_CASE("FrequencyRanks orders always-included tokens first and then by count and id") {
  const FrequencyRanks ranks(Counts{3, 0, 7, 3, 0, 9, 1}, Ids{4, 2, 4});
  CHECK(in_order(ranks) == Ids{2, 4, 5, 0, 3, 6, 1});
  CHECK(ranks.always_count() == 2);
  CHECK(ranks.rank_of(2) == 0);
  CHECK(ranks.rank_of(1) == 6);
  CHECK(ranks.count(3) == 3);
  CHECK(ranks.total() == 23);
  CHECK(in_order(FrequencyRanks(Counts{0, 2, 1})) == Ids{1, 2, 0});
  CHECK(FrequencyRanks(Counts{}).size() == 0);
}

TEST_CASE("FrequencyRanks of a vocabulary always includes end, control and user-defined tokens") {
  using td::TokenType;
  const td::Vocabulary vocabulary({{"a"},
                                   {"<e>", TokenType::control},
                                   {"b"},
                                   {"<t>", TokenType::user_defined},
                                   {"?", TokenType::unknown},
                                   {"\x01", TokenType::byte},
                                   {"", TokenType::unused}},
                                  {.end_tokens = {2, 1}, .size = 9});
  const FrequencyRanks ranks(Counts{1, 0, 0, 0, 2, 3, 0, 0, 0}, vocabulary, "two lines");
  CHECK(in_order(ranks) == Ids{1, 2, 3, 5, 4, 0, 6, 7, 8});
  CHECK(ranks.always_count() == 3);
  CHECK(ranks.source() == "two lines");
  CHECK_THROWS_WITH(FrequencyRanks(Counts(7), vocabulary), "counts: 7 tokens: must be 9");
  check_error(td::Errc::shape_mismatch, "counts",
              [&] { return FrequencyRanks(Counts(7), vocabulary); });
}

TEST_CASE("FrequencyRanks of random counts equals a sort and survives its JSON form") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::size_t size = 1 + random() % 40;
    Counts counts(size);
    for (auto& count : counts) count = random() % 3 == 0 ? 0 : random() % 6;
    Ids always;
    for (std::size_t n = random() % 5; n > 0; --n) {
      always.push_back(static_cast<td::TokenId>(random() % size));
    }
    using Key = std::tuple<bool, std::uint64_t, td::TokenId>;
    std::vector<Key> keys;
    for (std::size_t i = 0; i < size; ++i) {
      const auto id   = static_cast<td::TokenId>(i);
      const bool late = std::find(always.begin(), always.end(), id) == always.end();
      keys.emplace_back(late, late ? 1000 - counts[i] : 0, id);
    }
    std::sort(keys.begin(), keys.end());
    Ids expected;
    for (const auto& key : keys) expected.push_back(std::get<2>(key));

    const FrequencyRanks ranks(counts, always);
    CHECK(in_order(ranks) == expected);
    std::uint64_t held = 0;
    for (std::size_t k = 0; k <= size; ++k) {
      const double share =
          ranks.total() == 0 ? 0 : static_cast<double>(held) / static_cast<double>(ranks.total());
      CHECK(ranks.coverage(k) == share);
      if (k >= ranks.always_count()) {
        CHECK(listed(ranks.first(k).ranked()) ==
              Ids(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(k)));
      }
      if (k == size) break;
      CHECK(ranks.rank_of(expected[k]) == k);
      held += counts[static_cast<std::size_t>(expected[k])];
    }
    const auto again = FrequencyRanks::parse(ranks.to_json());
    CHECK(in_order(again) == expected);
    CHECK(again.to_json() == ranks.to_json());
  }
}

TEST_CASE("FrequencyRanks::first throws for k outside of the always-included count to all tokens") {
  const FrequencyRanks ranks(Counts{3, 0, 7}, Ids{1, 0});
  CHECK(ranks.first(2).size() == 2);
  check_error(td::Errc::invalid_option, "k = 1", [&] { return ranks.first(1); });
  check_error(td::Errc::invalid_option, "k = 4", [&] { return ranks.first(4); });
  CHECK_THROWS_WITH(ranks.first(1), "k = 1: must be from 2 (tokens always in) to 3 (all)");
  CHECK(ranks.coverage(99) == 1);
}

TEST_CASE("RankedTokens::with adds each other token once and leaves the original unchanged") {
  const FrequencyRanks ranks(Counts{5, 4, 3, 2, 1, 0});
  const auto two = ranks.first(2);
  CHECK(two.vocabulary_size() == 6);
  CHECK(two.contains(1));
  CHECK_FALSE(two.contains(2));
  CHECK(two.added().empty());

  const auto five = two.with(Ids{4, 1, 3, 4}).with(Ids{0, 3, 5, 5});
  CHECK(listed(five.ranked()) == Ids{0, 1});
  CHECK(listed(five.added()) == Ids{4, 3, 5});
  CHECK(five.size() == 5);
  Ids rows;
  for (std::size_t row = 0; row < five.size(); ++row) rows.push_back(five[row]);
  CHECK(rows == Ids{0, 1, 4, 3, 5});
  for (td::TokenId token = 0; token < 6; ++token) CHECK(five.contains(token) == (token != 2));
  CHECK(two.size() == 2);  // unchanged
  CHECK(ranks.first(6).with(Ids{2, 0}).added().empty());

  for (const td::TokenId token : {-1, 6}) {
    const std::string place = "token " + std::to_string(token);
    check_error(td::Errc::unknown_token, place, [&] { return two.with(Ids{0, token}); });
    check_error(td::Errc::unknown_token, place, [&] { return two.contains(token); });
    check_error(td::Errc::unknown_token, place, [&] { return ranks.rank_of(token); });
    check_error(td::Errc::unknown_token, place,
                [&] { return FrequencyRanks(Counts(6), Ids{token}); });
  }
}

TEST_CASE("context_tokens adds to a text its words with and without a leading space") {
  const td::Vocabulary vocabulary({{"a"}, {" Oslo"}, {"Oslo"}, {" "}, {" b"}, {"  c"}, {" c"}});
  const auto one = FrequencyRanks(Counts(7)).first(1);
  const auto of  = [&](const Ids& text) { return one.with(td::context_tokens(text, vocabulary)); };
  CHECK(std::ranges::is_permutation(listed(of({1, 3, 4, 1, 5}).added()), Ids{1, 3, 4, 5, 2, 6}));
  CHECK(of({}).added().empty());
}

TEST_CASE("RankedTokens shares the ranks that it comes from and outlives them") {
  std::vector<td::RankedTokens> subsets;
  {
    const FrequencyRanks ranks(Counts{1, 3, 2});
    const FrequencyRanks copy = ranks;
    subsets                   = {ranks.first(1), copy.first(3)};
    CHECK(ranks.first(2).ranked().data() == copy.first(3).ranked().data());
  }
  CHECK(subsets[0].ranked().data() == subsets[1].ranked().data());
  CHECK(listed(subsets[1].ranked()) == Ids{1, 2, 0});
}

TEST_CASE("FrequencyRanks::coverage_table lists shares of the vocabulary and their coverage") {
  Counts counts(64, 1);
  counts[0]        = 37;
  const auto table = FrequencyRanks(counts).coverage_table();
  std::vector<std::size_t> ks;
  for (const auto& row : table) ks.push_back(row.k);
  CHECK(ks == std::vector<std::size_t>{64, 48, 32, 16, 8, 4, 2});
  CHECK(table.front().share == 1);
  CHECK(table[4].share == Approx(0.44));
  CHECK(table.back().share == Approx(0.38));
  CHECK(FrequencyRanks(Counts(64)).coverage(64) == 0);
}

TEST_CASE(
    "FrequencyRanks saves tokens that occur and loads them again, or names an unreadable file") {
  const FrequencyRanks ranks(Counts{0, 0, 7, 3, 0}, Ids{1}, "a \"text\" \xFF");
  CHECK(ranks.to_json() ==
        R"({"format":"tooldecode-ranks-1","source":"a \"text\" )"
        "\uFFFD"
        R"(","vocabulary_size":5,"total":10,"coverage":[{"k":5,"share":1.0},{"k":3,"share":1.0},)"
        R"({"k":2,"share":0.7},{"k":1,"share":0.0},{"k":0,"share":0.0},{"k":0,"share":0.0},)"
        R"({"k":0,"share":0.0}],"always":1,"ids":[1,2,3],"counts":[0,7,3]})"
        "\n");
  const auto path = std::filesystem::temp_directory_path() /
                    ("tooldecode_ranks_" + std::to_string(std::random_device{}()) + ".json");
  ranks.save(path);
  const auto again = FrequencyRanks::load(path);
  CHECK(in_order(again) == in_order(ranks));
  CHECK(again.always_count() == 1);
  CHECK(again.total() == 10);

  std::ofstream(path) << R"({"format": "tooldecode-ranks-1", "vocabulary_size": -1})";
  check_error(td::Errc::malformed_file, path.string() + ": #/vocabulary_size",
              [&] { return FrequencyRanks::load(path); });
  std::filesystem::remove(path);
  check_error(td::Errc::file_unreadable, path.string(), [&] { return FrequencyRanks::load(path); });
  const auto folder = std::filesystem::temp_directory_path();
  check_error(td::Errc::file_unreadable, folder.string(),
              [&] { return FrequencyRanks::load(folder); });
  check_error(td::Errc::file_unreadable, (path / "a").string(), [&] {
    ranks.save(path / "a");
    return 0;
  });
}

TEST_CASE("FrequencyRanks::parse errors name the malformed place") {
  const nlohmann::json good = nlohmann::json::parse(R"({"format": "tooldecode-ranks-1",
      "source": "", "vocabulary_size": 9, "total": 10, "always": 2, "ids": [3, 8, 1, 0, 4],
      "counts": [0, 2, 4, 2, 2], "a later version's": 1})");
  CHECK(in_order(FrequencyRanks::parse(good.dump())) == Ids{3, 8, 1, 0, 4, 2, 5, 6, 7});
  for (const auto& [pointer, value, place] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"/format", R"("tooldecode-ranks-2")", "#/format"},
           {"/format", "null", "#/format"},
           {"/source", "1", "#/source"},
           {"/vocabulary_size", "16777217", "#/vocabulary_size"},
           {"/vocabulary_size", "2.5", "#/vocabulary_size"},
           {"/vocabulary_size", "0", "#/ids"},
           {"/vocabulary_size", "8", "#/ids/1"},
           {"/vocabulary_size", "4", "#/ids"},
           {"/total", "9", "#/counts/4"},
           {"/total", "11", "#/total"},
           {"/total", "18446744073709551615", "#/total"},
           {"/total", "null", "#/total"},
           {"/always", "6", "#/always"},
           {"/always", "-1", "#/always"},
           {"/always", "1", "#/ids/1"},
           {"/always", "4", "#/ids/0"},
           {"/ids", "{}", "#/ids"},
           {"/ids/0", "8", "#/ids/1"},
           {"/ids/0", "9", "#/ids/0"},
           {"/ids/0", "-1", "#/ids/0"},
           {"/ids/0", "\"3\"", "#/ids/0"},
           {"/ids/4", "3", "#/ids/4"},
           {"/counts", "[10]", "#/counts"},
           {"/counts", "null", "#/counts"},
           {"/counts/2", "-4", "#/counts/2"},
           {"/counts/2", "18446744073709551615", "#/counts/2"},
           {"/counts", "[0, 2, 2, 4, 2]", "#/ids/2"}}) {
    INFO(pointer << " = " << value);
    auto bad                                   = good;
    bad[nlohmann::json::json_pointer(pointer)] = nlohmann::json::parse(value);
    check_error(td::Errc::malformed_file, place, [&] { return FrequencyRanks::parse(bad.dump()); });
  }
  for (const char* key :
       {"format", "source", "vocabulary_size", "total", "always", "ids", "counts"}) {
    auto bad = good;
    bad.erase(key);
    check_error(td::Errc::malformed_file, std::string("#/") + key,
                [&] { return FrequencyRanks::parse(bad.dump()); });
  }
  check_error(td::Errc::malformed_file, "#/format", [] { return FrequencyRanks::parse("[]"); });
  check_error(td::Errc::malformed_json, "byte 1", [] { return FrequencyRanks::parse("{]"); });
  check_error(td::Errc::malformed_json, "f: byte 0",
              [] { return FrequencyRanks::parse("", "f: "); });
  check_error(td::Errc::malformed_json, "byte 1", [] { return FrequencyRanks::parse("[1e999]"); });
}

TEST_CASE("FrequencyRanks of the embedded model has its vocabulary size and covers its domain") {
  const auto ranks = FrequencyRanks::load(td::test::example_data("tiny/ranks.json"));
  CHECK(ranks.size() == 8192);
  CHECK(ranks.always_count() == 8);
  CHECK(ranks.coverage(ranks.size() / 4) > 0.9);
}

TEST_CASE("FrequencyRanks of a quarter of Qwen2's vocabulary covers 95 % of each domain") {
  TOOLDECODE_REQUIRE_SHARED(path, "corpus/freq/qwen2.json.gz");
  const auto published       = nlohmann::json::parse(td::test::read_text(path));
  constexpr std::size_t size = 151'936;
  Counts all(size);
  for (const auto& [name, domain] : published["domains"].items()) {
    INFO(name);
    Counts counts(size);
    for (const auto& [id, count] :
         domain["counts"].get<std::vector<std::pair<std::size_t, std::uint64_t>>>()) {
      counts[id] = count;
      all[id] += count;
    }
    const FrequencyRanks ranks(counts);
    CHECK(ranks.total() == domain["tokens"]);
    CHECK(ranks.coverage(size / 4) >= 0.95);
  }
  CHECK(FrequencyRanks(all).coverage(size / 4) >= 0.95);
}
