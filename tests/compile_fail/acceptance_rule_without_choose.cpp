// expected-error: AcceptanceRule: add 'template <class Noise> std::optional<TokenId> choose.const
// expected-lines: 40
#include <cstddef>
#include <optional>

#include <tooldecode/verify/tree_verifier.hpp>

struct MyRule {
  static constexpr bool is_lossless                 = true;
  static constexpr bool needs_proposal_distribution = false;
#ifndef TOOLDECODE_EXPECT_ERROR
  template <class Noise>
  std::optional<tooldecode::TokenId> choose(const tooldecode::verify::TargetDistribution&,
                                            const tooldecode::DraftTree&, std::size_t,
                                            Noise&) const {
    return std::nullopt;
  }
#endif
};

static_assert(sizeof(tooldecode::TreeVerifier<MyRule>) > 0);
