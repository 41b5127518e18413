#pragma once

#include <cmath>
#include <span>
#include <utility>

#include <tooldecode/consistency/call_orders.hpp>
#include <tooldecode/core/error.hpp>

namespace tooldecode {

TOOLDECODE_INLINE void OrderConsistencyOptions::require() const {
  if (max_orders == 0) {
    throw Error(Errc::invalid_option, "max_orders", max_orders, "must be 1 or more");
  }
}

TOOLDECODE_INLINE JsonValue CallVote::json() const {
  JsonValue votes = JsonValue::array();
  for (const ParameterVote& parameter : parameters) {
    JsonValue choices = JsonValue::array();
    for (const Choice& choice : parameter.choices) {
      JsonValue entry{{"votes", choice.votes},
                      {"weight", choice.weight},
                      {"probability", std::exp(choice.log_probability)},
                      {"order", choice.order}};
      if (choice.value) entry["value"] = *choice.value;
      choices.push_back(std::move(entry));
    }
    votes.push_back({{"key", parameter.key},
                     {"agreement", parameter.agreement()},
                     {"choices", std::move(choices)}});
  }
  return {{"name", call.name},     {"arguments", call.arguments},
          {"orders", orders},      {"sampled", candidates.size()},
          {"written", is_written}, {"parameters", std::move(votes)}};
}

}  // namespace tooldecode

namespace tooldecode::consistency {

TOOLDECODE_INLINE CallOrders::CallOrders(const ToolCallFSM& calls, OrderConsistencyOptions options)
    : calls_(&calls),
      options_(std::move(options)),
      text_(calls.vocabulary_index().trie()),
      known_(std::make_shared<OrderCache>()) {
  options_.require();
}

TOOLDECODE_INLINE CallOrders CallOrders::with(const ToolCallFSM& calls) const {
  CallOrders result = *this;
  result.calls_     = &calls;
  return result;
}

TOOLDECODE_INLINE std::shared_ptr<const ToolOrders> CallOrders::of(std::size_t tool) const {
  const std::lock_guard lock(known_->mutex);
  auto& known = known_->orders[tool];
  if (!known) {
    known = std::make_shared<const ToolOrders>(calls(), tool, options_.max_orders, options_.seed,
                                               options_.only_order);
  } else if (known->is_past_budget()) {
    auto renewed = std::make_shared<ToolOrders>(*known);
    renewed->reset();
    known = std::move(renewed);
  }
  return known;
}

TOOLDECODE_INLINE std::string CallOrders::write(const ToolCall& call) const {
  return calls_->write(std::span(&call, 1));
}

TOOLDECODE_INLINE std::vector<TokenId> CallOrders::encode(std::string_view text) const {
  const auto writes = [&](const std::vector<TokenId>& tokens) {
    std::string written;
    for (const TokenId token : tokens) {
      if (!calls().vocabulary().is_text(token)) return false;
      written += calls().vocabulary().bytes(token);
    }
    return written == text;
  };
  if (options_.encode) {
    std::vector<TokenId> tokens = options_.encode(text);
    if (writes(tokens)) return tokens;
  }
  std::vector<TokenId> tokens = text_.encode(text);
  if (!writes(tokens)) tokens.clear();
  return tokens;
}

}  // namespace tooldecode::consistency
