/// \file
/// The decoding methods that are compared, by name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/decode/beam_search.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/self_consistency.hpp>
#include <tooldecode/decode/tool_dec.hpp>

#include <program/answer.hpp>

namespace program {

/// Answers a prompt.
using Run = std::function<tooldecode::Output(std::span<const tooldecode::TokenId>,
                                             tooldecode::DecodeOptions)>;

/// A way to decode. What `prepare` gives refers to the model and the constraint of its arguments.
struct Method {
  std::string name;
  bool constrained  = false;
  float temperature = 0;
  std::function<Run(const Assistant&, const tooldecode::ToolCallFSM&)> prepare;
  std::size_t orders = 0;      ///< of tool-decoding: at most so many orders
  bool types_only    = false;  ///< the constraint knows types of arguments and nothing more
};

namespace detail {

// Without a constraint, with a strategy that sees the answer's end by the model's end tokens.
template <class S>
Run decode_freely(const Assistant& assistant, S strategy) {
  const auto ends = assistant.tokenizer.vocabulary().end_tokens();
  return [&model = assistant.model, strategy = std::move(strategy),
          ends = std::vector(ends.begin(), ends.end())](auto prompt, auto options) {
    options.end_tokens = ends;
    const tooldecode::Unconstrained free{model.vocabulary_size()};
    return tooldecode::Decoder{model, free, strategy}(prompt, options);
  };
}

template <class S>
Run decode_constrained(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                       S strategy) {
  return [decode = tooldecode::Decoder{assistant.model, calls, std::move(strategy)}](
             auto prompt, auto options) { return decode(prompt, options); };
}

inline Run decode_in_orders(const Assistant& assistant, const tooldecode::ToolCallFSM& calls,
                            tooldecode::OrderConsistencyOptions options) {
  using Decoder = tooldecode::Decoder<tooldecode::LlamaModel, tooldecode::ToolCallFSM>;
  struct Parts {
    Decoder decoder;
    tooldecode::OrderConsistencySampler<tooldecode::LlamaModel> sampler;
    Parts(const Assistant& a, const tooldecode::ToolCallFSM& calls,
          tooldecode::OrderConsistencyOptions options)
        : decoder(a.model, calls), sampler(decoder, std::move(options)) {}
  };
  options.encode = [&assistant](std::string_view text) { return assistant.tokenizer.encode(text); };
  return [parts = std::make_shared<const Parts>(assistant, calls, std::move(options))](
             auto prompt, auto decode) { return parts->sampler(prompt, decode).output; };
}

}  // namespace detail

/// The orders that can be asked for one by one, as OrderConsistencyOptions::only_order counts them.
inline constexpr std::array<std::string_view, 3> order_names{"documented", "reversed", "shuffled"};

/// The methods of these names; tool-decoding once for each of `orders`, and once under each order
/// of `only_orders` alone. Error{invalid_option} for another name or order, or for no orders.
inline std::vector<Method> make_methods(const std::vector<std::string>& names,
                                        const std::vector<std::size_t>& orders,
                                        const std::vector<std::string>& only_orders) {
  using tooldecode::ToolCallFSM;
  constexpr std::size_t width = 6;  // beams and samples
  const auto tool_dec         = [](const Assistant& a, const ToolCallFSM& calls) {
    return detail::decode_constrained(a, calls, tooldecode::ToolDec{});
  };
  const std::vector<Method> plain{
      {"greedy", false, 0,
       [](const Assistant& a, const ToolCallFSM&) {
         return detail::decode_freely(a, tooldecode::Sequential{});
       }},
      {"sampling", false, 1,
       [](const Assistant& a, const ToolCallFSM&) {
         return detail::decode_freely(a, tooldecode::Sequential{});
       }},
      {"beam", false, 0,
       [](const Assistant& a, const ToolCallFSM&) {
         return detail::decode_freely(a, tooldecode::BeamSearch{.width = width});
       }},
      {"self-consistency", false, 0.7F,
       [](const Assistant& a, const ToolCallFSM& calls) {
         return detail::decode_freely(
             a, tooldecode::SelfConsistency{
                    width, [&calls](auto tokens) { return tooldecode::find_vote(calls, tokens); }});
       }},
      {.name = "tooldec", .constrained = true, .prepare = tool_dec, .types_only = true},
      {.name = "tooldec-schema", .constrained = true, .prepare = tool_dec},
      {"constrained", true, 0,
       [](const Assistant& a, const ToolCallFSM& calls) {
         return detail::decode_constrained(a, calls, tooldecode::Sequential{});
       }},
  };
  std::vector<Method> methods;
  for (const std::string& name : names) {
    if (name == "tool-decoding") {
      for (const std::size_t n : orders) {
        if (n == 0) {
          throw tooldecode::Error(tooldecode::Errc::invalid_option, "--oc", "must be 1 or more");
        }
        methods.push_back({"tool-decoding-oc" + std::to_string(n), true, 0,
                           [n](const Assistant& a, const ToolCallFSM& calls) {
                             return detail::decode_in_orders(a, calls, {.max_orders = n});
                           },
                           n});
      }
      for (const std::string& order : only_orders) {
        const auto found = std::find(order_names.begin(), order_names.end(), order);
        if (found == order_names.end()) {
          throw tooldecode::Error(tooldecode::Errc::invalid_option, "--order",
                                  "an order is documented, reversed or shuffled, not " + order);
        }
        const auto place = static_cast<std::size_t>(found - order_names.begin());
        methods.push_back({"tool-decoding-" + order, true, 0,
                           [place](const Assistant& a, const ToolCallFSM& calls) {
                             return detail::decode_in_orders(a, calls, {.only_order = place});
                           }});
      }
      continue;
    }
    const auto found = std::find_if(plain.begin(), plain.end(),
                                    [&](const Method& method) { return method.name == name; });
    if (found == plain.end()) {
      throw tooldecode::Error(tooldecode::Errc::invalid_option, name,
                              "no such method; there are greedy, sampling, beam, self-consistency, "
                              "tooldec, tooldec-schema, constrained and tool-decoding");
    }
    methods.push_back(*found);
  }
  return methods;
}

}  // namespace program
