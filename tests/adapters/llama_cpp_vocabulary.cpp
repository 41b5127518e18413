// Against what load_vocabulary reads of the same file, and against llama.cpp's answers.
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/adapters/llama_cpp_model.hpp>
#include <tooldecode/adapters/llama_cpp_vocabulary.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/numbered_gguf.hpp>
#include <support/quiet_llama_cpp.hpp>
#include <support/random_llama.hpp>

namespace td = tooldecode;

namespace {

void check_same(const td::Vocabulary& a, const td::Vocabulary& b) {
  REQUIRE(a.size() == b.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto token = static_cast<td::TokenId>(i);
    if (a.type(token) == b.type(token) && a.bytes(token) == b.bytes(token) &&
        a.name(token) == b.name(token))
      continue;
    CAPTURE(i, a.name(token), b.name(token), a.bytes(token), b.bytes(token));
    if (++different < 10) CHECK(static_cast<int>(a.type(token)) == static_cast<int>(b.type(token)));
  }
  CHECK(different == 0);
}

}  // namespace

TEST_CASE("make_vocabulary of a llama_vocab has the tokens of its file") {
  const auto file = td::test::cached_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!file) return td::test::report_skipped("SmolLM2, see examples/models.sh");
  const auto model      = td::LlamaCppModel::load(*file, {.cells = 64});
  const auto vocabulary = td::llama_cpp::make_vocabulary(model.vocab());
  const auto loaded     = td::load_vocabulary(*file);
  check_same(vocabulary, loaded);
  CHECK(std::vector(vocabulary.end_tokens().begin(), vocabulary.end_tokens().end()) ==
        std::vector(loaded.end_tokens().begin(), loaded.end_tokens().end()));
  CHECK(vocabulary.begin_token() == loaded.begin_token());
  for (const td::TokenId token : vocabulary.end_tokens())
    CHECK(llama_vocab_is_eog(model.vocab(), token));
}

TEST_CASE(
    "make_vocabulary of a llama_vocab reads byte, user-defined and unused tokens, and its file's "
    "tokenizer writes llama.cpp's tokens") {
  std::vector<std::string> names{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types{2, 3, 3};
  std::vector<float> scores{0, 0, 0};
  const auto add = [&](const std::string& name, std::int32_t type) {
    names.push_back(name);
    types.push_back(type);
    scores.push_back(-static_cast<float>(names.size()));
  };
  for (int byte = 0; byte < 256; ++byte) {
    constexpr const char* digits = "0123456789ABCDEF";
    add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + '>', 6);
  }
  add("<tool>", 4);
  add("[unused]", 5);
  add("\xE2\x96\x81the", 1);
  add("\xE2\x96\x81", 1);
  const auto config = td::LlamaConfig{.vocabulary_size   = names.size(),
                                      .hidden_size       = 8,
                                      .intermediate_size = 8,
                                      .layers            = 1,
                                      .heads             = 1,
                                      .key_value_heads   = 1,
                                      .head_size         = 8,
                                      .context_length    = 64};
  td::test::GgufWriter whole;
  td::test::put_config(whole, config, "llama");
  td::test::put_weights(whole, config, td::test::random_llama_weights(config, 1), true);
  whole.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", names)
      .types("tokenizer.ggml.token_type", types)
      .floats("tokenizer.ggml.scores", scores)
      .number("tokenizer.ggml.bos_token_id", 1)
      .number("tokenizer.ggml.eos_token_id", 2)
      .number("tokenizer.ggml.unknown_token_id", 0);
  const td::test::TemporaryFile path("tooldecode_spm.gguf", whole.file(11 + 7));
  const auto model      = td::LlamaCppModel::load(path.path());
  const auto vocabulary = td::llama_cpp::make_vocabulary(model.vocab());
  check_same(vocabulary, td::load_vocabulary(path.path()));
  CHECK(vocabulary.bytes(3 + 0xE2) == "\xE2");
  CHECK(vocabulary.bytes(259) == "<tool>");
  CHECK(vocabulary.bytes(261) == " the");
  CHECK(vocabulary.end_tokens().size() == 1);

  const auto tokenizer = td::load_tokenizer(path.path());
  std::mt19937 random{7};
  const std::vector<std::string> parts{"<s>", "</s>", "the", " the", " ", "x", "<tool>", "  the"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t n = random() % 7; n > 0; --n) text += parts[random() % parts.size()];
    CAPTURE(text);
    std::vector<llama_token> expected(64);
    const auto count =
        llama_tokenize(model.vocab(), text.data(), static_cast<std::int32_t>(text.size()),
                       expected.data(), static_cast<std::int32_t>(expected.size()), false, true);
    REQUIRE(count >= 0);
    expected.resize(static_cast<std::size_t>(count));
    CHECK(tokenizer.encode(text, {.add_space_prefix = true, .parse_special = true}) == expected);
  }
}
