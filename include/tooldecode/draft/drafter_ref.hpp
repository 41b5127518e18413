/// \file
/// DrafterRef: a reference to a drafter of any type, so that code is compiled once.
#pragma once

#include <concepts>
#include <span>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/erased_value.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode {

/// Refers to a drafter of any type through a pointer and a table of functions.
///
/// A drafter that works with any constraint receives a ConstraintRef, so it is compiled once. A
/// drafter for certain constraint types receives the constraint itself. The drafter must outlive
/// the reference; temporaries do not compile.
///
/// \par Complexity  one indirect call, and one allocation for `begin`
/// \par Threads     a small value; as the drafter
/// \par Errors      those of the drafter
class DrafterRef {
 public:
  using Request = core::ErasedValue;
  using Context = DraftContext<ConstraintRef>;

  template <Drafter<ConstraintRef> D>
  DrafterRef(const D& drafter) noexcept : DrafterRef(&drafter, table<D, ConstraintRef>) {}
  template <Drafter<ConstraintRef> D>
  DrafterRef(const D&&) = delete;

  /// A drafter under constraints of type C.
  template <ConstraintPolicy C, Drafter<C> D>
  [[nodiscard]] static DrafterRef under(const D& drafter) noexcept {
    if constexpr (Drafter<D, ConstraintRef>) {
      return DrafterRef(drafter);
    } else {
      return DrafterRef(&drafter, table<D, C>);
    }
  }

  [[nodiscard]] bool reads_hidden() const noexcept { return table_->reads_hidden; }
  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    return table_->begin(object_, prompt);
  }
  [[nodiscard]] DraftTree draft(Request& request, const Context& context) const {
    return table_->draft(object_, request, context);
  }

 private:
  struct Table {
    bool reads_hidden;
    Request (*begin)(const void*, std::span<const TokenId>);
    DraftTree (*draft)(const void*, Request&, const Context&);
  };

  // Implements the table for a drafter type.
  template <class D, class C>
  static DraftTree draft_of(const void* drafter, Request& request, const Context& context) {
    const D& own = *static_cast<const D*>(drafter);
    auto& kept   = request.as<typename D::Request>();
    if constexpr (std::same_as<C, ConstraintRef>) {
      return draft_tree(own, kept, context);
    } else {
      const DraftContext<C> of_own = {.constraint = context.constraint.template as<C>(),
                                      .state      = context.state.template as<typename C::State>(),
                                      .prompt     = context.prompt,
                                      .generated  = context.generated,
                                      .unread     = context.unread,
                                      .hidden     = context.hidden,
                                      .max_depth  = context.max_depth,
                                      .max_nodes  = context.max_nodes,
                                      .min_probability = context.min_probability,
                                      .max_passes      = context.max_passes,
                                      .seed            = context.seed};
      return draft_tree(own, kept, of_own);
    }
  }
  template <class D>
  static Request begin_of(const void* drafter, std::span<const TokenId> prompt) {
    return Request(static_cast<const D*>(drafter)->begin(prompt));
  }
  template <class D, class C>
  static constexpr Table table{D::reads_hidden, &begin_of<D>, &draft_of<D, C>};

  DrafterRef(const void* object, const Table& functions) noexcept
      : object_(object), table_(&functions) {}

  const void* object_;
  const Table* table_;
};

}  // namespace tooldecode
