#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/any_drafter.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

/// All bytes, and some words.
td::Vocabulary words() {
  std::vector<td::Vocabulary::Entry> entries;
  for (int b = 0; b < 256; ++b) {
    entries.push_back({std::string(1, static_cast<char>(b)), td::TokenType::normal});
  }
  for (const char* word : {" Oslo", "Oslo", "'Oslo", " in", " is", " cold", "ab", "the "}) {
    entries.push_back({word, td::TokenType::normal});
  }
  return td::Vocabulary(entries, {});
}

const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex cache{words()};
  return cache;
}

Tokens encoded(std::string_view text) {
  return td::constraint::JumpForwardText(masks().trie()).encode(text);
}

/// A drafter's request after the last of these tokens, and what it proposes.
td::DraftCandidates<td::Unconstrained> candidates_of(const td::SuffixDrafter& drafter,
                                                     const Tokens& prompt, const Tokens& generated,
                                                     double min_probability = 0) {
  static const td::Unconstrained any{masks().vocabulary().size()};
  auto request = drafter.begin(prompt);
  const td::DraftContext<td::Unconstrained> context{.constraint      = any,
                                                    .state           = any.initial(),
                                                    .prompt          = prompt,
                                                    .generated       = generated,
                                                    .hidden          = {},
                                                    .max_depth       = 60,
                                                    .max_nodes       = 64,
                                                    .min_probability = min_probability};
  td::DraftCandidates candidates(any, any.initial(), 0, 60);
  drafter.propose(request, context, candidates);
  return candidates;
}

std::string path_to(const td::DraftCandidates<td::Unconstrained>& candidates, std::size_t node) {
  std::string text;
  for (; node != 0; node = candidates.parent(node)) {
    text.insert(0, masks().vocabulary().bytes(candidates.token(node)));
  }
  return text;
}

/// The texts of all leaves, the most likely first.
std::vector<std::string> drafts(const Tokens& prompt, const Tokens& generated,
                                const td::SuffixOptions& options                  = {},
                                const std::shared_ptr<const td::SuffixHistory>& h = nullptr) {
  const auto candidates = candidates_of(td::SuffixDrafter{masks(), options, h}, prompt, generated);
  std::vector<std::size_t> leaves;
  for (std::size_t leaf = 1; leaf < candidates.size(); ++leaf) {
    if (candidates.is_leaf(leaf)) leaves.push_back(leaf);
  }
  std::ranges::stable_sort(leaves, std::ranges::greater{},
                           [&](std::size_t leaf) { return candidates.score(leaf); });
  std::vector<std::string> texts;
  for (const std::size_t leaf : leaves) texts.push_back(path_to(candidates, leaf));
  return texts;
}

std::vector<std::string> drafts(std::string_view prompt, std::string_view generated = {},
                                const td::SuffixOptions& options = {}) {
  return drafts(encoded(prompt), encoded(generated), options);
}

using Texts = std::vector<std::string>;

std::shared_ptr<td::SuffixHistory> history_of(const Texts& texts) {
  auto history = std::make_shared<td::SuffixHistory>(100'000);
  for (const std::string& text : texts) history->add(masks().vocabulary(), encoded(text));
  return history;
}

/// A slow reference: the probability of every path of bytes, from all places of all texts.
std::map<std::string, double> slow_paths(const std::string& text, const Texts& earlier,
                                         const td::SuffixOptions& options) {
  struct Place {
    std::size_t bytes;
    std::string follow;
  };
  std::vector<Place> places;
  const auto look = [&](const std::string& in, std::size_t min) {
    for (std::size_t end = in.size() - 1; end > 0 && end < in.size(); --end) {
      std::size_t bytes = 0;
      for (std::size_t b = 1; b <= std::min({end, options.max_bytes, text.size()}); ++b) {
        if (in.substr(end - b, b) == text.substr(text.size() - b)) bytes = b;
      }
      if (bytes >= min) places.push_back({bytes, in.substr(end)});
    }
  };
  look(text, options.min_bytes);
  for (std::size_t i = earlier.size(); i-- > 0;) look(earlier[i], options.min_history_bytes);
  std::ranges::stable_sort(places, std::ranges::greater{}, &Place::bytes);
  if (places.size() > options.matches) places.resize(options.matches);

  std::map<std::string, double> paths{{"", 1.0}};
  const auto votes = [&](const std::string& path, std::size_t longest) {
    double sum = 0;
    for (const Place& place : places) {
      if (place.follow.starts_with(path)) {
        sum += std::pow(0.5, static_cast<double>(longest - place.bytes));
      }
    }
    return sum;
  };
  for (std::size_t depth = 0; depth < options.length; ++depth) {
    const auto shorter = paths;
    for (const auto& [path, probability] : shorter) {
      if (path.size() != depth) continue;
      std::size_t longest = 0;
      std::string next;
      for (const Place& place : places) {
        if (!place.follow.starts_with(path)) continue;
        longest = std::max(longest, place.bytes);
        if (place.follow.size() > depth) next += place.follow[depth];
      }
      const std::size_t agree = longest + depth;
      const double p          = agree < 4 ? 0.3 : agree < 8 ? 0.6 : 0.85;
      std::map<char, double> shares;
      for (const char byte : next) shares[byte] = votes(path + byte, longest);
      double all = (1 - p) / p;
      for (const auto& [byte, share] : shares) all += share;
      for (const auto& [byte, share] : shares) {
        const double here = probability * share / all;
        if (here >= options.min_probability) paths[path + byte] = here;
      }
    }
  }
  return paths;
}

}  // namespace

TEST_CASE("SuffixDrafter drafts after the longest match first, then after the latest") {
  const std::string text = "1-xyz+ 2-wyz* 3yz/ 4-xyz";
  CHECK(drafts(text, "", {.length = 7, .min_probability = 0}) ==
        Texts{"+ 2-wyz", "/ 4-xyz", "* 3yz/ "});
  CHECK(drafts(text, "", {.length = 7, .matches = 2, .min_probability = 0}) ==
        Texts{"+ 2-wyz", "/ 4-xyz"});
  CHECK(drafts("=abc1 =abc2 =abc3 =abc", "", {.length = 1, .matches = 2}) == Texts{"3", "2"});
}

TEST_CASE("SuffixDrafter drafts first what follows most of the places that agree as long") {
  const Texts two{"id=7;", "id=8;", "id=7;", "id=9;", "id=7;", "id=8;"};
  CHECK(drafts(encoded("?"), encoded("id="), {.length = 1}, history_of(two)).empty());
  CHECK(drafts(encoded("?"), encoded("id="), {.length = 1, .min_history_bytes = 3},
               history_of(two)) == Texts{"7", "8", "9"});
  // One that agrees longer has more weight than several others together.
  CHECK(drafts(encoded("?"), encoded("an id="), {.length = 1, .min_history_bytes = 3},
               history_of({"id=7;", "id=7;", "id=7;", "an id=8;"})) == Texts{"8", "7"});
}

TEST_CASE("SuffixDrafter drafts the farther the longer the agreement and the more places agree") {
  const auto length = [](const std::string& end, const Texts& history) {
    const auto found = drafts(encoded("?"), encoded(end), {.length = 40}, history_of(history));
    return found.empty() ? 0 : found.front().size();
  };
  const std::string value = "0123456789-0123456789-0123456789";
  const Texts one{"a long key=" + value}, three(3, one.front());
  CHECK(length("key=", one) > 4);
  CHECK(length("long key=", one) > length("key=", one) + 3);
  CHECK(length("key=", three) > length("key=", one) + 3);
}

TEST_CASE("SuffixDrafter proposes first tokens, unextended, where no path is worth extending") {
  const Tokens text = encoded("id=123; id=456; id=");
  const td::SuffixDrafter drafter{masks(), {.length = 3}};
  const auto candidates = candidates_of(drafter, text, {}, 0.999);
  REQUIRE(candidates.size() == 3);
  CHECK(path_to(candidates, 1) == "4");
  CHECK(path_to(candidates, 2) == "1");
  CHECK(candidates_of(drafter, text, {}).size() > 3);
}

TEST_CASE("SuffixDrafter compares bytes, so it finds a word however it is cut into tokens") {
  const Tokens prompt{encoded(" is cold in Oslo today.")};
  CHECK(std::ranges::count(prompt, masks().vocabulary().find(" Oslo").value()) == 1);
  const Tokens quoted{masks().vocabulary().find("'Oslo").value()};
  CHECK(drafts(prompt, quoted, {.length = 3}) == Texts{" to"});
  CHECK(drafts(prompt, Tokens{'\'', 'O', 's'}, {.length = 1}) == Texts{"l"});
}

TEST_CASE("SuffixDrafter also finds matches in the answer so far") {
  CHECK(drafts("?", "f(x=17), f(x=", {.length = 3, .matches = 1}) == Texts{"17)"});
  CHECK(drafts("?f(x=", "17), f(x=", {.length = 3, .matches = 1}) == Texts{"17)"});
}

TEST_CASE("SuffixDrafter keeps to its length and matches, with the longest tokens that fit") {
  const std::string prompt = "k=ab Oslo Oslo Oslo Oslo k=";
  CHECK(drafts(prompt, "", {.length = 1}) == Texts{"ab"});
  CHECK(drafts(prompt, "", {.length = 3}) == Texts{"ab Oslo Oslo"});
  CHECK(drafts(prompt, "", {.length = 60}) == Texts{"ab Oslo Oslo Oslo Oslo k="});
  CHECK(drafts(prompt, "", {.matches = 0}).empty());
  CHECK(drafts(prompt, "", {.length = 0}).size() <= 1);
  CHECK(drafts(prompt, "", {.min_bytes = 3}).empty());
  CHECK(drafts("aaaaaaaa", "", {.length = 1, .matches = 5}) == Texts{"a"});
}

TEST_CASE("SuffixDrafter over random texts drafts what a slow search finds, as likely") {
  std::size_t nodes = 0, branches = 0;
  for (unsigned seed = 0; seed < 800; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const auto random_text = [&](std::size_t most) {
      std::string text;
      for (std::size_t i = 0, size = random() % most; i < size; ++i) {
        text += static_cast<char>('p' + random() % 3);
      }
      return text;
    };
    const std::string text = random_text(40);
    Texts earlier(random() % 5);
    for (std::string& one : earlier) one = random_text(30);
    const td::SuffixOptions options{.length            = 1 + random() % 6,
                                    .matches           = 1 + random() % 9,
                                    .min_bytes         = 1 + random() % 4,
                                    .min_history_bytes = 1 + random() % 4,
                                    .max_bytes         = 4 + random() % 6,
                                    .min_probability   = random() % 2 == 0 ? 0.0 : 0.1};
    const auto expected = slow_paths(text, earlier, options);
    const auto candidates =
        candidates_of(td::SuffixDrafter{masks(), options, history_of(earlier)}, encoded(text), {});
    REQUIRE(candidates.size() == expected.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::string path = path_to(candidates, i);
      INFO("after " << text << " comes " << path);
      REQUIRE(expected.contains(path));
      REQUIRE(std::exp(candidates.score(i)) == Approx(expected.at(path)).epsilon(1e-4));
      branches += i > 0 && candidates.depth(i) == 1;
    }
    nodes += candidates.size() - 1;
  }
  CHECK(nodes > 3000);
  CHECK(branches > 500);
}

TEST_CASE("SuffixDrafter without a match or over a short text drafts nothing") {
  CHECK(drafts("abcdefg").empty());
  for (const char* text : {"", "a", "aa", "ab"}) CHECK(drafts(text).empty());
  for (const std::size_t min : {0U, 1U}) {
    // With min_bytes 0, an empty match counts.
    for (const char* text : {"", "a"}) {
      CHECK(drafts(text, "", {.min_bytes = min}).size() <= 1);
    }
    CHECK(drafts("qq", "", {.matches = 1, .min_bytes = 1}) == Texts{"q"});
  }
}

TEST_CASE("SuffixDrafter after an incomplete character drafts the bytes that follow") {
  // The end is two of the three bytes of a Euro sign that came before.
  CHECK(drafts("1 \xE2\x82\xAC, 2 \xE2\x82", "", {.length = 2, .matches = 1}) == Texts{"\xAC,"});
  CHECK(drafts("\xE2\x82", "\xE2\x82", {.length = 2}) == Texts{"\xE2\x82"});
  // A vocabulary without the byte that follows ends the guess there.
  const td::Vocabulary few({{"k", td::TokenType::normal},
                            {"=", td::TokenType::normal},
                            {"\xE2\x82\xAC", td::TokenType::normal}},
                           {});
  const td::SuffixDrafter drafter{few, {.max_bytes = 2}};
  const td::Unconstrained any{3};
  const Tokens prompt{0, 1, 2, 0, 1};
  auto request = drafter.begin(prompt);
  const td::DraftContext<td::Unconstrained> context{.constraint = any,
                                                    .state      = any.initial(),
                                                    .prompt     = prompt,
                                                    .generated  = {},
                                                    .hidden     = {},
                                                    .max_depth  = 60,
                                                    .max_nodes  = 64};
  const auto tree = td::draft_tree(drafter, request, context);
  REQUIRE(tree.size() == 4);
  CHECK(tree.token(1) == 2);
}

TEST_CASE("SuffixDrafter's request drafts the same in rounds as one that starts anew") {
  const td::SuffixDrafter drafter{masks()};
  const td::Unconstrained any{masks().vocabulary().size()};
  const Tokens all = encoded("the cat in Oslo, the dog in Oslo, the cat in Oslo, the cow in Oslo");
  const Tokens prompt(all.begin(), all.begin() + 4);
  auto request = drafter.begin(prompt);
  for (std::size_t length = 4; length <= all.size(); length += 1 + length % 3) {
    const Tokens generated(all.begin() + 4, all.begin() + static_cast<std::ptrdiff_t>(length));
    const td::DraftContext<td::Unconstrained> context{.constraint = any,
                                                      .state      = any.initial(),
                                                      .prompt     = prompt,
                                                      .generated  = generated,
                                                      .hidden     = {},
                                                      .max_depth  = 60,
                                                      .max_nodes  = 64};
    auto fresh          = drafter.begin(prompt);
    const auto followed = td::draft_tree(drafter, request, context);
    const auto anew     = td::draft_tree(drafter, fresh, context);
    CHECK(std::ranges::equal(followed.tokens(), anew.tokens()));
    CHECK(std::ranges::equal(followed.ancestors(), anew.ancestors()));
    CHECK(followed.size() <= 25);
  }
}

TEST_CASE("SuffixDrafter drafts as far as the constraint allows") {
  const td::ToolCallFSM calls{masks(),
                              td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
                                "properties": {"n": {"type": "integer"}}, "required": ["n"]}}])"),
                              td::PythonCall{},
                              {.choice = td::ToolChoice::required}};
  const td::SuffixDrafter drafter{masks()};
  const Tokens prompt = encoded("n=12x and"), generated = encoded("[f(n=");
  auto state = calls.initial();
  for (const td::TokenId token : generated) state = *calls.advance(state, token);
  auto request = drafter.begin(prompt);
  const td::DraftContext<td::ToolCallFSM> context{.constraint = calls,
                                                  .state      = state,
                                                  .prompt     = prompt,
                                                  .generated  = generated,
                                                  .hidden     = {},
                                                  .max_depth  = 60,
                                                  .max_nodes  = 64};
  const auto tree = td::draft_tree(drafter, request, context);
  REQUIRE(tree.size() == 3);
  CHECK(tree.token(1) == '1');
  CHECK(tree.token(2) == '2');
}

TEST_CASE("SuffixDrafter counts no vote for a token that the constraint forbids") {
  const td::ToolCallFSM calls{masks(),
                              td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
                                "properties": {"n": {"type": "integer"}}, "required": ["n"]}}])"),
                              td::PythonCall{},
                              {.choice = td::ToolChoice::required}};
  const auto history     = history_of({"[f(n='a')]", "[f(n=7)]", "[f(n='b')]", "[f(n='c')]"});
  const Tokens generated = encoded("[f(n=");
  auto state             = calls.initial();
  for (const td::TokenId token : generated) state = *calls.advance(state, token);
  const td::SuffixDrafter drafter{masks(), {}, history};
  auto request = drafter.begin({});
  const td::DraftContext<td::ToolCallFSM> context{.constraint = calls,
                                                  .state      = state,
                                                  .prompt     = {},
                                                  .generated  = generated,
                                                  .hidden     = {},
                                                  .max_depth  = 60,
                                                  .max_nodes  = 64};
  const auto tree = td::draft_tree(drafter, request, context);
  REQUIRE(tree.size() >= 2);
  CHECK(tree.token(1) == '7');
  CHECK(std::exp(tree.score(1)) == Approx(0.6));
}

TEST_CASE("SuffixDrafter with a history of answers changes none, and needs fewer passes for them") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex index{vocabulary};
  std::size_t alone = 0, known = 0, plain = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomModel model{vocabulary.size(), {.seed = seed, .peak = 6}};
    const td::ToolCallFSM calls{index,
                                td::test::random_tools(random),
                                td::PythonCall{},
                                {.choice = td::ToolChoice::required}};
    const auto history = std::make_shared<td::SuffixHistory>(1000);
    const td::SuffixDrafter own{index};
    const td::SuffixDrafter shared{index, {}, history};
    const td::SizedDrafter sized{td::DrafterGroup{shared, td::JumpForwardDrafter{index.trie()}},
                                 td::TreeCosts::flat()};
    const td::DecodeOptions options{
        .max_tokens = 60, .temperature = seed % 2 == 0 ? 0.0F : 0.8F, .seed = seed};
    const Tokens prompt{1, 2, 3};
    const td::Decoder decode{model, calls};
    const td::Output expected = decode(prompt, options);
    plain += expected.passes;
    const auto check = [&](const auto& drafter) {
      const td::Decoder fast{model, calls, td::TreeSpeculation{drafter}};
      const td::Output found = fast(prompt, options);
      REQUIRE(found.tokens == expected.tokens);
      REQUIRE(found.log_probabilities == expected.log_probabilities);
      return found.passes;
    };
    alone += check(own);
    history->add(vocabulary, decode(prompt, {.max_tokens = 60, .seed = seed + 1}).tokens);
    history->add(vocabulary, expected.tokens);
    known += check(shared);
    static_cast<void>(check(sized));
    static_cast<void>(check(td::AnyDrafter<td::ToolCallFSM>(shared)));
  }
  CHECK(alone < plain);
  CHECK(2 * known < alone);
}

TEST_CASE("SuffixDrafter drafts an answer that was added to its history when it ended") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::test::RandomModel model{vocabulary.size(), {.seed = 3}};
  std::mt19937 random{3};
  const td::ToolCallFSM calls{vocabulary,
                              td::test::random_tools(random),
                              td::PythonCall{},
                              {.choice = td::ToolChoice::required}};
  const Tokens prompt{1, 2, 3};
  //! [history]
  const auto history = std::make_shared<td::SuffixHistory>(65'536);  // tokens; the oldest leave
  const td::SuffixDrafter suffix{vocabulary, {}, history};
  const td::Decoder decode{model, calls, td::TreeSpeculation{suffix}};
  const td::Output output = decode(prompt);
  history->add(vocabulary, output.tokens);
  //! [history]
  const td::Output again = decode(prompt);
  CHECK(again.tokens == output.tokens);
  CHECK(again.passes < output.passes);
}
