// expected-error: DraftModel: add 'void forward_nodes.Cache&, .*. const;'
// expected-lines: 40
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/draft/eagle_drafter.hpp>

using Tokens = std::span<const tooldecode::TokenId>;
using Floats = std::span<const float>;
using Mask   = tooldecode::ConstMaskView;

struct MyDraftModel {
  struct Cache {};
  std::size_t hidden_size() const { return 1; }
  std::size_t state_size() const { return 1; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, Tokens, Floats, std::span<float>) const {}
#ifndef TOOLDECODE_EXPECT_ERROR
  void forward_nodes(Cache&, Tokens, Floats, std::span<const std::uint64_t>,
                     std::span<float>) const {}
#endif
};

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
  tooldecode::draft::TokenLogits project(Floats, Mask) const { return {}; }
};

static_assert(sizeof(tooldecode::EagleDrafter<MyDraftModel, MyHead>) > 0);
