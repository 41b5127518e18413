#include <string>
#include <vector>

#include <tooldecode/vocabulary/end_tokens.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Ids    = std::vector<td::TokenId>;

namespace {

std::vector<td::Vocabulary::Entry> named_entries(const std::vector<std::string>& names) {
  std::vector<td::Vocabulary::Entry> entries;
  for (const std::string& name : names) entries.push_back({name, td::TokenType::control});
  return entries;
}

}  // namespace

TEST_CASE("find_named_ends finds tokens by name whatever their type") {
  using td::TokenType;
  const std::vector<td::Vocabulary::Entry> entries{
      {"<eos>", TokenType::control},        {"</s>", TokenType::normal},
      {"<|im_start|>", TokenType::control}, {"<|im_end|>", TokenType::user_defined},
      {"<|eot_id|>", TokenType::normal},    {"end", TokenType::control},
      {"<|end|>", TokenType::control},      {"[PAD]", TokenType::unused}};
  CHECK(td::vocabulary::find_named_ends(entries) == Ids{0, 1, 3, 4, 6, 7});
  CHECK(td::vocabulary::find_named_ends({}).empty());
}

TEST_CASE("find_named_ends accepts each known name of an end token and no similar name") {
  for (const char* name : {"<|eot_id|>",
                           "<|eom_id|>",
                           "<|end_of_text|>",
                           "<|im_end|>",
                           "<|endoftext|>",
                           "<|end|>",
                           "<|return|>",
                           "<|call|>",
                           "<|flush|>",
                           "<|calls|>",
                           "<end_of_turn>",
                           "<turn|>",
                           "<|tool_response>",
                           "<end_of_utterance>",
                           "<EOT>",
                           "_<EOT>",
                           "[EOT]",
                           "[EOS]",
                           "<eos>",
                           "</s>",
                           "[e~[",
                           "<|fim_pad|>",
                           "<fim-pad>",
                           "<fim_pad>",
                           "<PAD>",
                           "[PAD]",
                           "<|fim_repo|>",
                           "<|repo_name|>",
                           "<fim-repo>",
                           "<REPO>",
                           "<reponame>",
                           "<|file_sep|>",
                           "<\xEF\xBD\x9C"
                           "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"}) {
    INFO(name);
    CHECK(td::vocabulary::find_named_ends(named_entries({name})) == Ids{0});
  }
  for (const char* name : {"<pad>", "<s>", "<bos>", "<|fim_prefix|>", "<|eot|>", "<|EOT|>",
                           "<file_sep>", "<|end_of_turn|>", "<|start|>", "<|channel|>", ""}) {
    INFO(name);
    CHECK(td::vocabulary::find_named_ends(named_entries({name})).empty());
  }
}

TEST_CASE("find_named_ends and without_false_ends omit tokens that end only a message") {
  using td::vocabulary::find_named_ends;
  // "<|end|>" ends a message if other tokens end turns; without them it ends the text (Phi).
  CHECK(find_named_ends(named_entries({"<|end|>", "<|call|>"})) == Ids{0, 1});
  CHECK(find_named_ends(named_entries({"<|end|>", "<|return|>"})) == Ids{0, 1});
  CHECK(find_named_ends(named_entries({"<|end|>", "<|flush|>"})) == Ids{0, 1});
  CHECK(find_named_ends(named_entries({"<|end|>", "<|call|>", "<|return|>"})) == Ids{1, 2});
  CHECK(find_named_ends(named_entries({"<|end|>", "<|calls|>", "<|return|>"})) == Ids{1, 2});
  CHECK(find_named_ends(named_entries({"<|end|>", "<|calls|>", "<|flush|>"})) == Ids{1, 2});
  // With channels, a call is a message too.
  auto entries = named_entries({"<|end|>", "<|call|>", "<|return|>", "<|channel|>"});
  CHECK(find_named_ends(entries) == Ids{2});
  CHECK(td::vocabulary::without_false_ends({9, 2, 1, 0}, entries) ==
        Ids{9, 2});  // keeps tokens outside of the entries
  entries[3].type = td::TokenType::normal;
  CHECK(find_named_ends(entries) == Ids{1, 2});
}

TEST_CASE("without_false_ends omits </s> if <|plamo:eos|> is an end token too") {
  using td::vocabulary::without_false_ends;
  CHECK(td::vocabulary::find_named_ends(named_entries({"</s>", "<|tool_response>"})) == Ids{1});
  const auto entries = named_entries({"</s>", "<|plamo:eos|>", "<turn|>"});
  CHECK(without_false_ends({0, 1}, entries) == Ids{1});
  CHECK(without_false_ends({0, 2}, entries) == Ids{0, 2});
}
