/// \file
/// AnyDrafter: a drafter whose kind is chosen at run time.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode {

/// Holds a CandidateDrafter of any kind, so that a program whose users choose a drafter needs one
/// engine type.
///
/// \tparam may_read_hidden  whether it may hold drafters that read the target's hidden states;
/// these are then kept even if the held drafter does not read them
/// \par Complexity  as the drafter, plus one allocation per request
/// \par Threads     as the drafter, which copies share
template <ConstraintPolicy C, bool may_read_hidden = false>
class AnyDrafter {
  struct State {
    virtual ~State() = default;
  };

 public:
  static constexpr bool reads_hidden = may_read_hidden;

  using Request = std::unique_ptr<State>;

  template <CandidateDrafter<C> D>
    requires(!std::same_as<D, AnyDrafter> && (may_read_hidden || !D::reads_hidden))
  explicit AnyDrafter(D drafter) : held_(std::make_shared<const Held<D>>(std::move(drafter))) {}

  [[nodiscard]] std::size_t budget() const { return held_->budget(); }
  [[nodiscard]] double min_probability() const { return held_->min_probability(); }
  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    return held_->begin(prompt);
  }
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    held_->propose(*request, context, candidates);
  }
  [[nodiscard]] DraftTree select(Request& request, const DraftContext<C>& context,
                                 const DraftCandidates<C>& candidates) const {
    return held_->select(*request, context, candidates);
  }

 private:
  struct Interface {
    virtual ~Interface()                                                            = default;
    [[nodiscard]] virtual std::size_t budget() const                                = 0;
    [[nodiscard]] virtual double min_probability() const                            = 0;
    [[nodiscard]] virtual Request begin(std::span<const TokenId>) const             = 0;
    virtual void propose(State&, const DraftContext<C>&, DraftCandidates<C>&) const = 0;
    [[nodiscard]] virtual DraftTree select(State&, const DraftContext<C>&,
                                           const DraftCandidates<C>&) const         = 0;
  };

  template <class D>
  struct Held final : Interface {
    struct OwnState final : State {
      explicit OwnState(typename D::Request begun) : request(std::move(begun)) {}
      typename D::Request request;
    };

    explicit Held(D chosen) : drafter(std::move(chosen)) {}

    std::size_t budget() const override { return drafter.budget(); }
    double min_probability() const override { return drafter.min_probability(); }
    Request begin(std::span<const TokenId> prompt) const override {
      return std::make_unique<OwnState>(drafter.begin(prompt));
    }
    void propose(State& state, const DraftContext<C>& context,
                 DraftCandidates<C>& candidates) const override {
      drafter.propose(own(state), context, candidates);
    }
    DraftTree select(State& state, const DraftContext<C>& context,
                     const DraftCandidates<C>& candidates) const override {
      return select_tree(drafter, own(state), context, candidates);
    }
    static typename D::Request& own(State& state) { return static_cast<OwnState&>(state).request; }

    D drafter;
  };

  std::shared_ptr<const Interface> held_;
};

}  // namespace tooldecode
