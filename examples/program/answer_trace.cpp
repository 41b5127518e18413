#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/answer_trace.hpp>

namespace program {

void AnswerTrace::add(const tooldecode::Output& output) {
  using namespace tooldecode;
  const Trace& trace            = output.trace;
  const std::size_t first_token = tokens_.size(), first_tree = trees_.size();
  text::Utf8Stream text;
  auto last = trace.begin;
  for (const TokenTrace& token : told(output)) {
    const std::string_view bytes = vocabulary_->bytes(token.token);
    Json entry    = token_json(token.token, token.is_end ? readable(bytes) : text.push(bytes));
    entry["kind"] = tooldecode::name(token.origin);
    if (entry["text"] != bytes) entry["bytes"] = hexadecimal(bytes);
    if (token.is_end) entry["end"] = true;
    if (token.origin != TokenOrigin::supplied) {
      entry["probability"] = std::exp(token.log_probability);
    }
    if (token.allowed) entry["allowed"] = *token.allowed;
    if (token.model_probability) {
      entry["model_probability"]   = *token.model_probability;
      entry["removed_probability"] = token.removed_probability;
      Json removed                 = Json::array();
      for (const RemovedToken& other : token.removed) {
        removed.push_back(token_json(other.token, readable(vocabulary_->bytes(other.token))));
        removed.back()["probability"] = other.probability;
      }
      entry["removed"] = std::move(removed);
    }
    if (token.draft) {
      entry["tree"] = first_tree + token.draft->tree;
      entry["node"] = token.draft->node;
    }
    entry["microseconds"] = microseconds(token.at - last);
    last                  = token.at;
    tokens_.push_back(std::move(entry));
    if (!token.is_end) text_end_ = tokens_.size() - 1;
  }
  if (tokens_.size() > first_token) append(tokens_[text_end_], text.finish());
  for (const TreeTrace& tree : trace.trees) trees_.push_back(tree_json(tree));

  span("answer", "answer", trace.begin, trace.end(), {{"tokens", output.tokens.size()}});
  for (const PhaseSpan& phase : trace.phases) {
    const bool is_pass = phase.phase == Phase::prefill || phase.phase == Phase::model;
    const std::string what(tooldecode::name(phase.phase));
    span(what, is_pass ? "model" : what, phase.begin, phase.end);
  }
  finish_ = tooldecode::name(output.finish);
  end_    = trace.end();
  count(output);
}

void AnswerTrace::add_results(std::span<const tooldecode::TokenId> tokens,
                              std::chrono::steady_clock::time_point until) {
  tooldecode::text::Utf8Stream text;
  for (const tooldecode::TokenId token : tokens) {
    tokens_.push_back(token_json(token, text.push(vocabulary_->bytes(token))));
    tokens_.back().update({{"kind", "cached"}, {"microseconds", 0}});
  }
  if (!tokens.empty()) append(tokens_.back(), text.finish());
  totals_.cached += tokens.size();
  span("tool results", "cache", end_, std::max(end_, until), {{"tokens", tokens.size()}});
}

void AnswerTrace::add(std::span<const tooldecode::CallVote> votes) {
  for (const tooldecode::CallVote& vote : votes) votes_.push_back(vote_json(vote));
}

Json AnswerTrace::json() const {
  std::string text;  // all turns, without the tokens read between them
  for (const Json& token : tokens_) {
    if (!token.contains("end") && token["kind"] != "cached") {
      text += token["text"].string();
    }
  }
  Json result{{"name", name_}, {"text", std::move(text)}, {"finish", finish_}};
  result.update(facts_);
  result["totals"] = totals_json();
  result["tokens"] = tokens_;
  result["trees"]  = trees_;
  result["votes"]  = votes_;
  return result;
}

std::vector<tooldecode::TokenTrace> AnswerTrace::told(const tooldecode::Output& output) {
  std::vector<tooldecode::TokenTrace> known = output.trace.tokens;
  const auto is_same = [](const tooldecode::TokenTrace& a, tooldecode::TokenId b) {
    return a.token == b;
  };
  const auto end     = known.end() - (output.end_token ? 1 : 0);
  const auto& tokens = output.tokens;
  const auto [first, put] =
      std::mismatch(known.begin(), end, tokens.begin(), tokens.end(), is_same);
  const auto [last, rest] = std::mismatch(std::reverse_iterator(end), std::reverse_iterator(first),
                                          tokens.rbegin(), std::reverse_iterator(put), is_same);
  std::vector<tooldecode::TokenTrace> supplied;
  for (auto token = put; token != rest.base(); ++token) {
    supplied.push_back({.token  = *token,
                        .origin = tooldecode::TokenOrigin::supplied,
                        .at = first == known.begin() ? output.trace.begin : std::prev(first)->at});
  }
  known.insert(known.erase(first, last.base()), supplied.begin(), supplied.end());
  return known;
}

std::string AnswerTrace::readable(std::string_view bytes) {
  tooldecode::text::Utf8Stream utf8;
  std::string text = utf8.push(bytes);
  text += utf8.finish();
  return text;
}

Json AnswerTrace::token_json(tooldecode::TokenId token, std::string text) const {
  Json result{{"id", token}, {"text", std::move(text)}};
  if (vocabulary_->bytes(token).empty()) result["name"] = readable(vocabulary_->name(token));
  return result;
}

std::string AnswerTrace::hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {digits[byte / 16], digits[byte % 16]};
  }
  return text;
}

void AnswerTrace::append(Json& token, const std::string& rest) {
  if (!rest.empty()) token["text"] = token["text"].string() + rest;
}

void AnswerTrace::span(std::string what, std::string category,
                       TimelineSpan::Clock::time_point begin, TimelineSpan::Clock::time_point end,
                       Json args) {
  spans_.push_back({name_, std::move(what), std::move(category), begin, end, std::move(args)});
}

void AnswerTrace::count(const tooldecode::Output& output) {
  totals_.tokens += output.tokens.size();
  totals_.forced += output.forced_tokens;
  totals_.passes += output.passes;
  totals_.drafts += output.drafts;
  totals_.times.prefill += output.times.prefill;
  totals_.times.model += output.times.model;
  totals_.times.constraint += output.times.constraint;
  totals_.times.sampling += output.times.sampling;
  totals_.times.drafting += output.times.drafting;
}

Json AnswerTrace::totals_json() const {
  std::size_t accepted = 0;
  for (const std::size_t at_depth : totals_.drafts.accepted) accepted += at_depth;
  const tooldecode::PhaseTimes& times = totals_.times;
  return {{"tokens", totals_.tokens},
          {"forced_tokens", totals_.forced},
          {"cached_tokens", totals_.cached},
          {"passes", totals_.passes},
          {"draft_rounds", totals_.drafts.rounds},
          {"drafted_tokens", totals_.drafts.nodes},
          {"accepted_tokens", accepted},
          {"prefill_microseconds", microseconds(times.prefill)},
          {"model_microseconds", microseconds(times.model)},
          {"constraint_microseconds", microseconds(times.constraint)},
          {"sampling_microseconds", microseconds(times.sampling)},
          {"drafting_microseconds", microseconds(times.drafting)}};
}

Json AnswerTrace::tree_json(const tooldecode::TreeTrace& trace) const {
  Json nodes = Json::array();
  for (std::size_t i = 0; i < trace.tree.size(); ++i) {
    const bool accepted             = std::ranges::find(trace.path, i) != trace.path.end();
    const tooldecode::TokenId token = trace.tree.token(i);
    Json node                       = token_json(token, readable(vocabulary_->bytes(token)));
    node["parent"]                  = trace.tree.parent(i);
    if (i > 0) {
      node["probability"] = std::exp(static_cast<double>(trace.tree.score(i)));
      node["accepted"]    = accepted;
    }
    nodes.push_back(std::move(node));
  }
  return {{"nodes", std::move(nodes)}};
}

Json AnswerTrace::vote_json(const tooldecode::CallVote& vote) const {
  Json candidates = Json::array();
  for (const tooldecode::Candidate& candidate : vote.candidates) {
    candidates.push_back({{"order", candidate.order},
                          {"complete", candidate.is_complete},
                          {"text", readable(vocabulary_->decode(candidate.tokens))}});
  }
  Json result          = vote.json();
  result["candidates"] = std::move(candidates);
  return result;
}

}  // namespace program
