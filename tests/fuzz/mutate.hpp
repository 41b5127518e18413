/// \file
/// Mutations of texts, byte by byte, and of JSON values, node by node.
#pragma once

#include <cstddef>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tooldecode::fuzz {

/// Changes one to four parts of a text; foreign parts come from `other`.
inline std::string mutate_text(std::string text, std::string_view other, std::mt19937& random) {
  static constexpr std::string_view parts[] = {"0",       "-1",      "99999999999999999999",
                                               "1e999",   "\xFF",    "\xC3",
                                               "\\u0000", "\\ud800", "[[[[",
                                               "{}",      "\"",      "'",
                                               "\\",      "\n",      "^",
                                               "*",       "{2,}",    "|",
                                               ","};
  const auto below = [&](std::size_t count) { return count == 0 ? 0 : random() % count; };
  const auto piece = [&](std::string_view from) {
    return from.substr(below(from.size()), below(64));
  };
  for (std::size_t times = 1 + below(4); times > 0; --times) {
    const std::size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.insert(at, parts[below(std::size(parts))]);
        break;
      case 2:
        text.erase(at, below(16));
        break;
      case 3:
        text.insert(at, std::string(piece(text)));
        break;
      case 4:
        text.insert(at, piece(other));
        break;
      default:
        if (below(4) == 0) text.resize(at);
        break;
    }
  }
  return text;
}

/// Every value inside a value, itself included.
inline void add_values(nlohmann::ordered_json& value, std::vector<nlohmann::ordered_json*>& all) {
  all.push_back(&value);
  if (!value.is_structured()) return;
  for (auto& member : value) add_values(member, all);
}

/// Changes one to four nodes of a JSON value; foreign nodes come from `other`.
inline nlohmann::ordered_json mutate_json(nlohmann::ordered_json value,
                                          nlohmann::ordered_json other, std::mt19937& random) {
  using Json              = nlohmann::ordered_json;
  static const Json plain = Json::parse(
      R"([null, true, false, 0, -1, 3, 1e300, 0.5, 4000000000, "", "string", "object", "#",
          "#/properties/a", "^a*$", [], {}])");
  const auto below = [&](std::size_t count) { return count == 0 ? 0 : random() % count; };
  std::vector<Json*> foreign;
  add_values(other, foreign);
  for (std::size_t times = 1 + below(4); times > 0; --times) {
    std::vector<Json*> nodes;
    add_values(value, nodes);
    Json& node      = *nodes[below(nodes.size())];
    const Json copy = *nodes[below(nodes.size())];
    switch (below(6)) {
      case 0:
        node = plain[below(plain.size())];
        break;
      case 1:
        node = *foreign[below(foreign.size())];
        break;
      case 2:
        node = copy;
        break;
      case 3:
        if (node.is_structured() && !node.empty()) {
          node.erase(std::next(node.begin(), static_cast<std::ptrdiff_t>(below(node.size()))));
        }
        break;
      case 4:
        if (node.is_array()) node.push_back(copy);
        break;
      default: {  // a keyword in another place
        const Json& from = *foreign[below(foreign.size())];
        if (!node.is_object() || !from.is_object() || from.empty()) break;
        const auto member =
            std::next(from.begin(), static_cast<std::ptrdiff_t>(below(from.size())));
        node[member.key()] = *member;
        break;
      }
    }
  }
  return value;
}

}  // namespace tooldecode::fuzz
