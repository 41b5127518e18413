#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/core/table_file.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/mask_file.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/version.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_grammar.hpp>
#include <support/random_vocabulary.hpp>

using namespace tooldecode;

namespace {

using Path = std::filesystem::path;

// A folder that is removed with its files.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("tooldecode_masks_" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&)            = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] Path file(const char* name = "masks") const { return path_ / name; }
  [[nodiscard]] std::size_t size() const {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) files += entry.exists();
    return files;
  }

 private:
  Path path_;
};

void write(const Path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

Vocabulary small_vocabulary() {
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
  for (const char* text : {"a", "b", "ab", "\"", "\"b", "a\"", "\",", ",", " ", "  ", "  a", "1",
                           "\xC3", "\xA9", "\xC3\xA9", "\xE2\x80\xA8"}) {
    entries.push_back({text, TokenType::normal});
  }
  return Vocabulary(entries, {.end_tokens = {0}, .size = entries.size() + 3});
}

// In strings, patterns, keys and numbers; masks of many take slices.
std::vector<JsonValue> schemas() {
  using Json = JsonValue;
  return {Json{{"type", "string"}},
          Json{{"type", "string"}, {"maxLength", 3}},
          Json{{"type", "string"}, {"pattern", "^[a-j]{2,8}$"}},
          Json{{"type", "string"}, {"pattern", "^[^a]*$"}, {"minLength", 1}},
          Json{{"type", "object"}},
          Json{{"type", "array"}, {"items", {{"type", "integer"}, {"maximum", 120}}}},
          Json{{"type", "object"},
               {"properties", {{"a", {{"type", "string"}}}, {"ab", {{"enum", {"a", "b"}}}}}},
               {"required", {"a"}}}};
}

// Follows the same random texts in both constraints. How many masks differ; no text leaves them.
std::size_t differing(const Constraint& one, const Constraint& other, std::mt19937& random,
                      std::size_t texts) {
  std::size_t differ = 0;
  TokenMask expected(one.vocabulary_size()), mask(one.vocabulary_size());
  for (; texts > 0; --texts) {
    auto at = one.initial();
    auto to = other.initial();
    for (int step = 0; step < 12 && !one.is_finished(at); ++step) {
      one.fill_mask(at, expected.words());
      other.fill_mask(to, mask.words());
      differ += mask != expected;
      std::vector<TokenId> tokens;
      expected.for_each([&](TokenId token) { tokens.push_back(token); });
      REQUIRE_FALSE(tokens.empty());
      const TokenId token = tokens[random() % tokens.size()];
      at                  = one.advance(at, token).value();
      const auto next     = other.advance(to, token);
      if (!next) return differ + 1;
      to = *next;
    }
  }
  return differ;
}

// Each byte of a header, and with a sanitizer some of what is behind it.
std::size_t step_at(std::size_t at) {
  return at < 100 || !test::is_sanitized ? 1 : 7;
}

Errc refused(const Vocabulary& vocabulary, const Path& path, std::string_view sentence) {
  try {
    (void)load_masks(vocabulary, path);
  } catch (const Error& error) {
    CHECK(error.where() == path.string());
    CHECK_THAT(error.what(), test::contains(std::string(sentence)));
    return error.code();
  }
  FAIL("the file is taken");
  return {};
}

}  // namespace

TEST_CASE("load_masks: gives a new index's masks, over random vocabularies and grammars") {
  const Folder folder;
  for (std::uint32_t seed = 1; seed <= test::cases(5); ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Vocabulary vocabulary = test::random_vocabulary(seed);
    const VocabularyIndex used{vocabulary};
    for (const JsonValue& schema : schemas()) {
      const Constraint one(used, Grammar::json_schema(schema));
      REQUIRE(differing(one, one, random, 4) == 0);
    }
    save_masks(used, folder.file());
    const VocabularyIndex loaded = load_masks(vocabulary, folder.file());
    const VocabularyIndex fresh{vocabulary};
    CHECK(loaded.trie() == fresh.trie());
    for (const JsonValue& schema : schemas()) {
      const Constraint one(fresh, Grammar::json_schema(schema));
      const Constraint other(loaded, Grammar::json_schema(schema));
      CHECK(differing(one, other, random, 4) == 0);
    }
    for (int i = 0; i < 20; ++i) {
      const auto grammar_seed = static_cast<std::uint32_t>(random());
      CAPTURE(grammar_seed);
      const auto make = [&](const VocabularyIndex& index) {
        test::RandomGrammar made{.random = std::mt19937(grammar_seed)};
        const NodeId root = made.node(3);
        made.grammar.set_root(root);
        return Constraint(index, made.grammar);
      };
      std::optional<Constraint> one;
      try {
        one.emplace(make(fresh));
      } catch (const Error&) {  // of no text
        CHECK_THROWS_AS(make(loaded), Error);
        continue;
      }
      CHECK(differing(*one, make(loaded), random, 4) == 0);
    }
  }
}

TEST_CASE("load_masks: has the slices that constraints made, at the first request") {
  const Folder folder;
  const Vocabulary vocabulary = small_vocabulary();
  const auto lexeme           = test::RandomGrammar::quoted();
  const VocabularyIndex index{vocabulary};
  const mask::LexemeSlice& made = index.states()->ready_slice(lexeme, 1, 0);
  save_masks(index, folder.file());

  const VocabularyIndex loaded       = load_masks(vocabulary, folder.file());
  const mask::LexemeSlice* const got = loaded.states()->slice(test::RandomGrammar::quoted(), 1, 0);
  REQUIRE(got != nullptr);
  CHECK(got->inside() == made.inside());
  CHECK(got->count() == made.count());
  CHECK(got->max_units() == made.max_units());
  for (std::uint32_t limit = 0; limit <= made.max_units(); ++limit) {
    CHECK(got->staying(limit) == made.staying(limit));
    CHECK(got->may_end_inside(limit) == made.may_end_inside(limit));
    CHECK(got->not_fitting(1, limit, 100) == made.not_fitting(1, limit, 100));
  }
  CHECK(got->past() == made.past());
  CHECK(got->closing().size() == made.closing().size());
  // Another state, another node and another lexeme have no slice yet.
  CHECK(loaded.states()->slice(lexeme, 0, 0) == nullptr);
  CHECK(loaded.states()->slice(lexeme, 1, 1) == nullptr);
  CHECK(loaded.states()->slice(test::RandomGrammar::run(), 1, 0) == nullptr);

  // What is loaded is saved again.
  save_masks(loaded, folder.file("again"));
  const VocabularyIndex again = load_masks(vocabulary, folder.file("again"));
  CHECK(again.states()->slice(lexeme, 1, 0) != nullptr);
  CHECK(std::filesystem::file_size(folder.file("again")) ==
        std::filesystem::file_size(folder.file()));
}

TEST_CASE("load_masks: refuses a file with any byte damaged, and any part of a file") {
  const Folder folder;
  const Vocabulary vocabulary = small_vocabulary();
  save_masks(VocabularyIndex{vocabulary}, folder.file());
  const std::string bytes = core::read_file(folder.file());
  std::mt19937 random(2);
  std::size_t taken      = 0;
  const auto count_taken = [&] {
    try {
      (void)load_masks(vocabulary, folder.file());
      ++taken;
    } catch (const Error& error) {
      if (error.code() != Errc::malformed_file) throw;
    }
  };
  const auto put = [&](std::size_t at, char byte) {
    std::fstream file(folder.file(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at)).put(byte);
  };
  for (std::size_t at = 0; at < bytes.size(); at += step_at(at)) {
    put(at, static_cast<char>(bytes[at] ^ static_cast<char>(1 + random() % 255)));
    count_taken();
    put(at, bytes[at]);
  }
  CHECK_NOTHROW(load_masks(vocabulary, folder.file()));
  put(bytes.size(), 'x');
  count_taken();
  for (std::size_t size = bytes.size(); size > 0; size -= std::min(size, step_at(size))) {
    std::filesystem::resize_file(folder.file(), size - 1);
    count_taken();
  }
  CHECK(taken == 0);
}

TEST_CASE("VocabularyIndex: refuses damaged tables or stays within them, whatever the checksum") {
  const Vocabulary vocabulary = small_vocabulary();
  const VocabularyIndex index{vocabulary};
  const auto lexeme = test::RandomGrammar::quoted();
  (void)index.states()->ready_slice(lexeme, 1, 0);
  core::TableWriter tables;
  index.write(tables);
  std::mt19937 random(3);
  std::size_t refused = 0, taken = 0;
  TokenMask mask(vocabulary.size());
  for (std::size_t at = 0; at < tables.bytes().size(); at += step_at(at)) {
    std::string changed = tables.bytes();
    changed[at]         = static_cast<char>(changed[at] ^ (1 + random() % 255));
    try {
      core::TableReader from(changed, "tables");
      const VocabularyIndex other(vocabulary, from);
      ++taken;
      (void)other.states()->slice(lexeme, 1, 0);
      for (const JsonValue& schema : {schemas()[0], schemas()[4]}) {
        const Constraint constraint(other, Grammar::json_schema(schema));
        auto state = constraint.initial();
        for (const char* text : {"{", "\"", "a"}) {
          constraint.fill_mask(state, mask.words());
          state = constraint.advance_bytes(state, text).value_or(state);
        }
        constraint.fill_mask(state, mask.words());
      }
    } catch (const Error& error) {
      REQUIRE(error.code() == Errc::malformed_file);
      ++refused;
    }
  }
  CHECK(refused > taken / 4);
}

TEST_CASE("load_masks: refuses another vocabulary, version, order of bytes and kind of file") {
  const Folder folder;
  const Vocabulary vocabulary = small_vocabulary();
  save_masks(VocabularyIndex{vocabulary}, folder.file());
  CHECK_NOTHROW(load_masks(small_vocabulary(), folder.file()));

  const auto other = [&](const Vocabulary& changed) {
    CHECK(refused(changed, folder.file(), "belongs to another vocabulary") == Errc::malformed_file);
  };
  other(vocabulary.with_size(vocabulary.size() + 1));
  other(vocabulary.with_end_tokens({1}));
  other(Vocabulary(std::vector<Vocabulary::Entry>(vocabulary.size(), {"a"})));

  const auto changed = [&](std::size_t at, std::string_view with, std::string_view sentence) {
    std::string bytes = core::read_file(folder.file());
    write(folder.file("changed"), bytes.replace(at, with.size(), with));
    CHECK(refused(vocabulary, folder.file("changed"), sentence) == Errc::malformed_file);
  };
  std::string swapped = core::read_file(folder.file()).substr(16, 4);
  std::swap(swapped[0], swapped[3]), std::swap(swapped[1], swapped[2]);
  changed(16, swapped, "machine of another byte order");
  changed(24, "0.0.7", "another version of the library");
  changed(20, "\x07", "another version of the library");
  changed(0, "GGUF", "is no file of masks");
  write(folder.file("empty"), "");
  CHECK(refused(vocabulary, folder.file("empty"), "cut off") == Errc::malformed_file);
  CHECK(refused(vocabulary, folder.file("none"), "can be read") == Errc::file_unreadable);
}

TEST_CASE(
    "load_or_make_masks: makes a file where none serves, and replaces no file of another kind") {
  const Folder folder;
  const Vocabulary vocabulary = small_vocabulary();
  (void)load_or_make_masks(vocabulary, folder.file());
  const std::string bytes = core::read_file(folder.file());
  CHECK_NOTHROW(load_masks(vocabulary, folder.file()));

  const auto renews = [&](const std::string& stale) {
    write(folder.file(), stale);
    (void)load_or_make_masks(vocabulary, folder.file());
    CHECK_NOTHROW(load_masks(vocabulary, folder.file()));
  };
  renews(bytes.substr(0, bytes.size() / 2));
  std::string damaged = bytes;
  damaged.back() ^= 1;
  renews(damaged);
  (void)load_or_make_masks(vocabulary.with_size(100), folder.file());
  CHECK_NOTHROW(load_masks(vocabulary.with_size(100), folder.file()));
  CHECK(folder.size() == 1);

  write(folder.file("notes"), "notes of a user");
  CHECK_THROWS_WITH(load_or_make_masks(vocabulary, folder.file("notes")),
                    test::contains("is not replaced"));
  CHECK(core::read_file(folder.file("notes")) == "notes of a user");
}

TEST_CASE("load_or_make_masks: takes a file that serves without writing it") {
  const Folder folder;
  const Vocabulary vocabulary = small_vocabulary();
  const VocabularyIndex index{vocabulary};
  (void)index.states()->ready_slice(test::RandomGrammar::quoted(), 1, 0);
  save_masks(index, folder.file());
  const std::string bytes      = core::read_file(folder.file());
  const VocabularyIndex loaded = load_or_make_masks(vocabulary, folder.file());
  CHECK(loaded.states()->slice(test::RandomGrammar::quoted(), 1, 0) != nullptr);
  CHECK(core::read_file(folder.file()) == bytes);
}

TEST_CASE("save_masks: leaves the old file and nothing else where it cannot write") {
  const Folder folder;
  const VocabularyIndex index{small_vocabulary()};
  CHECK_THROWS_WITH(save_masks(index, folder.file("none") / "masks"),
                    test::contains("cannot be written"));
  std::filesystem::create_directory(folder.file("folder"));
  write(folder.file("folder") / "file", "x");
  CHECK_THROWS_WITH(save_masks(index, folder.file("folder")), test::contains("cannot be written"));
  CHECK(folder.size() == 1);
}

TEST_CASE("load_masks: reads a whole file while others load and save it") {
  const Folder folder;
  const Vocabulary vocabulary = small_vocabulary();
  const VocabularyIndex index{vocabulary};
  const Constraint expected(index, Grammar::json_schema(schemas()[0]));
  save_masks(index, folder.file());
  std::atomic<std::size_t> wrong{0};
  const auto load = [&] {
    for (int i = 0; i < 50; ++i) {
      try {
        const VocabularyIndex loaded = load_masks(vocabulary, folder.file());
        const Constraint one(loaded, Grammar::json_schema(schemas()[0]));
        TokenMask mask(vocabulary.size()), other(vocabulary.size());
        auto at = expected.initial(), to = one.initial();
        for (const char* text : {"\"", "a", "b"}) {
          expected.fill_mask(at, mask.words());
          one.fill_mask(to, other.words());
          wrong += mask != other;
          at = expected.advance_bytes(at, text).value();
          to = one.advance_bytes(to, text).value();
        }
      } catch (const Error&) {
        ++wrong;
      }
    }
  };
  std::thread one(load), two(load);
  for (int i = 0; i < 50; ++i) save_masks(index, folder.file());
  one.join(), two.join();
  CHECK(wrong == 0);
  CHECK(folder.size() == 1);
}
