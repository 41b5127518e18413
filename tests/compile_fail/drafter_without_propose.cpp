// expected-error: Drafter: add 'template <class C> void propose.Request&, const DraftContext<C>&
// expected-lines: 50
#include <cstddef>
#include <cstdint>
#include <span>

#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>

#include "own_model.hpp"

struct MyModel : OwnModel {
  void forward_tree(Cache&, std::span<const tooldecode::TokenId>, std::span<const std::uint64_t>,
                    std::span<float>) const {}
  void commit(Cache&, std::span<const std::size_t>) const {}
};

struct MyDrafter {
  static constexpr bool reads_hidden = false;
  struct Request {};
  Request begin(std::span<const tooldecode::TokenId>) const { return {}; }
  std::size_t budget() const { return 1; }
  double min_probability() const { return 0; }
#ifndef TOOLDECODE_EXPECT_ERROR
  template <class C>
  void propose(Request&, const tooldecode::DraftContext<C>&,
               tooldecode::DraftCandidates<C>&) const {}
#endif
};

tooldecode::Output answer(const MyModel& model, const tooldecode::Unconstrained& text) {
  const tooldecode::Decoder decode{model, text, tooldecode::TreeSpeculation{MyDrafter{}}};
  return decode(std::span<const tooldecode::TokenId>{}, {});
}
