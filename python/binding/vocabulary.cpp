#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/gguf.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/sentencepiece_model.hpp>
#include <tooldecode/vocabulary/tiktoken.hpp>
#include <tooldecode/vocabulary/tokenizer_json.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include "handles.hpp"
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace tooldecode::python {
namespace {

using namespace nb::literals;
using Path      = std::filesystem::path;
using EndTokens = std::optional<std::vector<TokenId>>;
using Tokens    = c_interface::Tokens;

// What every vocabulary may be made with.
struct Options {
  EndTokens end_tokens;
  std::size_t size         = 0;
  std::size_t memory_bytes = 0;
};

VocabularyHandle finish(Vocabulary vocabulary, const Tokenizer* tokenizer, const Options& options) {
  if (options.end_tokens) vocabulary = vocabulary.with_end_tokens(*options.end_tokens);
  if (options.size != 0) vocabulary = vocabulary.with_size(options.size);
  auto tokens = std::make_shared<Tokens>(vocabulary, options.memory_bytes);
  if (tokenizer != nullptr) tokens->set(*tokenizer);
  return {std::move(tokens)};
}
VocabularyHandle finish(const Tokenizer& tokenizer, const Options& options) {
  return finish(tokenizer.vocabulary(), &tokenizer, options);
}

VocabularyHandle load(const Path& path, EndTokens end_tokens, std::size_t size,
                      std::size_t memory_bytes) {
  const nb::gil_scoped_release release;
  return finish(load_tokenizer(path), {std::move(end_tokens), size, memory_bytes});
}

// One form of file, whatever else it could be.
template <class Parse>
auto load_as(Parse parse) {
  return
      [parse](const Path& path, EndTokens end_tokens, std::size_t size, std::size_t memory_bytes) {
        const nb::gil_scoped_release release;
        const std::string bytes = core::read_file(path);
        try {
          return finish(parse(bytes), {std::move(end_tokens), size, memory_bytes});
        } catch (const Error& error) {
          throw error.within(path.string());
        }
      };
}

VocabularyHandle from_gguf(const Path& path, EndTokens end_tokens, std::size_t size,
                           std::size_t memory_bytes) {
  const nb::gil_scoped_release release;
  return finish(vocabulary::load_gguf(path), {std::move(end_tokens), size, memory_bytes});
}

// An object of a user's or of a tokenizer's, whose type nothing has checked.
template <class Value>
Value read_as(nb::handle object, const std::string& place, const char* wanted) {
  Value value;
  if (nb::try_cast(object, value)) return value;
  throw Error(Errc::malformed_vocabulary, place, wanted);
}

std::vector<Vocabulary::Entry> entries_of(const nb::sequence& tokens) {
  std::vector<Vocabulary::Entry> entries;
  for (const nb::handle token : tokens) {
    const auto bytes =
        read_as<nb::bytes>(token, "tokens/" + std::to_string(entries.size()), "must be bytes");
    entries.push_back({std::string(bytes.c_str(), bytes.size())});
  }
  return entries;
}

VocabularyHandle from_bytes(const nb::sequence& tokens, EndTokens end_tokens,
                            const std::vector<TokenId>& control_tokens, std::size_t size,
                            std::size_t memory_bytes) {
  std::vector<Vocabulary::Entry> entries = entries_of(tokens);
  for (const TokenId token : control_tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= entries.size()) {
      throw Error(Errc::malformed_vocabulary, "control_tokens", token,
                  "must be the place of a token");
    }
    entries[static_cast<std::size_t>(token)].type = TokenType::control;
  }
  const nb::gil_scoped_release release;
  return finish(Vocabulary(entries), nullptr, {std::move(end_tokens), size, memory_bytes});
}

VocabularyHandle from_huggingface(const nb::object& tokenizer, EndTokens end_tokens,
                                  std::size_t size, std::size_t memory_bytes) {
  nb::object fast = tokenizer;
  if (nb::hasattr(fast, "backend_tokenizer")) fast = fast.attr("backend_tokenizer");
  if (!nb::hasattr(fast, "to_str")) {
    throw Error(Errc::malformed_vocabulary, "tokenizer",
                "must be a tokenizers.Tokenizer, or of transformers with one inside");
  }
  const auto text =
      read_as<std::string>(fast.attr("to_str")(), "tokenizer/to_str", "must be a str");
  JsonValue config = JsonValue::object();
  for (const char* name : {"bos_token", "eos_token"}) {
    const nb::object token = nb::getattr(tokenizer, name, nb::none());
    if (token.is_none()) continue;
    config[name] =
        read_as<std::string>(nb::str(token), std::string("tokenizer/") + name, "must be Unicode");
  }
  const nb::gil_scoped_release release;
  const std::string names = config.text();
  return finish(vocabulary::parse_tokenizer_json(text, {.tokenizer_config = names}),
                {std::move(end_tokens), size, memory_bytes});
}

VocabularyHandle from_tiktoken(const nb::object& encoding, EndTokens end_tokens, std::size_t size,
                               std::size_t memory_bytes) {
  std::vector<Vocabulary::Entry> entries;
  const auto add = [&](nb::handle id, std::string bytes, TokenType type) {
    const auto i = read_as<std::size_t>(id, "encoding", "an id must be an integer from 0");
    if (i >= std::size_t{1} << 24) {
      throw Error(Errc::malformed_vocabulary, "token " + std::to_string(i), "must be below 2^24");
    }
    if (i >= entries.size()) entries.resize(i + 1, {"", TokenType::unused});
    entries[i] = {std::move(bytes), type};
  };
  const auto member = [&encoding](const char* name) {
    return nb::object(nb::getattr(encoding, name, nb::none()));
  };
  const char* const wanted = "must be a tiktoken.Encoding";
  const auto ranks         = read_as<nb::dict>(member("_mergeable_ranks"), "encoding", wanted);
  for (const auto [token, rank] : ranks) {
    const auto bytes =
        read_as<nb::bytes>(token, "encoding/_mergeable_ranks", "a token must be bytes");
    add(rank, {bytes.c_str(), bytes.size()}, TokenType::normal);
  }
  const auto names = read_as<nb::dict>(member("_special_tokens"), "encoding", wanted);
  for (const auto [name, rank] : names) {
    add(rank, read_as<std::string>(name, "encoding/_special_tokens", "a name must be a str"),
        TokenType::control);
  }
  const auto pattern = read_as<std::string>(member("_pat_str"), "encoding", wanted);
  const nb::gil_scoped_release release;
  const Vocabulary vocabulary(entries, {.end_tokens = vocabulary::find_named_ends(entries)});
  return finish(Tokenizer(vocabulary, vocabulary::BytePairEncoding::by_ids(vocabulary),
                          vocabulary::PreTokenizer({pattern})),
                {std::move(end_tokens), size, memory_bytes});
}

nb::bytes bytes_of(std::string_view text) {
  return nb::bytes(text.data(), text.size());
}

std::vector<TokenId> encode(const VocabularyHandle& self, const std::string& text,
                            bool parse_special) {
  const nb::gil_scoped_release release;
  if (!self.tokens->tokenizer) {
    throw Error(Errc::malformed_vocabulary, "vocabulary",
                "has no tokenizer, as it was made of the bytes of tokens");
  }
  return self.tokens->tokenizer->encode(text, {.parse_special = parse_special});
}

}  // namespace

void bind_vocabulary(nb::module_& module) {
  nb::class_<VocabularyHandle> vocabulary(
      module, "Vocabulary",
      "What each token id writes, and which ids end a text. Immutable.\n\n"
      "Everything over one vocabulary shares states and masks: make one and keep it. Of every way to\n"
      "make one: `end_tokens` replaces the ids that end a text; `size` is V, the number of a model's\n"
      "logits, where that is more than there are tokens; `memory_bytes` bounds the states and masks\n"
      "that constraints keep, see Constraint.renew (0: 512 MiB).");
  const auto add = [&vocabulary](const char* name, const char* argument, auto make,
                                 const char* text) {
    vocabulary.def_static(name, make, nb::arg(argument), "end_tokens"_a = nb::none(), nb::kw_only(),
                          "size"_a = 0, "memory_bytes"_a = 0, text);
  };
  add("load", "path", &load,
      "A tokenizer's file, told apart by its content: tokenizer.json or its folder, GGUF,\n"
      "tokenizer.model, tiktoken's lines, tekken.json. The configuration files beside a\n"
      "tokenizer.json say which tokens end a text.");
  vocabulary.def_static(
      "from_bytes", &from_bytes, "tokens"_a, "end_tokens"_a = nb::none(), nb::kw_only(),
      "control_tokens"_a = std::vector<TokenId>(), "size"_a = 0, "memory_bytes"_a = 0,
      nb::sig(
          "def from_bytes(tokens: collections.abc.Sequence[bytes], end_tokens: "
          "collections.abc.Sequence[int] | None = None, *, control_tokens: "
          "collections.abc.Sequence[int] = [], size: int = 0, memory_bytes: int = 0) -> Vocabulary"),
      "The bytes that each id writes, [tokens]; `control_tokens` are names and write nothing. It\n"
      "cannot encode.");
  add("from_huggingface", "tokenizer", &from_huggingface,
      "A tokenizer of `tokenizers` or `transformers`, by the text of its tokenizer.json.");
  add("from_tiktoken", "encoding", &from_tiktoken, "A `tiktoken.Encoding`.");
  add("from_gguf", "path", &from_gguf, "The vocabulary of a GGUF file.");
  add("from_sentencepiece", "path", load_as(vocabulary::parse_sentencepiece),
      "SentencePiece's tokenizer.model.");
  add("from_mistral_common", "path", load_as(vocabulary::parse_tekken),
      "The tekken.json of mistral-common.");

  vocabulary
      .def_prop_ro(
          "size", [](const VocabularyHandle& self) { return self.vocabulary().size(); },
          "V: the ids that a model has logits for.")
      .def_prop_ro(
          "mask_words",
          [](const VocabularyHandle& self) { return mask_word_count(self.vocabulary().size()); },
          "W = ceil(V / 32): the words of a mask.")
      .def_prop_ro(
          "end_tokens",
          [](const VocabularyHandle& self) {
            const auto ends = self.vocabulary().end_tokens();
            return std::vector<TokenId>(ends.begin(), ends.end());
          },
          "The ids that end a text, the usual one first.")
      .def(
          "encode", &encode, "text"_a, nb::kw_only(), "parse_special"_a = false,
          "Text to token ids, as the model's own tokenizer does it; `parse_special` reads the names\n"
          "of control tokens as those tokens.")
      .def(
          "decode",
          [](const VocabularyHandle& self, const std::vector<TokenId>& tokens) {
            return bytes_of(self.vocabulary().decode(tokens));
          },
          "tokens"_a, "The bytes that token ids write; they may begin and end inside a character.")
      .def(
          "answer_text",
          [](const VocabularyHandle& self, const std::vector<TokenId>& tokens) {
            return bytes_of(self.vocabulary().answer_text(tokens));
          },
          "tokens"_a,
          "The text of an answer as `parse` takes it: as `decode`, with the names of control tokens,\n"
          "because delimiters of calls may be such.")
      .def("__len__", [](const VocabularyHandle& self) { return self.vocabulary().size(); })
      .def("__copy__", [](nb::object self) { return self; })
      .def("__deepcopy__", [](nb::object self, const nb::object& /*memo*/) { return self; })
      .def("__hash__", [](const VocabularyHandle& self) { return self.vocabulary().hash() >> 1; })
      .def(
          "__eq__",
          [](const VocabularyHandle& self, nb::handle other) {
            const VocabularyHandle* one = nullptr;
            return nb::try_cast(other, one) && one != nullptr &&
                   one->vocabulary().hash() == self.vocabulary().hash();
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
}

}  // namespace tooldecode::python
