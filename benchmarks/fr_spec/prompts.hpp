// The prompts that prompts.py writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <program/files.hpp>

namespace fr_spec {

using Json = tooldecode::JsonValue;

struct Prompt {
  std::string domain;
  std::vector<tooldecode::TokenId> tokens;
  Json functions;         // null: free text
  std::size_t place = 0;  // within its domain
};

/// The first `limit` prompts of each domain, or all if it is 0; domains take turns, so that all are
/// measured equally when the time is over.
inline std::vector<Prompt> read_prompts(const std::string& file, std::size_t limit) {
  std::vector<Prompt> prompts;
  std::map<std::string, std::size_t> place;
  std::istringstream lines(program::read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const Json row           = tooldecode::text::parse_json(line);
    const std::string domain = row.at("domain").string();
    if (limit != 0 && place[domain] == limit) continue;
    prompts.push_back({domain, row.at("tokens").get<std::vector<tooldecode::TokenId>>(),
                       row.value("functions", Json()), place[domain]++});
  }
  std::ranges::stable_sort(prompts, {}, &Prompt::place);
  return prompts;
}

}  // namespace fr_spec
