// expected-error: MaskView: a mask is of std::uint32_t or std::int32_t, 32 tokens in each
#include <cstdint>
#include <vector>

#include <tooldecode/mask/token_trie.hpp>

#ifdef TOOLDECODE_EXPECT_ERROR
using Word = std::int64_t;
#else
using Word = std::int32_t;
#endif

void fill(const tooldecode::TokenTrie& names, std::vector<Word>& words) {
  names.fill_mask(names.initial(), words);
}
