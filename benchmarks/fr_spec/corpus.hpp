// Frequency ranks by all parts of a corpus but the one that is measured.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include <program/files.hpp>

namespace fr_spec {

class Corpus {
 public:
  static constexpr std::array parts{"code", "dialogue", "math", "prose", "tools"};

  /// \param folder  of <part>.txt.gz
  Corpus(const std::filesystem::path& folder, const tooldecode::Tokenizer& tokenizer)
      : tokenizer_(&tokenizer) {
    for (const std::string part : parts) {
      std::istringstream text(program::read_file(folder / (part + ".txt.gz")));
      counts_.emplace(part, tooldecode::count_tokens(tokenizer, text));
    }
  }

  [[nodiscard]] const tooldecode::TokenCounts& counts(const std::string& part) const {
    return counts_.at(part);
  }
  /// The part that a prompt's domain is of: "tools, constrained" is of "tools".
  [[nodiscard]] static std::string part_of(const std::string& domain) {
    return domain.substr(0, domain.find(','));
  }
  [[nodiscard]] tooldecode::FrequencyRanks ranks_without(const std::string& part) const {
    tooldecode::TokenCounts counts(tokenizer_->vocabulary().size());
    for (const auto& [other, some] : counts_) {
      if (other != part) counts += some;
    }
    return {counts.counts(), tokenizer_->vocabulary(), "all but " + part};
  }

 private:
  const tooldecode::Tokenizer* tokenizer_;
  std::map<std::string, tooldecode::TokenCounts> counts_;
};

}  // namespace fr_spec
