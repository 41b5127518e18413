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

#include <program/assistant.hpp>
#include <program/name_repairs.hpp>

namespace program {

/// An answer, and the votes on its calls where the method has them put to the vote.
struct MethodAnswer {
  MethodAnswer(tooldecode::Output decoded, std::vector<tooldecode::CallVote> counted = {})
      : output(std::move(decoded)), votes(std::move(counted)) {}

  tooldecode::Output output;
  std::vector<tooldecode::CallVote> votes;
};

/// Answers a prompt.
using Run =
    std::function<MethodAnswer(std::span<const tooldecode::TokenId>, tooldecode::DecodeOptions)>;

/// A way to decode with models of one kind. What `prepare` gives refers to the model and the
/// constraint of its arguments.
template <class M>
struct Method {
  std::string name;
  bool constrained  = false;
  float temperature = 0;
  std::function<Run(const M&, const tooldecode::Tokenizer&, const tooldecode::ToolCallFSM&)>
      prepare;
  std::size_t orders = 0;      ///< of tool-decoding: at most so many orders
  bool types_only    = false;  ///< the constraint knows types of arguments and nothing more
  bool may_be_cut    = false;  ///< constrained, but not such that answers end within their tokens
};

namespace detail {

// Without a constraint, with a strategy that sees the answer's end by the model's end tokens.
template <class M, class S>
Run decode_freely(const M& model, const tooldecode::Tokenizer& tokenizer, S strategy) {
  const auto ends = tokenizer.vocabulary().end_tokens();
  return [&model, strategy = std::move(strategy), ends = std::vector(ends.begin(), ends.end())](
             auto prompt, auto options) {
    options.end_tokens = ends;
    const tooldecode::Unconstrained free{model.vocabulary_size()};
    return tooldecode::Decoder{model, free, strategy}(prompt, options);
  };
}

template <class M, class S>
Run decode_constrained(const M& model, const tooldecode::ToolCallFSM& calls, S strategy) {
  return [decode = tooldecode::Decoder{model, calls, std::move(strategy)}](
             auto prompt, auto options) { return decode(prompt, options); };
}

template <class M>
Run decode_in_orders(const M& model, const tooldecode::Tokenizer& tokenizer,
                     const tooldecode::ToolCallFSM& calls,
                     tooldecode::OrderConsistencyOptions options) {
  struct Parts {
    tooldecode::Decoder<M, tooldecode::ToolCallFSM> decoder;
    tooldecode::OrderConsistencySampler<M> sampler;
    Parts(const M& target, const tooldecode::ToolCallFSM& constraint,
          tooldecode::OrderConsistencyOptions settings)
        : decoder(target, constraint), sampler(decoder, std::move(settings)) {}
  };
  options.encode = [&tokenizer](std::string_view text) { return tokenizer.encode(text); };
  return [parts = std::make_shared<const Parts>(model, calls, std::move(options))](auto prompt,
                                                                                   auto decode) {
    tooldecode::Consensus consensus = parts->sampler(prompt, decode);
    return MethodAnswer(std::move(consensus.output), std::move(consensus.calls));
  };
}

}  // namespace detail

/// The orders that can be asked for one by one, as OrderConsistencyOptions::only_order counts them.
inline constexpr std::array<std::string_view, 3> order_names{"documented", "reversed", "shuffled"};

/// The methods of these names; tool-decoding once for each of `orders`, and once under each order
/// of `only_orders` alone. Error{invalid_option} for another name or order, or for no orders.
template <class M>
std::vector<Method<M>> make_methods(const std::vector<std::string>& names,
                                    const std::vector<std::size_t>& orders,
                                    const std::vector<std::string>& only_orders) {
  using tooldecode::ToolCallFSM, tooldecode::Tokenizer;
  constexpr std::size_t width = 6;  // beams, samples, and tries of backtrace
  const auto free             = [](auto strategy) {
    return [strategy](const M& model, const Tokenizer& tokenizer, const ToolCallFSM&) {
      return detail::decode_freely(model, tokenizer, strategy);
    };
  };
  const auto constrained = [](auto strategy) {
    return [strategy](const M& model, const Tokenizer&, const ToolCallFSM& calls) {
      return detail::decode_constrained(model, calls, strategy);
    };
  };
  const auto in_orders = [](tooldecode::OrderConsistencyOptions options) {
    return [options](const M& model, const Tokenizer& tokenizer, const ToolCallFSM& calls) {
      return detail::decode_in_orders(model, tokenizer, calls, options);
    };
  };
  const std::vector<Method<M>> plain{
      {"greedy", false, 0, free(tooldecode::Sequential{})},
      {"sampling", false, 1, free(tooldecode::Sequential{})},
      {"beam", false, 0, free(tooldecode::BeamSearch{.width = width})},
      {"self-consistency", false, 0.7F,
       [](const M& model, const Tokenizer& tokenizer, const ToolCallFSM& calls) {
         const auto vote = [&calls](auto tokens) { return tooldecode::find_vote(calls, tokens); };
         return detail::decode_freely(model, tokenizer, tooldecode::SelfConsistency{width, vote});
       }},
      {"fuzzy-matching", false, 0,
       [](const M& model, const Tokenizer& tokenizer, const ToolCallFSM& calls) {
         const auto decode = detail::decode_freely(model, tokenizer, tooldecode::Sequential{});
         return [decode, &tokenizer, &calls](auto prompt, auto options) {
           return repair_by_suffix(decode(prompt, options).output, tokenizer, calls.tools());
         };
       }},
      {"backtrace", false, 0,
       [](const M& model, const Tokenizer& tokenizer, const ToolCallFSM& calls) {
         return Backtrace{model, tokenizer, calls, width};
       }},
      {.name        = "tooldec",
       .constrained = true,
       .prepare     = constrained(tooldecode::ToolDec{}),
       .types_only  = true,
       .may_be_cut  = true},
      {.name        = "tooldec-schema",
       .constrained = true,
       .prepare     = constrained(tooldecode::ToolDec{}),
       .may_be_cut  = true},
      {"constrained", true, 0, constrained(tooldecode::Sequential{})},
  };
  std::vector<Method<M>> methods;
  for (const std::string& name : names) {
    if (name == "tool-decoding") {
      for (const std::size_t n : orders) {
        if (n == 0) {
          throw tooldecode::Error(tooldecode::Errc::invalid_option, "--oc", "must be 1 or more");
        }
        methods.push_back(
            {"tool-decoding-oc" + std::to_string(n), true, 0, in_orders({.max_orders = n}), n});
      }
      for (const std::string& order : only_orders) {
        const auto found = std::find(order_names.begin(), order_names.end(), order);
        if (found == order_names.end()) {
          throw tooldecode::Error(tooldecode::Errc::invalid_option, "--order",
                                  "an order is documented, reversed or shuffled, not " + order);
        }
        const auto place = static_cast<std::size_t>(found - order_names.begin());
        methods.push_back({"tool-decoding-" + order, true, 0, in_orders({.only_order = place})});
      }
      continue;
    }
    const auto found = std::find_if(plain.begin(), plain.end(),
                                    [&](const Method<M>& method) { return method.name == name; });
    if (found == plain.end()) {
      throw tooldecode::Error(
          tooldecode::Errc::invalid_option, name,
          "no such method; there are greedy, sampling, beam, self-consistency, "
          "fuzzy-matching, backtrace, tooldec, tooldec-schema, constrained and tool-decoding");
    }
    methods.push_back(*found);
  }
  return methods;
}

}  // namespace program
