// expected-error: DraftHead: add 'draft::TokenLogits project.std::span<const float> hidden,
// expected-lines: 40
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/draft/medusa_drafter.hpp>

using Tokens = std::span<const tooldecode::TokenId>;
using Floats = std::span<const float>;
using Mask   = tooldecode::ConstMaskView;

struct MyHead {
  std::size_t vocabulary_size() const { return 1; }
  std::size_t hidden_size() const { return 1; }
  std::size_t size() const { return 1; }
  tooldecode::TokenId token(std::size_t) const { return 0; }
  MyHead with(Tokens) const { return *this; }
  void fill_logits(Floats, std::span<float>) const {}
  std::vector<tooldecode::draft::TopTokens> project_topk(Floats, std::size_t,
                                                         std::span<const Mask>) const {
    return {};
  }
#ifndef TOOLDECODE_EXPECT_ERROR
  tooldecode::draft::TokenLogits project(Floats, Mask) const { return {}; }
#endif
};

static_assert(sizeof(tooldecode::MedusaDrafter<MyHead>) > 0);
