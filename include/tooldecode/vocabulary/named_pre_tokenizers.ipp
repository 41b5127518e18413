#pragma once

#include <algorithm>

#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE const std::vector<PreTokenizerFamily>& pre_tokenizer_families() {
  // Parts of GPT-4's pattern and its descendants.
  const std::string suffixes = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
  const std::string word     = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
  const std::string others   = R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const auto gpt4            = [&](const std::string& numbers) {
    return suffixes + "|" + word + "|" + numbers + "|" + others;
  };
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const auto cased        = [&](const std::string& suffix, const std::string& numbers) {
    const std::string before = R"([^\r\n\p{L}\p{N}]?)";
    return before + upper + "*" + lower + "+" + suffix + "|" + before + upper + "+" + lower + "*" +
           suffix + "|" + numbers + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  };
  const std::string punctuated =
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string unpunctuated =
      R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
  // DeepSeek's first models list the letters of cased scripts as of some Unicode version.
  const std::string deepseek_letters =
      R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF})"
      R"(\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D})"
      R"(\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"
      R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})"
      R"(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
      R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
      R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59})"
      R"(\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
      R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
      R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
      R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128})"
      R"(\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149})"
      R"(\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE})"
      R"(\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
      R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"
      R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
      R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
      R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})";
  const std::string cjk = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
  static const std::vector<PreTokenizerFamily> families{
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4",
        "gigachat", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code",
        "roberta-bpe", "a.x-4.0", "mellum", "modern-bert"},
       {gpt2_pattern}},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b",
        "mellum2"},
       {R"(\p{N})", gpt2_pattern}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano", "dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5"},
       {gpt4(R"(\p{N}{1,3})")},
       {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano", "glm4", "glm5"}},
      {{"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2",
        "kormo", "f2llmv2"},
       {gpt4(R"(\p{N})")}},
      {{"qwen35"},
       {suffixes +
        R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {{"minicpm5"}, {R"(\p{N}{1,3})", gpt4(R"(\p{N}+)")}, {"minicpm5"}},
      {{"ufakzeka"}, {word + R"(|\p{N}|)" + others}},
      {{"falcon"},
       {R"([\p{P}\$\+<=>\^~\|`]+)",
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))",
        "[0-9][0-9][0-9]"}},
      {{"deepseek-llm"},
       {"[\r\n]", R"(\s?[)" + deepseek_letters + R"(]+)",
        R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
        R"(\s+$)", cjk, R"(\p{N}+)"}},
      {{"deepseek-coder"}, {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", cjk, R"(\p{N})"}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)", punctuated}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {unpunctuated}},
      {{"viking"}, {unpunctuated, R"(\p{N})"}},
      {{"tekken"}, {cased("", R"(\p{N})")}, {"tekken"}},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
       {cased(suffixes + "?", R"(\p{N}{1,3})")}},
      {{"gemma4", "sarvam-moe", "granite-embed-multi-311m"}, {R"([^\n]+|[\n]+)"}},
  };
  return families;
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::optional<NamedPreTokenizer> find_pre_tokenizer(std::string_view name) {
  const auto holds = [&](const std::vector<std::string_view>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const detail::PreTokenizerFamily& family : detail::pre_tokenizer_families()) {
    if (holds(family.names)) return NamedPreTokenizer{family.patterns, holds(family.whole_first)};
  }
  return std::nullopt;
}

}  // namespace tooldecode::vocabulary
