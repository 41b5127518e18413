/// \file
/// ForbiddingKeywords: the keywords of a schema without which a text could go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode::constraint {

/// Takes keywords out of a schema as long as the text is refused at the same byte. What is left is a
/// smallest set that forbids it.
///
/// A keyword counts only if the text gets further without it. A subschema that must not admit more,
/// as in `not`, stays or goes with its keyword. Keywords in `$defs` go for all references at once.
///
/// \par Complexity  O(keywords left x log(keywords)) calls of the judge
/// \par Threads     one at a time
/// \par Errors      those of the judge; Error{limit_exceeded} from it ends the search
class ForbiddingKeywords {
 public:
  /// How far the text gets under a changed schema, relative to the byte that is to be explained.
  enum class Reach : std::uint8_t { less, same, more };
  using Judge = std::function<Reach(const JsonValue& schema)>;

  /// \param judge  returns `same` for the schema as it is
  ForbiddingKeywords(JsonValue schema, Judge judge)
      : schema_(std::move(schema)), judge_(std::move(judge)) {}

  /// The JSON pointers of the keywords, or of subschemas where no keyword decides; `type` last. Empty
  /// if the text is refused whatever the schema says.
  [[nodiscard]] std::vector<std::string> find();

 private:
  // What can be taken out: a keyword, which is renamed to one that says nothing, or a subschema,
  // which is replaced by true. Both happen in place, so that other parts stay where they are.
  struct Part {
    std::string pointer;
    std::string* keyword = nullptr;
    JsonValue* schema    = nullptr;
    std::string other_name{};
    JsonValue other_schema = true;
    void swap();
  };

  [[nodiscard]] bool is_same() const { return judge_(schema_) == Reach::same; }

  void search(JsonValue& schema, const std::string& pointer);
  void take_out(std::span<Part> parts);
  void add_parts(std::vector<Part>& parts, JsonValue::Member& member, std::string pointer);
  // Leaves the branches of `anyOf` that the text conforms to up to the byte, if there are any; the
  // others become false.
  void drop_dead(JsonValue::Array& branches);

  JsonValue schema_;
  Judge judge_;
  std::vector<std::string> found_;
  std::size_t explained_ = 0;  // parts that are needed: found, or references
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/forbidding_keywords.ipp>
#endif
