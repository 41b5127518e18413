// XGrammar's headers, which declare a prebuilt library: the mask loop of constrain.cpp.
#include <cstdint>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>
#include <xgrammar/xgrammar.h>

std::vector<std::int32_t> generate(const std::vector<std::string>& vocabulary,
                                   const std::string& schema,
                                   std::int32_t (*sample)(const DLTensor& allowed)) {
  const xgrammar::TokenizerInfo tokenizer(vocabulary);
  xgrammar::GrammarCompiler compiler(tokenizer);
  xgrammar::GrammarMatcher matcher(compiler.CompileJSONSchema(schema));
  std::vector<std::int32_t> words((vocabulary.size() + 31) / 32);
  std::int64_t shape = static_cast<std::int64_t>(words.size());
  DLTensor mask{words.data(), {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &shape, nullptr, 0};
  std::vector<std::int32_t> tokens;
  while (!matcher.IsTerminated()) {
    matcher.FillNextTokenBitmask(&mask);
    tokens.push_back(sample(mask));
    matcher.AcceptToken(tokens.back());
  }
  return tokens;
}
