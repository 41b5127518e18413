#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/unicode_properties.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/finite_language.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

// A pattern, and by its construction all of its texts that are written with "ab0-" alone.
struct Sample {
  std::string pattern;
  slow::Language texts;
};

slow::Language joined(const slow::Language& left, const slow::Language& right) {
  slow::Language all;
  for (const std::string& a : left) {
    for (const std::string& b : right) all.insert(a + b);
  }
  return all;
}

// Texts of at most `length` characters.
Sample random_sample(std::mt19937& random, int depth, int length) {
  if (length == 1 || depth == 0) {
    static const std::vector<Sample> atoms{{"a", {"a"}},
                                           {"0", {"0"}},
                                           {"[ab]", {"a", "b"}},
                                           {"\\d", {"0"}},
                                           {"\\W", {"-"}},
                                           {"[^a]", {"b", "0", "-"}},
                                           {"-", {"-"}},
                                           {"\\w", {"a", "b", "0"}},
                                           {".", {"a", "b", "0", "-"}},
                                           {"\\u0061", {"a"}}};
    Sample one = atoms[random() % atoms.size()];
    if (length > 1) {
      one.texts.merge(joined(one.texts, one.texts));
      one.texts.insert("");
      one.pattern += random() % 2 ? "{0,2}" : "{0,2}?";
    } else if (random() % 3 == 0) {
      one.texts.insert("");
      one.pattern += '?';
    }
    return one;
  }
  const int left = 1 + static_cast<int>(random() % static_cast<unsigned>(length - 1));
  switch (random() % 3) {
    case 0: {
      const Sample a = random_sample(random, depth - 1, left);
      const Sample b = random_sample(random, depth - 1, length - left);
      return {a.pattern + b.pattern, joined(a.texts, b.texts)};
    }
    case 1: {
      Sample a = random_sample(random, depth - 1, length);
      Sample b = random_sample(random, depth - 1, left);
      a.texts.merge(b.texts);
      return {"(?:" + a.pattern + '|' + b.pattern + ')', a.texts};
    }
    default: {
      Sample a = random_sample(random, depth - 1, length / 2);
      a.texts.merge(joined(a.texts, a.texts));
      return {'(' + a.pattern + "){1,2}", a.texts};
    }
  }
}

Errc code_of(const std::string& pattern) {
  try {
    const Constraint constraint(slow::pieces_of({"a"}, 1), Grammar::regex(pattern));
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("accepted: " << pattern);
  return {};
}

}  // namespace

TEST_CASE("Constraint over a random regex has the masks of its texts") {
  std::size_t states = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    const auto [pattern, language] = random_sample(random, 4, 6);
    INFO("seed " << seed << ", pattern " << pattern);
    const Constraint constraint(slow::pieces_of(language, seed), Grammar::regex(pattern));
    TokenMask mask(constraint.vocabulary_size());
    for (int walk = 0; walk < 8; ++walk) {
      auto state = constraint.initial();
      for (std::string text;; ++states) {
        REQUIRE(constraint.is_accepting(state) == (language.count(text) != 0));
        constraint.fill_mask(state, mask.words());
        std::vector<TokenId> allowed;
        for (std::size_t i = 3; i < constraint.vocabulary_size(); ++i) {
          const auto token        = static_cast<TokenId>(i);
          const std::string bytes = constraint.vocabulary().is_text(token)
                                        ? std::string(constraint.vocabulary().bytes(token))
                                        : "";
          if (bytes.empty() || bytes.find_first_not_of("ab0-") != std::string::npos) continue;
          const bool expected = slow::is_begun(language, text + bytes);
          if (mask.contains(token) != expected)
            FAIL("after '" << text << "', token '" << bytes << "' wanted " << expected);
          if (expected) allowed.push_back(token);
        }
        if (allowed.empty()) break;
        const TokenId token = allowed[random() % allowed.size()];
        state               = *constraint.advance(state, token);
        text += constraint.vocabulary().bytes(token);
      }
    }
  }
  CHECK(states > 150);
}

TEST_CASE("Constraint over a regex of dates has the masks of all dates") {
  slow::Language language;
  for (int month = 1; month <= 12; ++month) {
    for (int day = 1; day <= 31; ++day) {
      const auto two = [](int n) { return (n < 10 ? "0" : "") + std::to_string(n); };
      language.insert("2024-" + two(month) + '-' + two(day));
    }
  }
  const Constraint constraint(slow::pieces_of(language, 7),
                              Grammar::regex("2024-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"));
  CHECK(slow::check_masks(constraint, language, 7, 40) > 100);
}

TEST_CASE("Constraint over a regex matches the whole text, with or without anchors") {
  const VocabularyIndex cache(slow::pieces_of({"ab"}, 1));
  for (const char* pattern : {"ab+", "^ab+$", "^ab+", "ab+$", "(^ab+)|^ab$"}) {
    const Constraint constraint(cache, Grammar::regex(pattern));
    CHECK(slow::accepts(constraint, "ab"));
    CHECK(slow::accepts(constraint, "abbb"));
    CHECK_FALSE(slow::accepts(constraint, "a"));
    CHECK_FALSE(slow::accepts(constraint, "xab"));
    CHECK_FALSE(slow::accepts(constraint, "abx"));
  }
  CHECK(slow::accepts(Constraint(cache, Grammar::regex("")), ""));
  CHECK(slow::accepts(Constraint(cache, Grammar::regex("a|b")), "b"));
  CHECK_FALSE(slow::accepts(Constraint(cache, Grammar::regex("a|b")), "ab"));
}

TEST_CASE("Constraint over a regex takes a character as a code point") {
  const VocabularyIndex cache(slow::pieces_of({"ab"}, 1));
  const Constraint any(cache, Grammar::regex("[^\\n]")),
      some(cache, Grammar::regex("[\\u{7F}-\\u{90}\\u{10FFFF}]"));
  for (const char* text : {"a", "\u0080", "\u20AC", "\U0010FFFF"}) CHECK(slow::accepts(any, text));
  CHECK_FALSE(slow::accepts(any, "\n"));
  CHECK_FALSE(slow::accepts(any, "\xC0\x80"));
  CHECK(slow::accepts(some, "\u0090"));
  CHECK_FALSE(slow::accepts(some, "\u0091"));
}

TEST_CASE("Constraint over letters of any script has the masks of whole and begun characters") {
  // Every beginning of a letter's bytes, and the letters.
  const CodePointSet letters = *unicode_property("L");
  std::set<std::string> begun, whole;
  for (const auto& [first, last] : letters.ranges()) {
    for (char32_t c = first; c <= last; ++c) {
      std::string bytes;
      append_utf8(bytes, c);
      for (std::size_t n = 0; n < bytes.size(); ++n) begun.insert(bytes.substr(0, n));
      whole.insert(std::move(bytes));
    }
  }
  constexpr std::size_t max = 200;
  // Whether a text is one of at most so many letters, or begins one.
  const auto judge = [&](std::string_view text) {
    std::size_t count = 0;
    while (!text.empty()) {
      std::size_t n = 1;
      while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;
      const std::string one(text.substr(0, n));
      text.remove_prefix(n);
      if (whole.count(one) == 0) {
        return std::pair(false, text.empty() && count < max && begun.count(one) != 0);
      }
      ++count;
    }
    return std::pair(count > 0 && count <= max, count <= max);
  };
  const std::string sample = "a\u00E9\u0436\u4E2D\u6587\U00020000x1 \u20AC\U0001F600";
  const Constraint constraint(slow::pieces_of({sample, sample + sample}, 1),
                              Grammar::regex("^\\p{L}{1,200}$"));
  TokenMask mask(constraint.vocabulary_size());
  std::mt19937 random(7);
  std::size_t met = 0;
  for (std::uint32_t walk = 0; walk < test::cases(3); ++walk) {
    auto state = constraint.initial();
    for (std::string text; text.size() < 700; ++met) {
      constraint.fill_mask(state, mask.words());
      std::vector<TokenId> allowed;
      for (std::size_t i = 3; i < constraint.vocabulary_size(); ++i) {
        const auto token = static_cast<TokenId>(i);
        if (!constraint.vocabulary().is_text(token)) continue;
        const std::string bytes(constraint.vocabulary().bytes(token));
        if (bytes.empty()) continue;
        const bool expected = judge(text + bytes).second;
        if (mask.contains(token) != expected) FAIL("after '" << text << "', token '" << bytes);
        if (expected) allowed.push_back(token);
      }
      REQUIRE(constraint.is_accepting(state) == judge(text).first);
      if (allowed.empty()) break;
      const TokenId token = allowed[random() % allowed.size()];
      text += constraint.vocabulary().bytes(token);
      state = *constraint.advance(state, token);
    }
  }
  CHECK(met > 200);
}

TEST_CASE("Constraint over a regex that is malformed or unsupported throws the matching error") {
  CHECK(code_of("a(b") == Errc::malformed_pattern);
  CHECK(code_of("a)(b") == Errc::malformed_pattern);
  CHECK(code_of("a|*") == Errc::malformed_pattern);
  CHECK(code_of("(?<=a)b") == Errc::unsupported_pattern);
  CHECK(code_of("(?=a)b") == Errc::unsatisfiable_schema);
  CHECK(code_of("(a)\\1") == Errc::unsupported_pattern);
  CHECK(code_of("(a|b){50000}") == Errc::limit_exceeded);
  CHECK(code_of("a^b") == Errc::unsatisfiable_schema);
  try {
    const Constraint constraint(slow::pieces_of({"a"}, 1), Grammar::regex("ab[z-a]"));
  } catch (const Error& error) {
    CHECK(error.where() == "byte 3");
  }
}
