/// \file
/// ConstraintRef: type-erased reference to a constraint, so that code compiles once for all types.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Refers to a constraint of any type through a pointer and a function table.
///
/// It is a ConstraintPolicy itself. It does not own the constraint; temporaries do not compile.
///
/// \par Shapes      as the constraint
/// \par Complexity  one indirect call per function
/// \par Threads     a small value; as the constraint
/// \par Errors      as the constraint
class ConstraintRef {
 public:
  /// The bytes of the constraint's state; states are equal if their bytes are.
  class State {
   public:
    State() = default;
    template <class S>
      requires(!std::same_as<S, State> && ConstraintState<S>)
    explicit State(const S& state) noexcept {
      std::memcpy(words_.data(), &state, sizeof state);
    }
    /// The original state; S is the type that it was made from.
    template <class S>
    [[nodiscard]] S as() const noexcept {
      if constexpr (std::same_as<S, State>) {
        return *this;
      } else {
        S state{};
        std::memcpy(static_cast<void*>(&state), words_.data(), sizeof state);
        return state;
      }
    }
    friend bool operator==(const State&, const State&) = default;

   private:
    std::array<std::uint64_t, 2> words_{};
  };

  class Endings {
   public:
    Endings()                          = default;
    Endings(const Endings&)            = delete;
    Endings& operator=(const Endings&) = delete;
    virtual ~Endings()                 = default;

    [[nodiscard]] virtual std::optional<std::size_t> shortest(State state, std::size_t enough) = 0;
    virtual void narrow(State state, std::size_t remaining, MaskView words)                    = 0;
    [[nodiscard]] virtual CompletionCounts counts() const                                      = 0;
  };

  template <class C>
    requires(!std::same_as<C, ConstraintRef> && ConstraintPolicy<C>)
  ConstraintRef(const C& constraint) noexcept
      : object_(&constraint), table_(&Functions<C>::table) {}
  template <class C>
    requires(!std::same_as<C, ConstraintRef> && ConstraintPolicy<C>)
  ConstraintRef(const C&&) = delete;

  [[nodiscard]] std::size_t vocabulary_size() const { return table_->vocabulary_size(object_); }
  [[nodiscard]] State initial() const { return table_->initial(object_); }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    return table_->advance(object_, state, token);
  }
  void fill_mask(State state, MaskView words) const { table_->fill_mask(object_, state, words); }
  [[nodiscard]] bool is_accepting(State state) const {
    return table_->is_accepting(object_, state);
  }
  [[nodiscard]] bool is_finished(State state) const { return table_->is_finished(object_, state); }
  [[nodiscard]] std::string jump_forward(State state) const {
    return table_->jump_forward(object_, state);
  }

  /// The constraint's completions, or null if it has none. A constraint has them if it is or holds
  /// a Constraint, or if there is a function `make_completions(constraint, CompletionOptions)`.
  [[nodiscard]] std::unique_ptr<Endings> make_endings(CompletionOptions options) const;

  /// The constraint if its type is C, as this binary knows the type; else null.
  template <ConstraintPolicy C>
  [[nodiscard]] const C* find() const noexcept {
    return table_ == &Functions<C>::table ? static_cast<const C*>(object_) : nullptr;
  }
  template <ConstraintPolicy C>
  [[nodiscard]] const C& as() const noexcept {
    return *static_cast<const C*>(object_);
  }

 private:
  struct Table {
    std::size_t (*vocabulary_size)(const void*);
    State (*initial)(const void*);
    std::optional<State> (*advance)(const void*, State, TokenId);
    void (*fill_mask)(const void*, State, MaskView);
    bool (*is_accepting)(const void*, State);
    bool (*is_finished)(const void*, State);
    std::string (*jump_forward)(const void*, State);
    const Constraint& (*grammar)(const void*);                            // null: not a grammar
    std::unique_ptr<Endings> (*endings)(const void*, CompletionOptions);  // null: no completions
  };
  template <ConstraintPolicy C>
  struct Functions;

  const void* object_;
  const Table* table_;
};

/// The table of a constraint type.
template <ConstraintPolicy C>
struct ConstraintRef::Functions {
  using Own = typename C::State;

  static const C& own(const void* object) { return *static_cast<const C*>(object); }

  static constexpr bool derives_from_grammar = std::derived_from<C, Constraint>;
  static constexpr bool holds_grammar        = requires(const C& c) {
    { c.constraint() } -> std::same_as<const Constraint&>;
  };
  static constexpr bool has_completions =
      requires(const C& c, CompletionOptions asked) { make_completions(c, asked); };

  static const Constraint& grammar(const void* object)
    requires(derives_from_grammar || holds_grammar)
  {
    if constexpr (derives_from_grammar) {
      return own(object);
    } else {
      return own(object).constraint();
    }
  }

  static std::unique_ptr<Endings> endings(const void* object, CompletionOptions options)
    requires has_completions
  {
    struct OwnEndings final : Endings {
      OwnEndings(const C& constraint, CompletionOptions asked)
          : completions(make_completions(constraint, std::move(asked))) {}
      std::optional<std::size_t> shortest(State state, std::size_t enough) override {
        return completions.shortest(state.as<Own>(), enough);
      }
      void narrow(State state, std::size_t remaining, MaskView words) override {
        completions.narrow(state.as<Own>(), remaining, words);
      }
      CompletionCounts counts() const override { return completions.counts(); }

      decltype(make_completions(std::declval<const C&>(), CompletionOptions{})) completions;
    };
    return std::make_unique<OwnEndings>(own(object), std::move(options));
  }

  static constexpr Table make() {
    Table made{
        .vocabulary_size = [](const void* c) -> std::size_t { return own(c).vocabulary_size(); },
        .initial         = [](const void* c) { return State(own(c).initial()); },
        .advance         = [](const void* c, State state, TokenId token) -> std::optional<State> {
          const std::optional<Own> next = own(c).advance(state.as<Own>(), token);
          if (!next) return std::nullopt;
          return State(*next);
        },
        .fill_mask    = [](const void* c, State state,
                        MaskView words) { own(c).fill_mask(state.as<Own>(), words); },
        .is_accepting = [](const void* c, State state) -> bool {
          return own(c).is_accepting(state.as<Own>());
        },
        .is_finished = [](const void* c, State state) -> bool {
          return own(c).is_finished(state.as<Own>());
        },
        .jump_forward = [](const void* c, State state) -> std::string {
          return own(c).jump_forward(state.as<Own>());
        },
        .grammar = nullptr,
        .endings = nullptr};
    if constexpr (has_completions) {
      made.endings = &endings;
    } else if constexpr (derives_from_grammar || holds_grammar) {
      static_assert(std::same_as<Own, Constraint::State>);
      made.grammar = &grammar;
    }
    return made;
  }
  static constexpr Table table = make();
};

static_assert(ConstraintPolicy<ConstraintRef>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/constraint_ref.ipp>
#endif
