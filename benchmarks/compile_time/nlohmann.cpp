// nlohmann's header, which tooldecode includes: reads, changes and writes a document.
#include <string>

#include <nlohmann/json.hpp>

std::string renamed(const std::string& document, const std::string& name) {
  auto value    = nlohmann::ordered_json::parse(document);
  value["name"] = name;
  return value.dump();
}
