#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include <tooldecode/adapters/llama_cpp_context.hpp>
#include <tooldecode/core/error.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/numbered_gguf.hpp>
#include <support/quiet_llama_cpp.hpp>
#include <support/random_llama.hpp>

namespace td = tooldecode;

namespace {

using Context = td::llama_cpp::Context;
using Tokens  = std::vector<td::TokenId>;
using td::test::code_of;

std::shared_ptr<llama_model> model() {
  td::LlamaConfig config = td::test::random_llama_config();
  config.hidden_size     = 32;
  config.head_size       = 8;
  config.heads           = 4;
  const td::test::TemporaryFile file(
      "tooldecode_context.gguf",
      td::test::numbered_gguf(config, td::test::random_llama_weights(config, 1)));
  llama_backend_init();
  return {llama_model_load_from_file(file.path().c_str(), llama_model_default_params()),
          llama_model_free};
}

}  // namespace

TEST_CASE("llama_cpp::Context refuses options on which llama.cpp would abort") {
  const auto of = model();
  for (const td::LlamaCppOptions options :
       {td::LlamaCppOptions{.sequences = 257}, td::LlamaCppOptions{.sequences = 0},
        td::LlamaCppOptions{.batch = 0}, td::LlamaCppOptions{.threads = 0}}) {
    CHECK(code_of([&] { const Context context(of, options); }) == td::Errc::invalid_option);
  }
  const Context context(of, {.sequences = 200, .batch = 1});
  CHECK(context.batch_size >= 200);  // llama.cpp aborts if the sequences do not fit into a batch
}

TEST_CASE("llama_cpp::Context gives each sequence to one owner until it is returned") {
  Context context(model(), {.sequences = 3});
  std::set<llama_seq_id> taken;
  for (int i = 0; i < 3; ++i) taken.insert(context.take_sequence());
  CHECK(taken == std::set<llama_seq_id>{0, 1, 2});
  CHECK(code_of([&] { static_cast<void>(context.take_sequence()); }) == td::Errc::limit_exceeded);
  td::llama_cpp::Sequence sequence{.id = 1};
  context.give_back(sequence);
  CHECK(context.take_sequence() == 1);
}

TEST_CASE("llama_cpp::Context leaves a sequence as it was if a token is refused") {
  Context context(model(), {.sequences = 4});
  td::llama_cpp::Sequence sequence{.id = context.take_sequence()};
  std::size_t passes  = 0;
  const auto count    = [&](std::size_t, std::size_t) { ++passes; };
  const auto append   = [&](const Tokens& tokens) { context.append(sequence, tokens, count); };
  const auto run_tree = [&](const Tokens& tokens, std::vector<std::uint64_t> ancestors) {
    context.run_tree(sequence, tokens, ancestors);
  };
  append({1, 2, 3});
  CHECK(code_of([&] { append({4, 61}); }) == td::Errc::unknown_token);
  CHECK(code_of([&] { append(Tokens(198, 5)); }) == td::Errc::limit_exceeded);
  CHECK((sequence.length == 3 && passes == 1));
  run_tree({1, 2, 3}, {1, 3, 5});  // two leaves
  CHECK(sequence.leaves.size() == 2);
  CHECK(code_of([&] { run_tree({1, -1}, {1, 3}); }) == td::Errc::unknown_token);
  CHECK(code_of([&] { run_tree(Tokens(4, 1), {1, 2, 4, 8}); }) == td::Errc::limit_exceeded);
  CHECK((sequence.leaves.empty() && sequence.length == 3 && context.pending() == 0));
  append(Tokens(197, 5));  // nothing else holds a cell
  CHECK(sequence.length == 200);
}
