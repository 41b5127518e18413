// Calls to tools that do not exist, under fuzzy matching and backtrace.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/assistant.hpp>
#include <program/methods.hpp>
#include <program/name_repairs.hpp>
#include <support/catch.hpp>

using namespace tooldecode;

namespace {

// Writes the first text that begins as the answer does, then ends.
class Writer {
 public:
  struct Cache {
    std::vector<TokenId> tokens;
  };

  Writer(const Tokenizer& tokenizer, std::size_t prompt, const std::vector<std::string>& texts)
      : size_(tokenizer.vocabulary().size()), prompt_(prompt) {
    for (const std::string& text : texts) {
      texts_.push_back(tokenizer.encode(text));
      texts_.back().push_back(tokenizer.vocabulary().end_tokens().front());
    }
  }

  [[nodiscard]] std::size_t vocabulary_size() const { return size_; }
  [[nodiscard]] Cache make_cache() const { return {}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return cache.tokens.size(); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return cache; }
  void truncate(Cache& cache, std::size_t length) const { cache.tokens.resize(length); }
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    cache.tokens.insert(cache.tokens.end(), tokens.begin(), tokens.end());
    const auto answer = std::span(cache.tokens).subspan(prompt_);
    std::ranges::fill(logits, 0.0F);
    float logit = 100;
    for (const auto& text : texts_) {
      logit -= 1;
      if (text.size() <= answer.size()) continue;
      if (!std::ranges::equal(answer, std::span(text).first(answer.size()))) continue;
      float& own = logits[static_cast<std::size_t>(text[answer.size()])];
      own        = std::max(own, logit);
    }
  }

 private:
  std::size_t size_, prompt_;
  std::vector<std::vector<TokenId>> texts_;
};

struct Written {
  Tokenizer tokenizer = load_tokenizer(program::example_data("tiny"));
  VocabularyIndex index{tokenizer.vocabulary()};
  ToolCallFSM calls{index,
                    ToolSet::parse(R"([{"name": "math.hypot", "parameters": {"type": "object",
                        "properties": {"x": {"type": "number"}}, "required": ["x"]}},
                      {"name": "set_timer", "parameters": {"type": "object", "properties": {}}}])"),
                    PythonCall{}};
  std::vector<TokenId> prompt = tokenizer.encode("Please.");

  [[nodiscard]] std::string write(const std::string& method, const std::vector<std::string>& texts,
                                  Output* account = nullptr) const {
    const Writer model{tokenizer, prompt.size(), texts};
    // The methods that need only a Model.
    const auto run = [&]() -> Output {
      if (method == "backtrace") return program::Backtrace{model, tokenizer, calls, 4}(prompt, {});
      const auto decode = program::decode_greedily(model, tokenizer);
      return program::repair_by_suffix(decode(prompt, {}).output, tokenizer, calls.tools());
    };
    const Output output = run();
    if (account != nullptr) *account = output;
    return tokenizer.vocabulary().decode(output.tokens);
  }
};

}  // namespace

TEST_CASE("find_written_names finds the names of calls in prose, lists and beside strings") {
  const auto names = [](const std::string& text) {
    std::vector<std::string> found;
    for (const auto& [begin, length] : program::find_written_names(text))
      found.push_back(text.substr(begin, length));
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(names("[a.b(x=\"c(\"), d_1(y=e(2))]") == Names{"a.b", "d_1"});
  CHECK(names("It's f(x='it\\'s g(1)') and h()") == Names{"f", "h"});
  CHECK(names("(1) no call (at all) )").empty());
  CHECK(names("open(") == Names{"open"});
  CHECK(names("").empty());
}

TEST_CASE("Fuzzy matching replaces an unknown name by the tool with its suffix") {
  const Written written;
  CHECK(written.write("fuzzy-matching", {"[hypot(x=1), set_timer()]"}) ==
        "[math.hypot(x=1), set_timer()]");
  CHECK(written.write("fuzzy-matching", {"[start_timer()]"}) == "[set_timer()]");
  CHECK(written.write("fuzzy-matching", {"[reset(x=1)]"}) == "[math.hypot(x=1)]");  // by one byte
  CHECK(written.write("fuzzy-matching", {"[abc()]"}) == "[abc()]");
  CHECK(written.write("fuzzy-matching", {"No call."}) == "No call.");
}

TEST_CASE("Backtrace takes the next probable token where a call has failed") {
  const Written written;
  Output account;
  const std::vector<std::string> texts{"[hypot(x=1)]", "[timer()]", "[set_timer()]", "never read"};
  CHECK(written.write("backtrace", texts, &account) == "[set_timer()]");
  Output greedy;
  CHECK(written.write("fuzzy-matching", texts, &greedy) == "[math.hypot(x=1)]");
  CHECK(account.passes > greedy.passes);
  // The first answer where no other is better; an answer without a call returns to its beginning.
  CHECK(written.write("backtrace", {"[hypot(x=1)]", "[timer()]"}) == "[hypot(x=1)]");
  CHECK(written.write("backtrace", {"Hello.", "[set_timer()]"}) == "[set_timer()]");
  CHECK(written.write("backtrace", {"[math.hypot(x=2)]", "[set_timer()]"}) == "[math.hypot(x=2)]");
  CHECK(written.write("backtrace", {"", "[set_timer()]"}) == "[set_timer()]");
}
