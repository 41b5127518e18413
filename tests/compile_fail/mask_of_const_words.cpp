// expected-error: MaskView: a mask is written to: give it memory that is not const
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/mask/fill_masks.hpp>
#include <tooldecode/mask/token_trie.hpp>

#ifdef TOOLDECODE_EXPECT_ERROR
using Words = std::span<const std::int32_t>;
#else
using Words = std::span<std::int32_t>;
#endif

void fill(const tooldecode::TokenTrie& names,
          const std::vector<tooldecode::TokenTrie::State>& states, Words words) {
  tooldecode::fill_masks(names, states, words);
}
