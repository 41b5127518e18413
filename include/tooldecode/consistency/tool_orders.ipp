#pragma once

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/philox.hpp>
#include <tooldecode/formats/listed_arguments.hpp>
#include <tooldecode/formats/plain_text.hpp>

namespace tooldecode::consistency {

TOOLDECODE_INLINE std::size_t OrderBranch::read(std::string_view bytes,
                                                double token_log_probability) {
  std::vector<std::size_t> seen;
  std::size_t at = 0;
  while (at < bytes.size() && calls.find_tool(state)) {
    if (const auto argument = calls.find_argument(state)) {
      auto value = std::find_if(values.begin(), values.end(),
                                [&](const Value& v) { return v.argument == *argument; });
      if (value == values.end()) value = values.insert(value, Value{.argument = *argument});
      value->text += bytes[at];
      if (std::find(seen.begin(), seen.end(), *argument) == seen.end()) {
        seen.push_back(*argument);
        value->log_probability += token_log_probability;
        ++value->tokens;
      }
    }
    text += bytes[at];
    state = *calls.advance_bytes(state, bytes.substr(at++, 1));
  }
  return at;
}

TOOLDECODE_INLINE void OrderBranch::read_control(TokenId token) {
  text += calls.vocabulary().answer_bytes(token);
  state = *calls.advance(state, token);
}

}  // namespace tooldecode::consistency

namespace tooldecode {

TOOLDECODE_INLINE std::vector<std::vector<std::size_t>> parameter_orders(std::size_t count,
                                                                         std::size_t max_orders,
                                                                         std::uint64_t seed) {
  std::size_t possible = 1;
  for (std::size_t i = 2; i <= count && possible < max_orders; ++i) {
    possible = possible > max_orders / i ? max_orders : possible * i;
  }
  const std::size_t wanted = std::max<std::size_t>(1, std::min(max_orders, possible));

  std::vector<std::size_t> documented(count);
  std::iota(documented.begin(), documented.end(), std::size_t{0});
  std::vector<std::vector<std::size_t>> orders{documented};
  std::set<std::vector<std::size_t>> known{documented};
  std::vector<std::size_t> next(documented.rbegin(), documented.rend());
  for (std::uint64_t draw = 0; orders.size() < wanted; ++draw) {
    if (known.insert(next).second) orders.push_back(next);
    next = documented;
    for (std::size_t i = count; i > 1; --i) {
      const double unit = core::uniform(seed, draw, static_cast<std::int32_t>(i));
      std::swap(next[i - 1], next[static_cast<std::size_t>(unit * static_cast<double>(i))]);
    }
  }
  return orders;
}

TOOLDECODE_INLINE std::vector<std::size_t> parameter_order(std::size_t count, std::size_t place,
                                                           std::uint64_t seed) {
  auto orders = parameter_orders(count, place + 1, seed);
  return std::move(orders[place % orders.size()]);
}

}  // namespace tooldecode

namespace tooldecode::consistency {

TOOLDECODE_INLINE ToolOrders::ToolOrders(const ToolCallFSM& calls, std::size_t tool,
                                         std::size_t max_orders, std::uint64_t seed,
                                         std::optional<std::size_t> only_order)
    : name_(calls.tools()[tool].name),
      names_(argument_names(calls.tools()[tool])),
      required_(required_names(calls.tools()[tool])),
      whole_(calls.single_call(tool)),
      first_order_(only_order.value_or(0)) {
  using Orders      = std::vector<std::vector<std::size_t>>;
  const auto orders = only_order ? Orders{parameter_order(required_.size(), *only_order, seed)}
                                 : parameter_orders(required_.size(), max_orders, seed);
  for (const auto& order : orders) {
    std::vector<std::string> keys;
    for (const std::size_t place : order) keys.push_back(required_[place]);
    try {
      calls_.push_back(calls.single_call(tool, std::move(keys), true));
    } catch (const Error& error) {
      if (error.code() != Errc::invalid_option) throw;
      // A format without keys keeps the order of the arguments.
      if (calls_.empty()) calls_.push_back(calls.single_call(tool, {}, true));
      break;
    }
  }
  const ToolCall empty{name_};
  const std::string text   = calls.write(std::span(&empty, 1));
  ToolCallFSM::State state = whole_.initial();
  while (!whole_.find_tool(state)) {
    state = *whole_.advance_bytes(state, std::string_view(text).substr(opening_.size(), 1));
    opening_ += text[opening_.size()];
  }
}

TOOLDECODE_INLINE std::size_t ToolOrders::bytes() const {
  std::size_t sum = whole_.bytes();
  for (const ToolCallFSM& calls : calls_) sum += calls.bytes();
  return sum;
}

TOOLDECODE_INLINE bool ToolOrders::is_past_budget() const {
  const std::size_t budget = whole_.vocabulary_index().budget();
  return whole_.bytes() > budget ||
         std::any_of(calls_.begin(), calls_.end(),
                     [&](const ToolCallFSM& calls) { return calls.bytes() > budget; });
}

TOOLDECODE_INLINE void ToolOrders::reset() {
  whole_.reset();
  for (ToolCallFSM& calls : calls_) calls.reset();
}

TOOLDECODE_INLINE std::vector<OrderBranch> ToolOrders::begin(std::string_view bytes,
                                                             double log_probability,
                                                             ToolCallFSM::State outer) const {
  std::vector<OrderBranch> branches;
  for (const ToolCallFSM& calls : calls_) {
    const auto opened  = *calls.advance_bytes(calls.initial(), opening_);
    const auto state   = calls.advance_bytes(opened, bytes);
    const bool is_over = !state || !calls.find_tool(*state);
    if (is_over && !bytes.empty()) return {};
    branches.push_back(
        {.calls = calls, .state = opened, .outer = outer, .order = first_order_ + branches.size()});
    // Without parameters the arguments may be empty text, which is over where it begins.
    branches.back().is_over = branches.back().is_complete = is_over;
    branches.back().read(bytes, log_probability);
  }
  return branches;
}

TOOLDECODE_INLINE Candidate ToolOrders::read(std::size_t order, const OrderBranch& branch) const {
  Candidate result{.order           = order,
                   .is_complete     = branch.is_complete,
                   .log_probability = branch.closing_log_probability,
                   .tokens          = branch.tokens};
  const auto note = [&](const std::string& key, const JsonValue& value) {
    const auto written =
        std::find_if(branch.values.begin(), branch.values.end(),
                     [&](const OrderBranch::Value& v) { return names_[v.argument] == key; });
    const bool known = written != branch.values.end();  // false for keys that no document has
    result.values.push_back(
        {key, value,
         known ? written->log_probability / static_cast<double>(written->tokens) : 0.0});
  };
  if (branch.is_complete) {
    std::string text = opening_ + branch.text;
    text += whole_.jump_forward(*whole_.advance_bytes(whole_.initial(), text));
    const auto calls = whole_.parse(text);
    for (const auto& [key, value] : calls.front().arguments.items()) note(key, value);
    return result;
  }
  const auto unfinished = branch.calls.find_argument(branch.state);
  for (const OrderBranch::Value& value : branch.values) {
    if (value.argument == unfinished) continue;
    const std::string& key = names_[value.argument];
    if (const auto read = read_value(key, value.text)) note(key, *read);
  }
  return result;
}

TOOLDECODE_INLINE std::optional<JsonValue> ToolOrders::read_value(const std::string& key,
                                                                  std::string_view text) const {
  using formats::PlainForm;
  for (const std::string_view part : {text, text.substr(0, text.size() - 1)}) {
    try {
      JsonValue value = whole_.parse_value(part);
      // Where strings have no quotes, a string may look like another value.
      const auto form =
          formats::find_argument_form(whole_.tools()[*whole_.tools().find(name_)], key);
      const bool is_text = form == PlainForm::text || form == PlainForm::nullable;
      if (is_text && !value.is_string() && !(form == PlainForm::nullable && value.is_null())) {
        return std::nullopt;
      }
      return value;
    } catch (const Error&) {
      continue;  // the last byte ended a number and does not belong to it
    }
  }
  return std::nullopt;
}

}  // namespace tooldecode::consistency
