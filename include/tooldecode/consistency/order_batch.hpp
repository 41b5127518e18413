/// \file
/// OrderBatch: decodes one call under several orders of its parameters, side by side.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode::consistency {

/// Decodes a call's arguments under several orders at once, a pass at a time.
///
/// Branches share the cache of their common prefix, and each pass reads the distinct token
/// sequences, so orders that agree so far cost as much as one. Jump-forward strings (keys,
/// separators, single choices) are inserted without asking the model, except for a last token that
/// the model might make longer. A branch does not depend on which other branches run.
///
/// You call `prepare`; if it returns true, you run a pass over `add_readings` and call `take`.
///
/// \par Shapes      rows [distinct sequences, V]
/// \par Complexity  a fork for each branch that runs and parts from others; one that did not run when
///                  it parted reads the call so far again. Masks and choices per branch
/// \par Threads     one thread at a time
class OrderBatch {
 public:
  struct Setting {
    ModelRef model;
    const ToolCallFSM& answer;  ///< decides what may follow the call
    const LogitsPipeline& pipeline;
    const DecodeOptions& options;
    std::span<const TokenId> prompt;
    std::span<const TokenId> generated;
    constraint::JumpForwardText text;
    /// Encodes a text; returns nothing if the text is empty or cannot be written.
    std::function<std::vector<TokenId>(std::string_view)> encode;
    decode::Ending* ending = nullptr;  ///< makes the answer end in time; may be null
  };
  /// The first branch's place in the model, to continue from it.
  struct Kept {
    ModelRef::Cache cache;
    std::size_t read = 0;    ///< how many `unread` and branch tokens the cache holds
    std::vector<float> row;  ///< raw logits after them, [V]; may be empty
  };

  /// \param cache   holds the prompt and the generated tokens, except those in `unread`; it is
  ///                forked when orders begin to run, and must outlive the batch unchanged
  /// \param unread  the last of the generated tokens, at least one
  OrderBatch(Setting setting, const ModelRef::Cache& cache, std::span<const TokenId> unread,
             std::vector<OrderBranch> branches);

  [[nodiscard]] const std::vector<OrderBranch>& branches() const noexcept { return branches_; }
  /// That of the first branch, once it is over; empty if there was no room for it.
  [[nodiscard]] std::optional<Kept>& kept() noexcept { return kept_; }

  /// Advances the branches [0, count) as far as they need no pass. Returns whether any needs one.
  bool prepare(std::size_t count);
  /// Appends what the pass reads; errors of a fork change nothing.
  void add_readings(std::vector<decode::BatchReading>& readings);
  /// Chooses a token for each branch that waits.
  ///
  /// \param first  place in the pass of the first reading
  void take(decode::BatchPass& pass, std::size_t first);

 private:
  static constexpr std::size_t base = static_cast<std::size_t>(-1);

  struct Group {
    std::optional<ModelRef::Cache> cache;  // empty until it is forked from its parent
    std::size_t parent;                    // group, or `base`
    std::size_t read;                      // tokens read, of base_ and of the members
    std::vector<std::size_t> members;
    std::vector<TokenId> unread{};  // read in the next pass
  };

  // Inserts jump-forward strings, up to where the model has a choice.
  void supply(OrderBranch& branch, std::size_t index, std::size_t group);

  // The bytes that must follow, at most to the end of the arguments, and whether they reach it.
  static std::pair<std::string, bool> forced_arguments(const OrderBranch& branch);

  // Allows what the order allows. Bytes after the call in the same token must be allowed by the
  // answer, unless the answer requires another order.
  void fill_mask(const OrderBranch& branch);

  // Whether the model might write a token that begins here and reaches past the jump-forward
  // string. The branch does not know what follows the arguments, so there any token counts.
  bool may_go_on(const OrderBranch& branch, std::string_view rest, bool closes, bool is_last);

  // Tokens that may still be chosen, the end token included.
  [[nodiscard]] std::size_t room(const OrderBranch& branch) const;
  // Whether the answer can end in time after an inserted token. True if the answer requires another
  // order, which the branch cannot judge.
  [[nodiscard]] bool leaves_room(const OrderBranch& branch, TokenId token) const;
  // Whether another token fits; ends the branch if not.
  bool has_room(OrderBranch& branch) const;
  static bool stop(OrderBranch& branch, Finish finish);

  void choose(OrderBranch& branch, std::size_t index, std::size_t group,
              std::span<const float> raw);

  // Appends a token. If the arguments end inside it, stores the bytes up to there in `closing`
  // instead.
  void take(OrderBranch& branch, TokenId token, double log_probability, bool forced,
            TokenTrace seen = {.origin = TokenOrigin::supplied});

  std::uint64_t seed_of(const OrderBranch& branch) const;
  static std::string_view bytes(const OrderBranch& branch, TokenId token);

  // Keeps the first branch's place when it is over, before its group continues.
  void keep(std::size_t index, std::size_t group, std::span<const float> raw);

  void drop_finished(Group& group) const;

  // Splits a group by its members' tokens; the first part keeps the cache, the others fork it.
  void split(std::size_t g);

  // The cache that a group has or will fork.
  [[nodiscard]] const ModelRef::Cache& source_of(const Group& group) const;
  void fork_groups();

  [[nodiscard]] std::vector<TokenId> unread_of(const Group& group) const;

  Setting setting_;
  const ModelRef::Cache* cache_;
  std::vector<TokenId> base_;
  std::vector<OrderBranch> branches_;
  std::vector<Group> groups_;
  std::vector<std::size_t> running_;  // groups that the next pass reads
  std::optional<Kept> kept_;
  TokenMask all_, mask_, outer_mask_;
  std::vector<float> row_;
};

}  // namespace tooldecode::consistency

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/order_batch.ipp>
#endif
