/// \file
/// OrderBatch: one call decoded under several orders of its parameters, side by side.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_branch.hpp>
#include <tooldecode/constraint/forced_text.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode::consistency {

/// Decodes a call's arguments under several orders at once.
///
/// Branches share the cache of all that they have in common, and each step is one forward pass over
/// the distinct token sequences: orders that agree so far cost what one costs. What can only be one
/// text (keys, separators, single choices) is put in without asking the model, save for a last
/// token that the model might write longer. A branch never depends on which others run.
///
/// \par Shapes      rows [distinct sequences, V]
/// \par Complexity  a pass per step; masks and choices per branch
/// \par Threads     belongs to one thread
class OrderBatch {
 public:
  /// What is the same for all branches.
  struct Setting {
    ModelRef model;
    const ToolCallFSM& answer;  ///< says what may follow the call
    const LogitsPipeline& pipeline;
    const DecodeOptions& options;
    std::span<const TokenId> prompt;
    std::span<const TokenId> generated;  ///< all that comes before the branches
    constraint::ForcedText text;
    /// All of a text in tokens; none where there is no text, or where it cannot be written.
    std::function<std::vector<TokenId>(std::string_view)> encode;
    decode::Ending* ending = nullptr;  ///< sees to it that the answer ends in time
  };
  /// The first branch's place in the model, for going on from it.
  struct Kept {
    ModelRef::Cache cache;
    std::size_t read = 0;    ///< how many of the `unread` and the branch's tokens the cache holds
    std::vector<float> row;  ///< raw logits after them, [V]; empty where they are not known
  };

  /// \param cache   holds prompt and generated tokens, except those `unread`
  /// \param unread  the last of the generated tokens, one at least
  OrderBatch(Setting setting, ModelRef::Cache cache, std::span<const TokenId> unread,
             std::vector<OrderBranch> branches);

  [[nodiscard]] const std::vector<OrderBranch>& branches() const noexcept { return branches_; }
  /// The first branch's, once it is over.
  [[nodiscard]] std::optional<Kept>& kept() noexcept { return kept_; }
  [[nodiscard]] std::size_t passes() const noexcept { return passes_; }
  [[nodiscard]] std::chrono::nanoseconds model_time() const noexcept { return model_time_; }

  /// Runs the branches [0, count) to their ends, or until `is_enough()` after a step.
  void run(std::size_t count, const std::function<bool()>& is_enough);

 private:
  struct Group {
    ModelRef::Cache cache;
    std::size_t read;  // of base_ and the members' tokens
    std::vector<std::size_t> members;
  };

  // One forward pass for all groups that hold a running branch; false where there are none.
  bool step(std::size_t count);

  // Puts in what can only be one text, up to where the model has a choice.
  void supply(OrderBranch& branch, std::size_t index, std::size_t group);

  // The bytes that must follow, no further than the end of the arguments; whether they reach it.
  static std::pair<std::string, bool> forced_arguments(const OrderBranch& branch);

  // What the order allows; what may follow the call, inside the same token, the answer says. An
  // answer that wants another order has no say.
  void fill_mask(const OrderBranch& branch);

  // Whether the model might write a token that begins here and reaches beyond a forced text. What
  // follows the arguments is not for the branch to say, so there any token counts.
  bool may_go_on(const OrderBranch& branch, std::string_view rest, bool closes, bool is_last);

  // Tokens that may yet be chosen, an end token included.
  [[nodiscard]] std::size_t room(const OrderBranch& branch) const;
  // Whether the answer can end in time behind a token that is put in; where it takes another order,
  // that is not for the branch to say.
  [[nodiscard]] bool leaves_room(const OrderBranch& branch, TokenId token) const;
  // Whether another token may be written; ends the branch where not.
  bool has_room(OrderBranch& branch) const;
  static bool stop(OrderBranch& branch, Finish finish);

  void choose(OrderBranch& branch, std::size_t index, std::size_t group,
              std::span<const float> raw);

  // Appends a token, or, where the arguments end inside it, the bytes up to there as `closing`.
  void take(OrderBranch& branch, TokenId token, double log_probability, bool forced,
            TokenTrace seen = {.origin = TokenOrigin::supplied});

  static std::string_view bytes(const OrderBranch& branch, TokenId token);

  // Keeps the first branch's place when it is over, before its group goes on.
  void keep(std::size_t index, std::size_t group, std::span<const float> raw);

  void drop_finished(Group& group) const;

  // Parts a group by its members' tokens; the first keeps the cache, the others fork it.
  void split(std::size_t g);

  [[nodiscard]] std::vector<TokenId> unread_of(const Group& group) const;

  Setting setting_;
  std::vector<TokenId> base_;
  std::vector<OrderBranch> branches_;
  std::vector<Group> groups_;
  std::optional<Kept> kept_;
  TokenMask mask_, outer_mask_;
  std::vector<float> row_;     // [V], of one branch
  std::vector<float> logits_;  // [groups, V]
  std::size_t passes_ = 0;
  std::chrono::nanoseconds model_time_{0};
};

}  // namespace tooldecode::consistency

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/order_batch.ipp>
#endif
