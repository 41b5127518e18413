/// \file
/// OrderedSequence: an answer whose calls are sampled under several orders of their parameters.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/consistency/call_orders.hpp>
#include <tooldecode/consistency/order_batch.hpp>
#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/batch_sequence.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode::consistency {

/// An answer as OrderConsistencySampler describes it, a pass at a time. Outside of calls it decodes
/// without drafts; inside a call each pass reads all its orders.
///
/// If it gives up its caches inside a call, it samples the call anew, which gives the same result.
///
/// \par Shapes      a row [V]; a cache per order that has parted from the others
/// \par Complexity  as OrderBatch
/// \par Threads     one thread at a time; refers to the model, the orders and the run
class OrderedSequence final : public decode::BatchSequence {
 public:
  /// \param run    of the orders' constraint
  /// \param read   a proper prefix of the run's prompt that has been read; may be empty
  /// \param votes  receives the calls and the number of sampled tokens; must outlive the sequence
  OrderedSequence(ModelRef model, const CallOrders& orders, const decode::Run& run,
                  CachedPrefix read, Consensus& votes);
  OrderedSequence(const OrderedSequence&)            = delete;
  OrderedSequence& operator=(const OrderedSequence&) = delete;

  [[nodiscard]] bool is_finished() const noexcept override {
    return sequence_.is_finished() && !voting_;
  }
  [[nodiscard]] Output& output() noexcept override { return sequence_.output(); }
  [[nodiscard]] CachedPrefix& read_so_far() noexcept override { return read_; }
  void give_up_cache() override;
  bool take_forced() override;
  [[nodiscard]] std::size_t unread_count() const noexcept override {
    return sequence_.unread().size();
  }
  [[nodiscard]] bool is_prefilling() const noexcept override {
    return !is_sampling() && unread_count() > max_unread;
  }
  void limit_reading(std::size_t tokens) noexcept override { limit_ = tokens; }
  void add_readings(std::vector<decode::BatchReading>& readings) override;
  void take_pass(decode::BatchPass& pass, std::size_t first) override;

 private:
  using State = ToolCallFSM::State;

  // Most tokens that each order reads again.
  static constexpr std::size_t max_unread = 16;
  static constexpr std::size_t unlimited  = std::numeric_limits<std::size_t>::max();

  // The call that is being decided.
  struct Voting {
    std::shared_ptr<const ToolOrders> orders;
    std::string within;      // the bytes of its arguments that the answer has already
    double log_probability;  // of the token that contains them
    State begin;             // of the answer, after them
    CallVote decided{};
    std::optional<OrderBatch> batch{};  // empty until the answer so far is read
    std::vector<bool> known{};          // branches whose candidates are in `decided`
    std::size_t needed  = 0;            // further candidates that could change a winner
    std::size_t started = 0;            // branches that run or have run
    std::size_t last    = 0;            // the branches of this round end here
    bool is_enough      = false;
  };

  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return orders_->calls(); }
  [[nodiscard]] State current() const { return sequence_.state().as<State>(); }
  [[nodiscard]] bool is_sampling() const noexcept { return voting_ && voting_->batch; }
  // Tokens that the next pass reads if no order is sampled.
  [[nodiscard]] std::size_t reading_count() const noexcept;

  void take(const TokenEvent& event, std::optional<TokenTrace> known = {});
  // Takes a token, or begins to decide the call that it opens.
  void take_next(const TokenEvent& event);

  // Whether the answer ended inside a voted call.
  [[nodiscard]] bool is_cut() const;

  // Keeps the allowed tokens that write pending bytes; ending in time has priority.
  void keep_pending(MaskView mask);

  // Whether the answer can still end in time after inserted tokens and a text.
  [[nodiscard]] bool leaves_room(std::span<const TokenId> tokens, std::string_view text) const;

  // The offset in a token, after pending bytes, where the arguments of a call begin. It is 0 where a
  // name ended before the token, but might have gone on as another one.
  [[nodiscard]] std::optional<std::size_t> find_opening(TokenId token) const;

  void begin_voting(const TokenEvent& event, std::size_t opening);
  void begin_sampling();
  // Advances the orders; returns false if they need a pass, and true once the call is decided.
  bool advance_voting();
  // Reads finished branches, and notes whether they are enough.
  void collect();
  void find_needed();

  // Counts the votes and continues after the winning call.
  void settle();

  // Continues with a branch as it was decoded; the model writes its closing bytes.
  bool adopt(const OrderBranch& branch, std::optional<OrderBatch::Kept>& kept);

  // Continues with a call as the format writes it, if the constraint allows that.
  bool write(const ToolCall& call);

  // Writes a text; with `leave_end` the model may write its end, perhaps inside a longer token.
  bool push_text(std::string_view text, bool leave_end = false);

  ModelRef model_;
  const CallOrders* orders_;
  const decode::Run* run_;
  decode::Sequence sequence_;
  CachedPrefix read_;
  Consensus* votes_;
  TokenMask all_;
  std::optional<Voting> voting_;
  std::string pending_;          // the next tokens begin with these bytes, or are a prefix of them
  std::vector<float> row_;       // [V]
  bool row_is_current_ = false;  // row_ holds the raw logits of the next token
  std::size_t limit_   = unlimited;
};

/// Decodes one answer alone.
///
/// \par Errors      those of the model, the constraint and its masks
[[nodiscard]] Consensus sample_orders(ModelRef model, const CallOrders& orders,
                                      std::span<const TokenId> prompt,
                                      const LogitsPipeline& pipeline, const DecodeOptions& options);

/// Makes the answers of a sequence in a batch.
///
/// \param calls  the sequence's constraint; must outlive the answers
/// \param votes  receives the votes of each answer, after those of earlier ones; its `output` is
///               not set. It must outlive the answers
/// \par Errors      at once: as CallOrders
[[nodiscard]] decode::MakeSequence ordered_sequences(const ToolCallFSM& calls,
                                                     OrderConsistencyOptions options,
                                                     Consensus& votes);

}  // namespace tooldecode::consistency

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/ordered_sequence.ipp>
#endif
