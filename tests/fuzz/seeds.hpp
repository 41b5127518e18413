/// \file
/// The seeds of the fuzz targets: fixtures of this repository, and shared data if present.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/model/block_type.hpp>
#include <tooldecode/model/llama_config.hpp>

#include <nlohmann/json.hpp>
#include <support/data.hpp>
#include <support/gguf_writer.hpp>
#include <support/make_gguf.hpp>
#include <support/random_llama.hpp>

namespace tooldecode::fuzz {

using Seeds = std::vector<std::string>;

/// Every `stride`-th row of a file.
inline std::vector<nlohmann::ordered_json> some_rows(const std::filesystem::path& path,
                                                     std::size_t stride) {
  std::vector<nlohmann::ordered_json> rows;
  std::istringstream lines(test::read_text(path));
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (number++ % stride == 0) rows.push_back(nlohmann::ordered_json::parse(line));
  }
  return rows;
}

/// Adds the files of corpus/<target>.
inline Seeds with_corpus(const char* target, Seeds seeds = {}) {
  const auto folder = test::source_root() / "tests" / "fuzz" / "corpus" / target;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) files.push_back(file);
  std::sort(files.begin(), files.end());
  for (const auto& file : files) seeds.push_back(test::read_text(file));
  return seeds;
}

inline Seeds grammar_seeds() {
  return with_corpus("grammar_text");
}

/// Lark grammars: one per group of constructs.
inline Seeds lark_seeds() {
  return {
      "start: expr\nexpr: term (\"+\" term)* -> sum // sums\n?term: INT | \"(\" expr \")\"\n%import common.INT\n"
      "%import common.WS\n%ignore WS\n",
      "start: (\"if\" NAME | NAME \"=\" STRING)+\nNAME: /[a-z_][a-z0-9_]*/i\nSTRING: /'[^']*'/ | \"x\"i\n"
      "%ignore /[ \\t]+/\n",
      "start: (head \"1\")* tail\nhead[lazy, capture=\"h\"]: TEXT \"<c>\"\ntail: TEXT\nTEXT: /(.|\\n)*/\n",
      "%llguidance {\"allow_initial_skip\": true}\nstart: %json {\"type\": \"object\"} <c>? %lark {\n"
      "start: \"a\"~2..3\n} [\"b\"]{1,}\n",
      "start: A | B\n  | /(?i:x)[^a-c&&[b-d]]\\w{2,3}?/s\nA: /[a-f]+/ & ~/.*b.*/\nB: \"0\"..\"7\" "
      "%regex {\"substring_words\": \"ab cd\"}\n",
      "start: r \"!\"\nr[suffix=\"b\"]: /[a-z]*/\nunused: <[1-2,3]> nowhere\n"};
}

/// Structural tags: one per group of formats, and the older form.
inline Seeds structural_tag_seeds() {
  return {
      R"({"type": "structural_tag", "format": {"type": "sequence", "elements": [
          {"type": "const_string", "value": "a"}, {"type": "regex", "pattern": "[ab]*c?"},
          {"type": "optional", "content": {"type": "grammar", "grammar": "root ::= \"(\" root? \")\""}},
          {"type": "any_text", "max_chars": 3, "excludes": ["x"]}]}})",
      R"({"format": {"type": "triggered_tags", "triggers": ["<f"], "excludes": ["</"], "at_least_one": true,
          "tags": [{"begin": "<f=a>", "content": {"type": "json_schema", "json_schema":
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}, "end": "</f>"},
            {"begin": "<f=b>", "content": {"type": "any_text"}, "end": ["</f>", ""]}]}})",
      R"({"format": {"type": "tags_with_separator", "separator": ",", "stop_after_first": false, "tags": [
          {"begin": {"type": "token", "token": 1}, "content": {"type": "any_tokens"},
           "end": {"type": "token", "token": "<tool_call>"}}]}})",
      R"({"format": {"type": "or", "elements": [
          {"type": "token_triggered_tags", "trigger_tokens": [1], "stop_after_first": true, "tags": [
            {"begin": {"type": "token", "token": 1}, "content": {"type": "token", "token": "aa"}, "end": "b"}]},
          {"type": "token_dispatch", "rules": [[1, {"type": "const_string", "value": "b"}]], "loop": false},
          {"type": "dispatch", "rules": [["ab", {"type": "star", "content": {"type": "any_text"}}]]}]}})",
      R"({"format": {"type": "json_schema", "style": "cohere_xml", "any_order": true, "max_whitespace_cnt": 3,
          "json_schema": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}},
            "b": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}}}}})",
      R"({"format": {"type": "repeat", "min": 1, "max": -1, "content": {"type": "tag", "begin": "<p>", "end": "</p>",
          "content": {"type": "qwen_xml_parameter", "json_schema": {"properties": {"a": {"type": "integer"}}}}}}})",
      R"({"structures": [{"begin": "<f>", "schema": {"type": "string"}, "end": "</f>"}], "triggers": ["<"]})"};
}

/// Schemas: one per group of keywords, those of tools, and the official suite's.
inline Seeds schema_seeds() {
  Seeds seeds{
      R"({"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-c]+(é|x)?$"})",
      R"({"type": ["integer", "null"], "minimum": -5, "exclusiveMaximum": 120})",
      R"({"type": "number", "exclusiveMinimum": -0.25, "maximum": 1.5})",
      R"({"enum": ["a", 1, null, {"k": [true]}, "é"], "type": ["string", "object", "null"]})",
      R"({"type": "array", "prefixItems": [{"const": 1}, {}], "items": false, "minItems": 1})",
      R"({"type": "array", "items": {"$ref": "#"}, "maxItems": 3})",
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}, "b": true},
          "required": ["a", "c"], "additionalProperties": {"type": "boolean"},
          "$defs": {"t": {"anyOf": [{"type": "null"}, {"type": "object",
            "properties": {"next": {"$ref": "#/$defs/t"}}, "additionalProperties": false}]}}})",
      R"({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]})"};
  for (const auto& row : some_rows(test::example_data("tiny/heldout.jsonl"), 30)) {
    for (const auto& tool : row["tools"]) seeds.push_back(tool["function"]["parameters"].dump());
  }
  for (const char* file : {"enum", "items", "properties", "ref", "pattern", "oneOf"}) {
    const auto path =
        test::shared_data("jsonschema/test-suite/draft2020-12/" + std::string(file) + ".json");
    if (!path) continue;
    for (const auto& group : nlohmann::ordered_json::parse(test::read_text(*path))) {
      seeds.push_back(group["schema"].dump());
    }
  }
  return seeds;
}

/// Patterns with every construct of the syntax.
inline Seeds pattern_seeds() {
  return {"^[a-z]{2,5}-[0-9]+$", "(a|b)*c",      "\\d{4}-\\d{2}",  "^\\S+@\\S+\\.\\w$",
          "[^\\x00-\\x1f]",      "(?:ab)+?|\\.", "^$|^(a(b)?)?$",  "a{0,3}b{2,}",
          "\\W\\s\\D\\cA\\0\\t", "[\\]\\-a\\b]", "\\u0041\\u{e9}", "é.[à-ü]"};
}

/// Calls and values in JSON and Python.
inline Seeds call_seeds() {
  Seeds seeds{"[f(1, b=2), f(a='x')]", "[f(a=(1,), b={'k': [None, -1.5e-9]})]",
              "'a' \"b\" '''c\n''' '\\x41\\N'", R"({"a": "\ud83d\ude00", "b": [1e5, -0.0]})"};
  for (
      const char* call :
      {R"(<|python_tag|>{"name": "f", "parameters": {"a": "x", "b": 2}})",
       R"([TOOL_CALLS] [{"name": "f", "arguments": {"a": "x", "b": 2}}])",
       R"([TOOL_CALLS]f[ARGS]{"a": "x", "b": 2})",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
       "{\"a\": \"x\", \"b\": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"x\", \"b\": 2}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
       "{\"a\": \"x\", \"b\": 2}<|tool_call_end|><|tool_calls_section_end|>",
       "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"b\": 2}<|call|>",
       "Action: f\nAction Input: {\"a\": \"x\", \"b\": 2}",
       "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\n2\n</parameter>\n"
       "</function>\n</tool_call>",
       "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>b</arg_key>\n"
       "<arg_value>2</arg_value>\n</tool_call>",
       R"(<f>("x", 2)=)", R"(<T>f("x", 2))"}) {
    seeds.emplace_back(call);
  }
  for (const auto& row : some_rows(test::example_data("tiny/heldout.jsonl"), 10)) {
    seeds.push_back(row["text"]);
  }
  for (const auto& row : some_rows(test::own_data("tools/python_literals.jsonl"), 10)) {
    for (const char* key : {"repr", "dumps"}) {
      if (row.contains(key)) seeds.push_back(row[key]);
    }
  }
  return seeds;
}

/// Tool documents in every form.
inline Seeds document_seeds() {
  Seeds seeds{
      test::read_text(test::example_data("tools.json")),
      R"([{"name": "m", "inputSchema": {"type": "object", "properties": {"a b": {"type": "array",
           "items": {"type": "number", "minimum": 0}}}}, "annotations": {"readOnlyHint": true}}])",
      R"({"functions": [{"name": "GET /x/{id}", "parameters": {"type": "dict", "properties": {
           "t": {"type": "tuple", "items": {"type": "float"}}, "o": {"type": "any"}},
           "required": ["t"]}}]})",
      R"({"name": "A", "input_parameters": {"k": {"type": "str"}, "n": {"type": "int"}},
          "defaults": {"n": "None"}, "output_parameters": {}})"};
  for (const auto& row : some_rows(test::example_data("tiny/heldout.jsonl"), 20)) {
    seeds.push_back(row["tools"].dump());
  }
  for (const char* file : {"bfcl/multiple.jsonl", "bfcl/live_simple.jsonl"}) {
    const auto path = test::shared_data(file);
    if (!path) continue;
    for (const auto& row : some_rows(*path, 20)) seeds.push_back(row["functions"].dump());
  }
  if (const auto path = test::shared_data("apibank/apis.jsonl")) {
    for (const auto& row : some_rows(*path, 5)) seeds.push_back(row.dump());
  }
  return seeds;
}

inline std::string small_gguf(bool byte_level) {
  std::string bytes = "GGUF";
  const auto number = [&](std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> 8 * i));
  };
  const auto text = [&](std::string_view value) {
    number(value.size(), 8);
    bytes += value;
  };
  const auto array = [&](std::string_view key, std::uint64_t type, std::size_t count) {
    text(key);
    number(9, 4);
    number(type, 4);
    number(count, 8);
  };
  number(3, 4);
  number(0, 8);
  number(5, 8);
  text("tokenizer.ggml.model");
  number(8, 4);
  text(byte_level ? "gpt2" : "llama");
  text("tokenizer.ggml.eos_token_id");
  number(4, 4);
  number(0, 4);
  const std::size_t count = byte_level ? 4 : 260;
  array("tokenizer.ggml.tokens", 8, count);
  for (std::size_t i = 0; i < count; ++i) {
    static constexpr std::string_view digits = "0123456789ABCDEF", few[] = {"<e>", "x", "y", "xy"};
    text(i < 4 ? few[i] : "<0x" + std::string{digits[(i - 4) / 16], digits[(i - 4) % 16]} + '>');
  }
  array("tokenizer.ggml.token_type", 5, count);
  for (std::size_t i = 0; i < count; ++i) number(i == 0 ? 3 : i < 4 ? 1 : 6, 4);
  if (byte_level) {
    array("tokenizer.ggml.merges", 8, 1);
    text("x y");
  } else {
    array("tokenizer.ggml.scores", 6, count);
    for (std::size_t i = 0; i < count; ++i) {
      number(std::bit_cast<std::uint32_t>(-static_cast<float>(i)), 4);
    }
  }
  return bytes;
}

/// Tokenizers in every form, with few tokens.
inline Seeds tokenizer_seeds() {
  auto tiny =
      nlohmann::ordered_json::parse(test::read_text(test::example_data("tiny/tokenizer.json")));
  auto& model = tiny["model"];
  auto vocab  = nlohmann::ordered_json::object();
  auto merges = nlohmann::ordered_json::array();
  for (const auto& [text, id] : model["vocab"].items()) {
    if (id < 320) vocab[text] = id;
  }
  for (const auto& merge : model["merges"]) {
    std::string text = merge.is_array() ? merge[0].get<std::string>() + merge[1].get<std::string>()
                                        : merge.get<std::string>();
    std::erase(text, ' ');
    if (vocab.contains(text)) merges.push_back(merge);
  }
  model["vocab"]  = vocab;
  model["merges"] = merges;
  return with_corpus(
      "tokenizer_files",
      {tiny.dump(), small_gguf(true), small_gguf(false),
       R"({"type": "bpe-bytelevel", "tokens_b64": ["YQ==", "Yg==", "YWI="], "eos_id": 0,
           "token_types": [3, 1, 1], "merges": ["a b"], "pre_tokenizer": {"regex": ["\\p{L}+|."]}})",
       R"({"model": {"type": "BPE", "byte_fallback": true, "merges": ["\u2581 \u2581", "\u2581\u2581 \u2581"],
           "vocab": {"\u2581": 0, "\u2581\u2581": 1, "\u2581\u2581\u2581": 2, "<0x41>": 3, "a": 4}},
           "added_tokens": [{"id": 1, "content": "\u2581\u2581", "normalized": false, "lstrip": true},
                            {"id": 5, "content": "x y", "normalized": true, "single_word": true}],
           "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
             {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
           "pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "MergedWithNext", "invert": true},
           "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
             {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
             {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})",
       R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581", -2], ["a", -2.5], ["\u2581a", -3]]},
           "normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": true},
             {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
           "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"},
           "decoder": {"type": "Metaspace", "replacement": "\u2581"}})",
       R"({"model": {"type": "WordPiece", "continuing_subword_prefix": "##", "vocab": {"a": 0, "##b": 1, ".": 2}},
           "normalizer": {"type": "BertNormalizer", "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
           "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}})"});
}

/// A model of one layer with a tensor of every type.
inline std::string mixed_gguf() {
  LlamaConfig config;
  config.vocabulary_size = config.head_size = 2;
  config.layers = config.heads = config.key_value_heads = 1;
  config.hidden_size                                    = 256;
  config.intermediate_size                              = 32;
  test::GgufWriter file;
  test::put_config(file, config, "llama");
  const auto tensor = [&](const char* name, std::vector<std::size_t> shape, std::uint32_t id) {
    const auto* type        = model::find_block_type(id);
    const std::size_t count = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
    file.tensor(name, shape, id, std::string(count / type->weights * type->bytes, '\x11'));
  };
  tensor("token_embd.weight", {2, 256}, 6);
  tensor("blk.0.attn_norm.weight", {256}, 0);
  tensor("blk.0.attn_q.weight", {2, 256}, 12);
  tensor("blk.0.attn_k.weight", {2, 256}, 13);
  tensor("blk.0.attn_v.weight", {2, 256}, 14);
  tensor("blk.0.attn_output.weight", {256, 2}, 30);
  tensor("blk.0.ffn_norm.weight", {256}, 0);
  tensor("blk.0.ffn_gate.weight", {32, 256}, 3);
  tensor("blk.0.ffn_up.weight", {32, 256}, 7);
  tensor("blk.0.ffn_down.weight", {256, 32}, 8);
  tensor("output_norm.weight", {256}, 1);
  tensor("output.weight", {2, 256}, 2);
  return file.file(11);
}

inline Seeds model_seeds() {
  LlamaConfig config;
  config.vocabulary_size = config.hidden_size = config.intermediate_size = 8;
  config.layers = config.key_value_heads = 1;
  config.heads                           = 2;
  config.head_size                       = 4;
  config.rope_factors                    = {1, 8};
  Seeds seeds{mixed_gguf(),
              test::make_gguf(config, test::random_llama_weights(config, 1), "llama")};
  config.tied_head = config.attention_biases = true;
  config.rope_factors.clear();
  seeds.push_back(test::make_gguf(config, test::random_llama_weights(config, 2), "qwen2"));
  return seeds;
}

inline Seeds chat_seeds() {
  nlohmann::ordered_json documents;
  for (const auto& tool :
       nlohmann::ordered_json::parse(test::read_text(test::example_data("tools.json")))) {
    documents.push_back({{"type", "function"},
                         {"function",
                          {{"name", tool.at("name")},
                           {"description", tool.at("description")},
                           {"parameters", tool.at("inputSchema")}}}});
  }
  const std::string tools = documents.dump();
  return {
      R"({"model": "m", "messages": [{"role": "user", "content": "hello"}]})",
      R"({"model": "m", "temperature": 0.5, "top_p": 0.9, "seed": 3, "max_tokens": 9, "stream": true,
              "stream_options": {"include_usage": true}, "logit_bias": {"7": -100}, "tool_choice": "auto",
              "messages": [{"role": "system", "content": "be kind"},
                           {"role": "user", "content": [{"type": "text", "text": "weather?"}]}],
              "tools": )" +
          tools + "}",
      R"({"model": "m", "response_id": "a-1", "tool_wait": 2, "parallel_tool_calls": false,
              "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
              "messages": [{"role": "user", "content": "weather?"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
                 "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "rain"}], "tools": )" +
          tools + "}",
      R"({"model": "m", "messages": [{"role": "user", "content": "a"},
                {"role": "assistant", "content": "b", "cached_tool_calls": [{"id": "1", "type": "function",
                 "function": {"name": "f", "arguments": "{}"}, "output": "c", "turn": 0}]},
                {"role": "user", "content": "d"}]})",
      R"({"model": "m", "stop": ["a", "\n"], "response_format": {"type": "json_schema", "json_schema":
              {"name": "n", "strict": true, "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}},
              "messages": [{"role": "user", "content": "a"}]})",
      R"({"model": "m", "instructions": "be kind", "max_output_tokens": 9, "include": ["reasoning.encrypted_content"],
              "reasoning": {"effort": "low", "summary": "auto"}, "stop_token_ids": [7], "text": {"verbosity": "low",
               "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
              "tool_choice": "none", "tools": [{"type": "custom", "name": "c"}, {"type": "function", "name": "f",
               "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}],
              "input": [{"role": "developer", "content": "be brief"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
                {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "b"}]},
                {"type": "message", "role": "assistant", "id": "t", "status": "completed",
                 "content": [{"type": "output_text", "text": "c", "annotations": [], "logprobs": []}]},
                {"type": "function_call", "id": "u", "call_id": "1", "name": "f", "arguments": "{\"a\": 1}"},
                {"type": "custom_tool_call", "id": "v", "call_id": "2", "name": "c", "input": "d"},
                {"type": "function_call_output", "call_id": "1", "output": "e"},
                {"type": "custom_tool_call_output", "call_id": "2",
                 "output": [{"type": "input_text", "text": "g"}]}]})",
      R"({"model": "m", "input": "hello", "stream": true, "stream_options": {"include_obfuscation": false}})",
      R"({"model": "m", "prompt": [7, 999, 0], "logprobs": 3, "n": 2, "seed": 1, "guided_regex": "[ab]+"})",
      R"({"model": "m", "prompt": [[1, 2, 3]], "max_tokens": 4, "json_schema": {"enum": [1, 2]}})",
      R"({"model": "m", "prompt": "hello", "stop": "\n", "guided_choice": ["a", "b"]})",
      R"({"name": "f", "params": {"a": [1, 2.5, null]}, "output": "text", "keep_alive": 5})",
      R"([{"name": "f", "output": {"b": 18446744073709551617}}, {"name": "g", "params": {}, "output": null}])"};
}

}  // namespace tooldecode::fuzz
