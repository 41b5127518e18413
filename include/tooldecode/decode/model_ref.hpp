/// \file
/// ModelRef: a reference to a model of any type, so that code is compiled once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/erased_value.hpp>
#include <tooldecode/core/headless_model.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/head_view.hpp>

namespace tooldecode {

/// A StateTreeModel that runs several sequences in one pass, drafts included.
///
/// `forward_batch_states` appends the tokens of each sequence whose ancestors are empty and writes
/// the logits after the last one; it runs the tokens of the others as `forward_tree` does. Hidden
/// states are written for all tokens, or for none if `hidden` is empty.
template <class M>
concept BatchStateTreeModel =
    StateTreeModel<M> && requires(const M& m, std::span<typename M::Cache* const> caches,
                                  std::span<const std::span<const TokenId>> tokens,
                                  std::span<const std::span<const std::uint64_t>> ancestors,
                                  std::span<float> logits, std::span<float> hidden) {
      // ancestors [B][L_i or 0], logits [sum of L_i or 1, V], hidden [sum of L_i, H]
      m.forward_batch_states(caches, tokens, ancestors, logits, hidden);
    };

/// What a model can do beyond the concept Model; members are named after the concepts.
struct ModelAbilities {
  bool batch            = false;
  bool tree             = false;
  bool head             = false;
  bool host_head        = false;
  bool head_tree        = false;
  bool batch_tree       = false;
  bool state_tree       = false;
  bool batch_state_tree = false;
  bool headless         = false;  ///< or a HeadModel: `forward_state`

  /// Whether the model returns hidden states, from which only the needed logits are computed.
  [[nodiscard]] constexpr bool gives_states() const noexcept { return host_head; }
  /// Whether it also returns hidden states of tree nodes.
  [[nodiscard]] constexpr bool gives_tree_states() const noexcept { return head_tree && host_head; }
  /// Whether drafters can read hidden states: those, or states beside the model's own logits.
  [[nodiscard]] constexpr bool gives_drafters_states() const noexcept {
    return gives_tree_states() || state_tree;
  }
};

/// Refers to a model of any type through a pointer and a table of functions.
///
/// It satisfies every model concept except HostHeadModel; `abilities()` says which functions you
/// may call. Batch functions are always available: without batch support the sequences run one
/// after another. The model must outlive it; temporaries do not compile.
///
/// \par Shapes      as the model
/// \par Complexity  one indirect call per function; `make_cache` and `fork` allocate
/// \par Threads     a small value; as the model
/// \par Errors      those of the model
class ModelRef {
 public:
  using Cache = core::ErasedValue;

  template <class M>
    requires(!std::same_as<M, ModelRef> && Model<M>)
  ModelRef(const M& model) noexcept : object_(&model), table_(&Functions<M>::table) {}
  template <class M>
    requires(!std::same_as<M, ModelRef> && Model<M>)
  ModelRef(const M&&) = delete;

  [[nodiscard]] const ModelAbilities& abilities() const noexcept { return table_->abilities; }
  /// The longest sequence that the model can hold: its `context_length()`, or no limit if it has
  /// none.
  [[nodiscard]] std::size_t context_length() const {
    return table_->context_length == nullptr ? std::numeric_limits<std::size_t>::max()
                                             : table_->context_length(object_);
  }

  [[nodiscard]] std::size_t vocabulary_size() const { return table_->vocabulary_size(object_); }
  [[nodiscard]] Cache make_cache() const { return table_->make_cache(object_); }
  [[nodiscard]] std::size_t length(const Cache& cache) const {
    return table_->length(object_, cache);
  }
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    table_->forward(object_, cache, tokens, logits);
  }
  [[nodiscard]] Cache fork(const Cache& cache) const { return table_->fork(object_, cache); }
  void truncate(Cache& cache, std::size_t length) const {
    table_->truncate(object_, cache, length);
  }

  /// Uses one pass if the model can, else one per sequence; returns the number of passes.
  std::size_t forward_batch(std::span<Cache* const> caches,
                            std::span<const std::span<const TokenId>> tokens,
                            std::span<float> logits) const;

  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    TOOLDECODE_ASSERT(abilities().tree);
    table_->forward_tree(object_, cache, tokens, ancestors, logits);
  }
  void commit(Cache& cache, std::span<const std::size_t> path) const {
    TOOLDECODE_ASSERT(abilities().tree);
    table_->commit(object_, cache, path);
  }

  [[nodiscard]] std::size_t hidden_size() const {
    TOOLDECODE_ASSERT(abilities().headless || abilities().state_tree);
    return table_->hidden_size(object_);
  }
  void forward_state(Cache& cache, std::span<const TokenId> tokens, std::span<float> hidden) const {
    TOOLDECODE_ASSERT(abilities().headless);
    table_->forward_state(object_, cache, tokens, hidden);
  }
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens,
                      std::span<float> hidden) const {
    TOOLDECODE_ASSERT(abilities().head);
    table_->forward_hidden(object_, cache, tokens, hidden);
  }
  void forward_tree_hidden(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors,
                           std::span<float> hidden) const {
    TOOLDECODE_ASSERT(abilities().head_tree);
    table_->forward_tree_hidden(object_, cache, tokens, ancestors, hidden);
  }
  void forward_states(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits,
                      std::span<float> hidden) const {
    TOOLDECODE_ASSERT(abilities().state_tree);
    table_->forward_states(object_, cache, tokens, logits, hidden);
  }
  void forward_tree_states(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> logits,
                           std::span<float> hidden) const {
    TOOLDECODE_ASSERT(abilities().state_tree);
    table_->forward_tree_states(object_, cache, tokens, ancestors, logits, hidden);
  }
  /// Uses one pass if the model can, else one per sequence; returns the number of passes.
  std::size_t forward_batch_hidden(std::span<Cache* const> caches,
                                   std::span<const std::span<const TokenId>> tokens,
                                   std::span<const std::span<const std::uint64_t>> ancestors,
                                   std::span<float> hidden) const;

  /// Uses one pass if the model can, else one for each draft or each sequence with states, and one
  /// for the rest; returns the number of passes.
  std::size_t forward_batch_states(std::span<Cache* const> caches,
                                   std::span<const std::span<const TokenId>> tokens,
                                   std::span<const std::span<const std::uint64_t>> ancestors,
                                   std::span<float> logits, std::span<float> hidden) const;

  class Head {
   public:
    /// Length of the end of a state that the head multiplies.
    [[nodiscard]] std::size_t width() const noexcept { return view_.cols(); }
    /// The logits of the allowed tokens, as ConstrainedHead computes them.
    ///
    /// \param states  [n, width]
    /// \param logits  [n, V]
    void fill_allowed(std::span<const float> states, ConstMaskView mask,
                      std::span<float> logits) const;
    /// The logits of all tokens; reads the head once for all states.
    void fill_all(std::span<const float> states, std::span<float> logits) const;

   private:
    friend class ModelRef;
    explicit Head(HeadView view) : view_(view) {}

    HeadView view_;
  };
  [[nodiscard]] Head lm_head() const {
    TOOLDECODE_ASSERT(abilities().host_head);
    return Head(table_->lm_head(object_));
  }

 private:
  using Tokens    = std::span<const TokenId>;
  using Ancestors = std::span<const std::uint64_t>;
  using Floats    = std::span<float>;
  using Caches    = std::span<Cache* const>;

  // Functions that the model lacks are null.
  struct Table {
    ModelAbilities abilities{};
    std::size_t (*context_length)(const void*)                                          = nullptr;
    std::size_t (*vocabulary_size)(const void*)                                         = nullptr;
    Cache (*make_cache)(const void*)                                                    = nullptr;
    std::size_t (*length)(const void*, const Cache&)                                    = nullptr;
    void (*forward)(const void*, Cache&, Tokens, Floats)                                = nullptr;
    Cache (*fork)(const void*, const Cache&)                                            = nullptr;
    void (*truncate)(const void*, Cache&, std::size_t)                                  = nullptr;
    void (*forward_batch)(const void*, Caches, std::span<const Tokens>, Floats)         = nullptr;
    void (*forward_tree)(const void*, Cache&, Tokens, Ancestors, Floats)                = nullptr;
    void (*commit)(const void*, Cache&, std::span<const std::size_t>)                   = nullptr;
    std::size_t (*hidden_size)(const void*)                                             = nullptr;
    void (*forward_state)(const void*, Cache&, Tokens, Floats)                          = nullptr;
    void (*forward_hidden)(const void*, Cache&, Tokens, Floats)                         = nullptr;
    void (*forward_tree_hidden)(const void*, Cache&, Tokens, Ancestors, Floats)         = nullptr;
    void (*forward_batch_hidden)(const void*, Caches, std::span<const Tokens>,
                                 std::span<const Ancestors>, Floats)                    = nullptr;
    void (*forward_states)(const void*, Cache&, Tokens, Floats, Floats)                 = nullptr;
    void (*forward_tree_states)(const void*, Cache&, Tokens, Ancestors, Floats, Floats) = nullptr;
    void (*forward_batch_states)(const void*, Caches, std::span<const Tokens>,
                                 std::span<const Ancestors>, Floats, Floats)            = nullptr;
    HeadView (*lm_head)(const void*)                                                    = nullptr;
  };
  template <Model M>
  struct Functions;

  const void* object_;
  const Table* table_;
};

/// Implements the table for a model type.
template <Model M>
struct ModelRef::Functions {
  using Own = typename M::Cache;

  static const M& own(const void* object) { return *static_cast<const M*>(object); }
  static std::vector<Own*> own(Caches caches) {
    std::vector<Own*> all;
    for (Cache* cache : caches) all.push_back(&cache->as<Own>());
    return all;
  }

  static constexpr Table make() {
    Table made;
    made.vocabulary_size = [](const void* m) -> std::size_t { return own(m).vocabulary_size(); };
    made.make_cache      = [](const void* m) { return Cache(own(m).make_cache()); };
    made.length          = [](const void* m, const Cache& cache) -> std::size_t {
      return own(m).length(cache.as<Own>());
    };
    made.forward = [](const void* m, Cache& cache, Tokens tokens, Floats logits) {
      own(m).forward(cache.as<Own>(), tokens, logits);
    };
    made.fork = [](const void* m, const Cache& cache) {
      return Cache(own(m).fork(cache.as<Own>()));
    };
    made.truncate = [](const void* m, Cache& cache, std::size_t length) {
      own(m).truncate(cache.as<Own>(), length);
    };
    if constexpr (requires(const M& m) {
                    { m.context_length() } -> std::convertible_to<std::size_t>;
                  }) {
      made.context_length = [](const void* m) -> std::size_t { return own(m).context_length(); };
    }
    if constexpr (BatchModel<M>) {
      made.abilities.batch = true;
      made.forward_batch   = [](const void* m, Caches caches, std::span<const Tokens> tokens,
                              Floats logits) { own(m).forward_batch(own(caches), tokens, logits); };
    }
    if constexpr (TreeModel<M>) {
      made.abilities.tree = true;
      made.forward_tree   = [](const void* m, Cache& cache, Tokens tokens, Ancestors ancestors,
                             Floats logits) {
        own(m).forward_tree(cache.as<Own>(), tokens, ancestors, logits);
      };
      made.commit = [](const void* m, Cache& cache, std::span<const std::size_t> path) {
        own(m).commit(cache.as<Own>(), path);
      };
    }
    if constexpr (HeadlessModel<M> || HeadModel<M> || StateTreeModel<M>) {
      made.hidden_size = [](const void* m) -> std::size_t { return own(m).hidden_size(); };
    }
    if constexpr (HeadlessModel<M> || HeadModel<M>) {
      made.abilities.headless = true;
      made.forward_state      = [](const void* m, Cache& cache, Tokens tokens, Floats hidden) {
        core::forward_state(own(m), cache.as<Own>(), tokens, hidden);
      };
    }
    if constexpr (HeadModel<M>) {
      made.abilities.head = true;
      made.forward_hidden = [](const void* m, Cache& cache, Tokens tokens, Floats hidden) {
        own(m).forward_hidden(cache.as<Own>(), tokens, hidden);
      };
    }
    if constexpr (HeadTreeModel<M>) {
      made.abilities.head_tree = true;
      made.forward_tree_hidden = [](const void* m, Cache& cache, Tokens tokens, Ancestors ancestors,
                                    Floats hidden) {
        own(m).forward_tree_hidden(cache.as<Own>(), tokens, ancestors, hidden);
      };
    }
    if constexpr (StateTreeModel<M>) {
      made.abilities.state_tree = true;
      made.forward_states       = [](const void* m, Cache& cache, Tokens tokens, Floats logits,
                               Floats hidden) {
        own(m).forward_states(cache.as<Own>(), tokens, logits, hidden);
      };
      made.forward_tree_states = [](const void* m, Cache& cache, Tokens tokens, Ancestors ancestors,
                                    Floats logits, Floats hidden) {
        own(m).forward_tree_states(cache.as<Own>(), tokens, ancestors, logits, hidden);
      };
    }
    if constexpr (BatchStateTreeModel<M>) {
      made.abilities.batch_state_tree = true;
      made.forward_batch_states = [](const void* m, Caches caches, std::span<const Tokens> tokens,
                                     std::span<const Ancestors> ancestors, Floats logits,
                                     Floats hidden) {
        own(m).forward_batch_states(own(caches), tokens, ancestors, logits, hidden);
      };
    }
    if constexpr (BatchTreeModel<M>) {
      made.abilities.batch_tree = true;
      made.forward_batch_hidden = [](const void* m, Caches caches, std::span<const Tokens> tokens,
                                     std::span<const Ancestors> ancestors, Floats hidden) {
        own(m).forward_batch_hidden(own(caches), tokens, ancestors, hidden);
      };
    }
    if constexpr (HostHeadModel<M>) {
      made.abilities.host_head = true;
      made.lm_head             = [](const void* m) { return HeadView(own(m).lm_head()); };
    }
    return made;
  }
  static constexpr Table table = make();
};

static_assert(BatchModel<ModelRef> && BatchTreeModel<ModelRef> && BatchStateTreeModel<ModelRef> &&
              HeadlessModel<ModelRef>);

}  // namespace tooldecode

namespace tooldecode::diagnose {

/// True if drafters can read M's hidden states; otherwise a compile error for each missing member.
template <class M>
consteval bool is_model_with_states() {
  if constexpr (!StateTreeModel<M>) {
    return is_head_tree_model<M>() && is_host_head_model<M>();
  }
  return true;
}

}  // namespace tooldecode::diagnose

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/model_ref.ipp>
#endif
