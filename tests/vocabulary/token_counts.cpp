#include <algorithm>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>

namespace td = tooldecode;
using Ids    = std::vector<td::TokenId>;
using td::TokenCounts;

namespace {

// A tokenizer with one token for each byte; records the pieces that it encodes.
struct Bytes {
  [[nodiscard]] td::Vocabulary vocabulary() const { return td::Vocabulary({{"a"}}, {.size = 256}); }
  [[nodiscard]] Ids encode(std::string_view text) const {
    const std::lock_guard lock(mutex);
    pieces.emplace_back(text);
    Ids ids;
    for (const char c : text) ids.push_back(static_cast<std::uint8_t>(c));
    return ids;
  }
  mutable std::mutex mutex;
  mutable std::vector<std::string> pieces;
};

std::vector<std::string> pieces_of(const std::string& text, std::size_t size) {
  const Bytes bytes;
  std::istringstream stream(text);
  CHECK(td::count_tokens(bytes, stream, {.threads = 1, .piece_bytes = size}).total() ==
        text.size());
  return bytes.pieces;
}

td::Errc error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const td::Error& error) {
    return error.code();
  }
  FAIL("nothing thrown");
  return {};
}

// A stream buffer that returns some text and then throws.
struct Broken : std::streambuf {
  int_type underflow() override {
    if (eback() != nullptr) throw std::runtime_error("broken");
    setg(text.data(), text.data(), text.data() + text.size());
    return traits_type::to_int_type(text[0]);
  }
  std::string text = "some text";
};

}  // namespace

TEST_CASE("TokenCounts adds up tokens and bytes") {
  TokenCounts counts(4);
  counts.add(Ids{3, 1, 3}, 10);
  TokenCounts more(4);
  more.add(Ids{0, 3}, 2);
  more.add(Ids{});
  counts += more;
  CHECK(std::vector<std::uint64_t>(counts.counts().begin(), counts.counts().end()) ==
        std::vector<std::uint64_t>{1, 1, 0, 3});
  CHECK(counts.vocabulary_size() == 4);
  CHECK(counts.total() == 5);
  CHECK(counts.distinct() == 3);
  CHECK(counts.bytes() == 12);
}

TEST_CASE("TokenCounts throws for tokens outside the vocabulary and keeps its counts") {
  TokenCounts counts(4);
  for (const td::TokenId token : {-1, 4}) {
    CHECK(error_of([&] { counts.add(Ids{1, token}, 3); }) == td::Errc::unknown_token);
  }
  CHECK(counts == TokenCounts(4));
  CHECK(error_of([&] { counts += TokenCounts(5); }) == td::Errc::shape_mismatch);
}

TEST_CASE(
    "count_tokens cuts text at suitable line ends and otherwise before spaces or characters") {
  using Pieces = std::vector<std::string>;
  CHECK(pieces_of("", 8).empty());
  CHECK(pieces_of("one\ntwo", 8) == Pieces{"one\ntwo"});
  CHECK(pieces_of("one\ntwo\nthree", 9) == Pieces{"one\ntwo\n", "three"});
  CHECK(pieces_of("one\n\ntwo\n three", 10) == Pieces{"one\n\ntwo\n", " three"});
  CHECK(pieces_of("one\ntwo\n\nthree", 11) == Pieces{"one\n", "two\n\nthree"});
  CHECK(pieces_of("one\n// two", 8) == Pieces{"one\n", "// two"});
  CHECK(pieces_of("a;\nb {\n// two", 9) == Pieces{"a;\n", "b {\n", "// two"});
  CHECK(pieces_of("one two three", 10) == Pieces{"one two", " three"});
  CHECK(pieces_of("onetwothree", 8) == Pieces{"onetwot", "hree"});
  CHECK(pieces_of("onetwo\u20AC\u20AC", 8) == Pieces{"onetwo", "\u20AC\u20AC"});
  CHECK(pieces_of("onet\U0001F600\U0001F600", 8) == Pieces{"onet", "\U0001F600", "\U0001F600"});
  CHECK(pieces_of(std::string(20, '\x80'), 8).size() == 5);
  std::istringstream stream("text");
  CHECK_THROWS_WITH(td::count_tokens(Bytes(), stream, {.piece_bytes = 7}),
                    "piece_bytes 7: must be 8 or more");
  CHECK(error_of([&] {
          static_cast<void>(td::count_tokens(Bytes(), stream, {.piece_bytes = 7}));
        }) == td::Errc::invalid_option);
}

TEST_CASE("count_tokens of random texts equals one encode for any number of threads") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::vector<std::string> parts{"a", "bc",     " ",          "\n",  "\n\n",
                                         "/", "\u00E9", "\U0001F600", "\xFF"};
    std::string text;
    for (std::size_t n = random() % 200; n > 0; --n) text += parts[random() % parts.size()];
    const std::size_t size = 8 + random() % 30;
    const auto pieces      = pieces_of(text, size);
    std::string joined;
    for (const std::string& piece : pieces) {
      CHECK(!piece.empty());
      CHECK(piece.size() <= size);
      joined += piece;
    }
    CHECK(joined == text);
    TokenCounts expected(256);
    expected.add(Bytes().encode(text), text.size());
    for (const std::size_t threads : {0U, 1U, 3U}) {
      std::istringstream stream(text);
      CHECK(td::count_tokens(Bytes(), stream, {.threads = threads, .piece_bytes = size}) ==
            expected);
    }
  }
}

TEST_CASE("count_tokens reports progress up to the length of the text") {
  std::istringstream stream(std::string(1000, 'a'));
  std::vector<std::uint64_t> seen;
  const auto counts = td::count_tokens(
      Bytes(), stream, {.threads = 3, .piece_bytes = 64, .on_progress = [&](std::uint64_t b) {
                          seen.push_back(b);
                        }});
  CHECK(seen.size() == 16);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(seen.back() == 1000);
  CHECK(counts.bytes() == 1000);
}

TEST_CASE("count_tokens rethrows errors of the stream, tokenizer and callback from any thread") {
  for (const std::size_t threads : {1U, 3U}) {
    const td::CountOptions options{.threads = threads, .piece_bytes = 8};
    Broken buffer;
    std::istream broken(&buffer);
    CHECK(error_of([&] { static_cast<void>(td::count_tokens(Bytes(), broken, options)); }) ==
          td::Errc::file_unreadable);

    const td::Vocabulary letters({{"a"}});
    const td::Tokenizer tokenizer(letters, td::vocabulary::BytePairEncoding(letters, {}, {}), {});
    std::istringstream stream(std::string(100, 'a') + "b" + std::string(100, 'a'));
    CHECK(error_of([&] { static_cast<void>(td::count_tokens(tokenizer, stream, options)); }) ==
          td::Errc::unknown_token);

    std::istringstream text("some words of text");
    td::CountOptions stopping = options;
    stopping.on_progress      = [](std::uint64_t) { throw std::runtime_error("stop"); };
    CHECK_THROWS_WITH(td::count_tokens(Bytes(), text, stopping), "stop");
  }
}

TEST_CASE("count_tokens of dialogues equals the published counts for any size of pieces",
          "[published]") {
  TOOLDECODE_REQUIRE_SHARED(data, "corpus/dialogue.txt.gz");
  const std::string text = td::test::read_text(data);
  for (const std::string name : {"gpt-2", "qwen2"}) {
    INFO(name);
    TOOLDECODE_REQUIRE_SHARED(vocabulary, "vocab/" + name + ".json.gz");
    TOOLDECODE_REQUIRE_SHARED(counted, "corpus/freq/" + name + ".json.gz");
    const auto tokenizer = td::parse_tokenizer(td::test::read_text(vocabulary), name);
    std::vector<std::uint64_t> published(tokenizer.vocabulary().size());
    const auto frequencies = nlohmann::json::parse(td::test::read_text(counted));
    for (const auto& pair : frequencies["domains"]["dialogue"]["counts"]) {
      published[pair[0].get<std::size_t>()] = pair[1];
    }
    // The published counts are of pieces that end at the first line end after 4000 characters that
    // no white space follows. At the end of a piece GPT-2 joins blank lines.
    TokenCounts cut(published.size());
    std::size_t begin = 0, characters = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      characters += (static_cast<std::uint8_t>(text[i]) & 0xC0) != 0x80 ? 1 : 0;
      const bool ends = text[i] == '\n' && characters > 4000 && i + 1 < text.size() &&
                        std::string_view(" \n\r\t").find(text[i + 1]) == std::string_view::npos;
      if (!ends && i + 1 < text.size()) continue;
      cut.add(tokenizer.encode(std::string_view(text).substr(begin, i + 1 - begin)), i + 1 - begin);
      begin      = i + 1;
      characters = 0;
    }
    CHECK(std::equal(published.begin(), published.end(), cut.counts().begin()));

    TokenCounts whole(published.size());
    whole.add(tokenizer.encode(text), text.size());
    if (name == "qwen2") CHECK(whole == cut);
    for (const std::size_t piece_bytes : {4'096U, 65'536U}) {
      std::istringstream stream(text);
      CHECK(td::count_tokens(tokenizer, stream, {.threads = 2, .piece_bytes = piece_bytes}) ==
            whole);
    }
  }
}
