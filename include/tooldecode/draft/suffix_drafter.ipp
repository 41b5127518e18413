#pragma once

#include <optional>

#include <tooldecode/draft/suffix_drafter.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::vector<SuffixMatch> SuffixDrafter::find_matches(
    std::string_view text) const {
  std::vector<SuffixMatch> matches;
  for (std::size_t end = text.size() - 1; end >= options_.min_bytes && end < text.size(); --end) {
    std::size_t bytes = 0;
    while (bytes < std::min(end, options_.max_bytes) &&
           text[end - 1 - bytes] == text[text.size() - 1 - bytes]) {
      ++bytes;
    }
    if (bytes >= options_.min_bytes) matches.push_back({bytes, text.substr(end)});
  }
  return matches;
}

TOOLDECODE_INLINE std::vector<SuffixDrafter::Voter> SuffixDrafter::find_voters(
    std::string_view text) const {
  std::vector<SuffixMatch> matches = find_matches(text);
  std::optional<SuffixHistory::View> earlier;  // what it finds points into it
  if (history_) {
    earlier = history_->view();
    const auto found =
        earlier->find(text, options_.min_history_bytes, options_.max_bytes, options_.matches);
    matches.insert(matches.end(), found.begin(), found.end());
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const SuffixMatch& a, const SuffixMatch& b) { return a.bytes > b.bytes; });
  if (matches.size() > options_.matches) matches.resize(options_.matches);
  constexpr std::size_t token_bytes = 16;  // more than tokens have on average
  const constraint::JumpForwardText tokens(cache_.trie());
  std::vector<Voter> voters;
  for (const SuffixMatch& match : matches) {
    voters.push_back(
        {match.bytes, tokens.encode(match.follow.substr(0, token_bytes * options_.length))});
  }
  return voters;
}

TOOLDECODE_INLINE std::vector<SuffixDrafter::Grown> SuffixDrafter::split(const Grown& at) const {
  std::vector<Grown> children;
  for (const Voter* voter : at.voters) {
    if (voter->tokens.size() <= at.depth) continue;
    const TokenId token = voter->tokens[at.depth];
    auto child          = std::find_if(children.begin(), children.end(),
                                       [&](const Grown& one) { return one.token == token; });
    if (child == children.end()) {
      children.push_back({.token = token,
                          .depth = at.depth + 1,
                          .bytes = at.bytes + cache_.vocabulary().bytes(token).size()});
      child = children.end() - 1;
    }
    child->voters.push_back(voter);
  }
  return children;
}

TOOLDECODE_INLINE void SuffixDrafter::weigh(const Grown& at, std::vector<Grown>& children) {
  if (at.voters.empty()) return;
  const std::size_t longest = at.voters.front()->bytes;
  const auto votes          = [&](const Grown& child) {
    double sum = 0;
    for (const Voter* voter : child.voters) {
      sum += std::exp2(-static_cast<double>(longest - voter->bytes));
    }
    return sum;
  };
  // How often a single place is right, roughly; SizedDrafter learns how often it is.
  const std::size_t agree = longest + at.bytes;
  const double alone      = agree < 4 ? 0.3 : agree < 8 ? 0.6 : 0.85;
  double all              = (1 - alone) / alone;
  for (const Grown& child : children) all += votes(child);
  for (Grown& child : children) child.path = at.path * votes(child) / all;
}

}  // namespace tooldecode
