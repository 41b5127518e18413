#include <algorithm>
#include <memory>
#include <utility>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/research/beam_search.hpp>
#include <tooldecode/research/self_consistency.hpp>
#include <tooldecode/research/tool_dec.hpp>

#include <program/methods.hpp>
#include <program/name_repairs.hpp>

namespace program {

namespace {

// Decodes without a constraint; the model's end tokens end the answer.
template <class S>
Run decode_freely(const tooldecode::ModelRef& model, const tooldecode::Tokenizer& tokenizer,
                  S strategy) {
  const auto ends = tokenizer.vocabulary().end_tokens();
  return [model, strategy = std::move(strategy), ends = std::vector(ends.begin(), ends.end())](
             auto prompt, auto options) {
    options.end_tokens = ends;
    const tooldecode::Unconstrained free{model.vocabulary_size()};
    return tooldecode::Decoder{model, free, strategy}(prompt, options);
  };
}

template <class S>
Run decode_constrained(const tooldecode::ModelRef& model, const tooldecode::ToolCallFSM& calls,
                       S strategy) {
  return [model, &calls, strategy = std::move(strategy)](auto prompt, auto options) {
    return tooldecode::Decoder{model, calls, strategy}(prompt, options);
  };
}

// Names in the tokenizer's tokens, each chosen after the prompt of ToolDec's appendix A.2.
tooldecode::ToolDec make_prompted(const tooldecode::Tokenizer& tokenizer,
                                  const tooldecode::ToolCallFSM& calls) {
  std::vector<std::vector<tooldecode::TokenId>> names;
  for (std::size_t i = 0; i < calls.tools().size(); ++i) {
    names.push_back(tokenizer.encode(calls.tools()[i].name));
  }
  tooldecode::NamePrompt prompt{.text = tokenizer.encode("(obtained by calling function: ")};
  if (const auto end = tokenizer.encode(")"); end.size() == 1) prompt.end = end[0];
  return {.names = tooldecode::ToolNames{calls, names}, .name_prompt = std::move(prompt)};
}

Run decode_in_orders(const tooldecode::ModelRef& model, const tooldecode::Tokenizer& tokenizer,
                     const tooldecode::ToolCallFSM& calls,
                     tooldecode::OrderConsistencyOptions options) {
  struct Parts {
    tooldecode::ModelRef model;
    tooldecode::Decoder<tooldecode::ModelRef, tooldecode::ToolCallFSM> decoder;
    tooldecode::OrderConsistencySampler<tooldecode::ModelRef> sampler;
    Parts(const tooldecode::ModelRef& target, const tooldecode::ToolCallFSM& constraint,
          tooldecode::OrderConsistencyOptions settings)
        : model(target), decoder(model, constraint), sampler(decoder, std::move(settings)) {}
  };
  options.encode = [&tokenizer](std::string_view text) { return tokenizer.encode(text); };
  return [parts = std::make_shared<const Parts>(model, calls, std::move(options))](auto prompt,
                                                                                   auto decode) {
    tooldecode::Consensus consensus = parts->sampler(prompt, decode);
    return MethodAnswer(std::move(consensus.output), std::move(consensus.calls));
  };
}

}  // namespace

Run decode_greedily(const tooldecode::ModelRef& model, const tooldecode::Tokenizer& tokenizer) {
  return decode_freely(model, tokenizer, tooldecode::Sequential{});
}

std::vector<Method> make_methods(const std::vector<std::string>& names,
                                 const std::vector<std::size_t>& orders,
                                 const std::vector<std::string>& only_orders, Speculate speculate) {
  using tooldecode::ToolCallFSM, tooldecode::Tokenizer;
  constexpr std::size_t width = 6;  // beams, samples, and tries of backtrace
  const auto free             = [](auto strategy) {
    return [strategy](const tooldecode::ModelRef& model, const Tokenizer& tokenizer,
                      const ToolCallFSM&) { return decode_freely(model, tokenizer, strategy); };
  };
  const auto constrained = [](auto strategy) {
    return
        [strategy](const tooldecode::ModelRef& model, const Tokenizer&, const ToolCallFSM& calls) {
          return decode_constrained(model, calls, strategy);
        };
  };
  const auto in_orders = [](tooldecode::OrderConsistencyOptions options) {
    return [options](const tooldecode::ModelRef& model, const Tokenizer& tokenizer,
                     const ToolCallFSM& calls) {
      return decode_in_orders(model, tokenizer, calls, options);
    };
  };
  std::vector<Method> plain{
      {"greedy", false, 0, free(tooldecode::Sequential{})},
      {"sampling", false, 1, free(tooldecode::Sequential{})},
      {"beam", false, 0, free(tooldecode::BeamSearch{.width = width})},
      {"self-consistency", false, 0.7F,
       [](const tooldecode::ModelRef& model, const Tokenizer& tokenizer, const ToolCallFSM& calls) {
         const auto vote = [&calls](auto tokens) { return tooldecode::find_vote(calls, tokens); };
         return decode_freely(model, tokenizer, tooldecode::SelfConsistency{width, vote});
       }},
      {"fuzzy-matching", false, 0,
       [](const tooldecode::ModelRef& model, const Tokenizer& tokenizer, const ToolCallFSM& calls) {
         const auto decode = decode_freely(model, tokenizer, tooldecode::Sequential{});
         return [decode, &tokenizer, &calls](auto prompt, auto options) {
           return repair_by_suffix(decode(prompt, options).output, tokenizer, calls.tools());
         };
       }},
      {"backtrace", false, 0,
       [](const tooldecode::ModelRef& model, const Tokenizer& tokenizer, const ToolCallFSM& calls) {
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
      {.name        = "tooldec-prompted",
       .constrained = true,
       .prepare =
           [](const tooldecode::ModelRef& model, const Tokenizer& tokenizer,
              const ToolCallFSM& calls) {
             return decode_constrained(model, calls, make_prompted(tokenizer, calls));
           },
       .types_only = true,
       .may_be_cut = true},
      {"constrained", true, 0, constrained(tooldecode::Sequential{})},
  };
  if (speculate) {
    plain.push_back(
        {"speculative", true, 0,
         [speculate = std::move(speculate)](const tooldecode::ModelRef& model, const Tokenizer&,
                                            const ToolCallFSM& calls) -> Run {
           return [=, &calls](auto prompt, auto options) {
             return speculate(model, calls, prompt, options);
           };
         }});
  }
  std::vector<Method> methods;
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
                                    [&](const Method& method) { return method.name == name; });
    if (found == plain.end() && name == "speculative") {
      throw tooldecode::Error(tooldecode::Errc::invalid_option, name,
                              "must come with --speculation");
    }
    if (found == plain.end()) {
      throw tooldecode::Error(
          tooldecode::Errc::invalid_option, name,
          "no such method; there are greedy, sampling, beam, self-consistency, "
          "fuzzy-matching, backtrace, tooldec, tooldec-schema, tooldec-prompted, constrained, "
          "speculative and "
          "tool-decoding");
    }
    methods.push_back(*found);
  }
  return methods;
}

}  // namespace program
