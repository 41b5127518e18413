#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <system_error>

#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE std::size_t RankTable::rank_of(TokenId token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= ranks.size()) {
    throw Error(Errc::unknown_token, "token " + std::to_string(token),
                "must be one of the " + std::to_string(ranks.size()) + " tokens ranked");
  }
  return ranks[static_cast<std::size_t>(token)];
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE std::vector<TokenId> context_tokens(std::span<const TokenId> text,
                                                      const Vocabulary& vocabulary) {
  std::vector<TokenId> tokens(text.begin(), text.end());
  for (const TokenId token : text) {
    const std::string_view bytes = vocabulary.bytes(token);
    if (!bytes.starts_with(' ')) continue;
    if (const auto twin = vocabulary.find(bytes.substr(1))) tokens.push_back(*twin);
  }
  return tokens;
}

TOOLDECODE_INLINE std::span<const TokenId> RankedTokens::ranked() const noexcept {  // [K]
  return std::span(table_->ids).first(k_);
}

TOOLDECODE_INLINE TokenId RankedTokens::operator[](std::size_t row) const noexcept {
  TOOLDECODE_ASSERT(row < size());
  return row < k_ ? table_->ids[row] : added_->given[row - k_];
}

TOOLDECODE_INLINE bool RankedTokens::contains(TokenId token) const {
  return table_->rank_of(token) < k_ || added_->set.contains(token);
}

TOOLDECODE_INLINE RankedTokens RankedTokens::with(std::span<const TokenId> tokens) const {
  auto added = std::make_shared<Added>(*added_);
  for (const TokenId token : tokens) {
    if (table_->rank_of(token) >= k_ && added->set.insert(token).second) {
      added->given.push_back(token);
    }
  }
  return RankedTokens(table_, k_, std::move(added));
}

TOOLDECODE_INLINE FrequencyRanks::FrequencyRanks(std::span<const std::uint64_t> counts,  // [V]
                                                 std::span<const TokenId> always,
                                                 std::string source) {
  auto table       = std::make_shared<detail::RankTable>();
  const auto index = [](TokenId id) { return static_cast<std::size_t>(id); };
  table->source    = std::move(source);
  table->ranks.resize(counts.size());
  std::vector<bool> is_always(counts.size());
  for (const TokenId token : always) {
    static_cast<void>(table->rank_of(token));  // checks the range
    is_always[index(token)] = true;
  }
  table->ids.resize(counts.size());
  std::iota(table->ids.begin(), table->ids.end(), TokenId{0});
  const auto others = std::stable_partition(table->ids.begin(), table->ids.end(),
                                            [&](TokenId id) { return is_always[index(id)]; });
  table->always     = static_cast<std::size_t>(others - table->ids.begin());
  std::stable_sort(others, table->ids.end(),
                   [&](TokenId a, TokenId b) { return counts[index(a)] > counts[index(b)]; });
  table->running_counts.push_back(0);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const TokenId id        = table->ids[rank];
    table->ranks[index(id)] = static_cast<std::uint32_t>(rank);
    table->running_counts.push_back(table->running_counts.back() + counts[index(id)]);
  }
  table_ = std::move(table);
}

TOOLDECODE_INLINE FrequencyRanks::FrequencyRanks(std::span<const std::uint64_t> counts,  // [V]
                                                 const Vocabulary& vocabulary, std::string source)
    : FrequencyRanks(counts, always_in(vocabulary, counts.size()), std::move(source)) {}

TOOLDECODE_INLINE std::uint64_t FrequencyRanks::count(TokenId token) const {
  const std::size_t rank = rank_of(token);
  return table_->running_counts[rank + 1] - table_->running_counts[rank];
}

TOOLDECODE_INLINE RankedTokens FrequencyRanks::first(std::size_t k) const {
  if (k < always_count() || k > size()) {
    throw Error(Errc::invalid_option, "k = " + std::to_string(k),
                "must be from " + std::to_string(always_count()) + " (tokens always in) to " +
                    std::to_string(size()) + " (all)");
  }
  return RankedTokens(table_, k, std::make_shared<const RankedTokens::Added>());
}

TOOLDECODE_INLINE double FrequencyRanks::coverage(std::size_t k) const noexcept {
  if (total() == 0) return 0;
  return static_cast<double>(table_->running_counts[std::min(k, size())]) /
         static_cast<double>(total());
}

TOOLDECODE_INLINE std::vector<FrequencyRanks::Coverage> FrequencyRanks::coverage_table() const {
  std::vector<Coverage> table;
  for (const std::size_t thirty_seconds : {32U, 24U, 16U, 8U, 4U, 2U, 1U}) {
    const std::size_t k = size() * thirty_seconds / 32;
    table.push_back({k, coverage(k)});
  }
  return table;
}

TOOLDECODE_INLINE void FrequencyRanks::save(const std::filesystem::path& path) const {
  std::ofstream file(path, std::ios::binary);
  file << to_json();
  if (!file.flush()) throw Error(Errc::file_unreadable, path.string(), "cannot be written");
}

TOOLDECODE_INLINE FrequencyRanks FrequencyRanks::load(const std::filesystem::path& path) {
  std::error_code failure;
  std::ifstream file(path, std::ios::binary);
  if (!std::filesystem::is_regular_file(path, failure) || !file) {
    throw Error(Errc::file_unreadable, path.string(), "is not a file that can be read");
  }
  return parse(std::string(std::istreambuf_iterator<char>(file), {}), path.string() + ": ");
}

TOOLDECODE_INLINE std::vector<TokenId> FrequencyRanks::always_in(const Vocabulary& vocabulary,
                                                                 std::size_t size) {
  if (vocabulary.size() != size) {
    throw Error(Errc::shape_mismatch, "counts",
                std::to_string(size) + " tokens: must be " + std::to_string(vocabulary.size()));
  }
  const auto ends = vocabulary.end_tokens();
  std::vector<TokenId> tokens(ends.begin(), ends.end());
  for (std::size_t i = 0; i < size; ++i) {
    const auto id   = static_cast<TokenId>(i);
    const auto type = vocabulary.type(id);
    if (type == TokenType::control || type == TokenType::user_defined) tokens.push_back(id);
  }
  return tokens;
}

TOOLDECODE_INLINE std::string FrequencyRanks::to_json() const {
  using Json = JsonValue;
  Json ids = Json::array(), counts = Json::array(), shares = Json::array();
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const TokenId id = table_->ids[rank];
    if (rank >= always_count() && count(id) == 0) break;
    ids.push_back(id);
    counts.push_back(count(id));
  }
  for (const auto& [k, share] : coverage_table()) {
    shares.push_back({{"k", k}, {"share", std::round(1e6 * share) / 1e6}});
  }
  return Json{{"format", format_}, {"source", source()}, {"vocabulary_size", size()},
              {"total", total()},  {"coverage", shares}, {"always", always_count()},
              {"ids", ids},        {"counts", counts}}
             .text() +
         '\n';
}

TOOLDECODE_INLINE FrequencyRanks FrequencyRanks::parse(std::string_view text,
                                                       const std::string& place) {
  using Json      = JsonValue;
  const auto fail = [&](const std::string& pointer, std::string_view what) {
    throw Error(Errc::malformed_file, place + pointer, what);
  };
  const Json file = text::parse_json_file(text, place);
  if (!file.is_object() || file.value("format", Json()) != format_) {
    fail("#/format", std::string("must be \"") + format_ + '"');
  }
  const auto number = [&](const Json& value, const std::string& pointer, std::uint64_t max) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max) {
      fail(pointer, "must be a whole number from 0 to " + std::to_string(max));
    }
    return value.get<std::uint64_t>();
  };
  const Json missing;
  const auto member = [&](const char* key) -> const Json& {
    const auto found = file.find(key);
    return found == file.end() ? missing : *found;
  };
  // Larger than any vocabulary, but too small to fill the memory.
  const std::size_t size = number(member("vocabulary_size"), "#/vocabulary_size", 1U << 24);
  const Json &source = member("source"), &ids = member("ids"), &counts = member("counts");
  if (!source.is_string()) fail("#/source", "must be a string");
  if (!ids.is_array() || ids.size() > size) {
    fail("#/ids", "must be an array of at most " + std::to_string(size) + " tokens");
  }
  if (!counts.is_array() || counts.size() != ids.size()) {
    fail("#/counts", "must be an array as long as ids");
  }
  const std::size_t always_count = number(member("always"), "#/always", ids.size());

  std::vector<TokenId> ranked;
  std::vector<std::uint64_t> by_token(size);
  std::vector<bool> is_ranked(size);
  std::uint64_t left = number(member("total"), "#/total", std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string at = '/' + std::to_string(i);
    const auto id        = number(ids[i], "#/ids" + at, size - 1);
    if (is_ranked[id]) fail("#/ids" + at, "repeats token " + std::to_string(id));
    by_token[id] = number(counts[i], "#/counts" + at, left);
    left -= by_token[id];
    is_ranked[id] = true;
    ranked.push_back(static_cast<TokenId>(id));
  }
  if (left != 0)
    fail("#/total", "must be the sum of the counts, " + std::to_string(left) + " less");
  FrequencyRanks ranks(by_token, std::span(ranked).first(always_count), source.get<std::string>());
  const auto [wrong, expected] =
      std::mismatch(ranked.begin(), ranked.end(), ranks.table_->ids.begin());
  if (wrong != ranked.end()) {
    fail("#/ids/" + std::to_string(wrong - ranked.begin()),
         "token " + std::to_string(*expected) + " comes first: tokens go by count, then by id");
  }
  return ranks;
}

}  // namespace tooldecode
