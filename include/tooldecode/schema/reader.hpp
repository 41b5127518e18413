/// \file
/// Reader: reads a schema into its normal form, keyword by keyword.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/schema/assertions.hpp>
#include <tooldecode/schema/constants.hpp>
#include <tooldecode/schema/document.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_algebra.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/schema/object_keys.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// Reads schemas into forms.
///
/// Keywords that no draft has, or not the document's, are ignored, as the standard demands. Formats
/// are enforced where the draft allows it (up to draft 7, and without `$schema`); an unknown format
/// is ignored. DocumentRules can change this.
///
/// \par Complexity  O(size of the schema), plus the cost of FormAlgebra
/// \par Threads     one at a time; refers to the document
/// \par Errors      Error{malformed_schema, unsupported_keyword, malformed_pattern,
///                  unsupported_pattern, limit_exceeded} with the JSON pointer
/// \par Source      JSON Schema 2020-12, 2019-09, drafts 7, 6 and 4
class Reader final : private FormSource {
 public:
  using Json     = JsonValue;
  using Location = Document::Location;

  explicit Reader(const Json& root, DocumentRules rules = {});
  Reader(const Reader&)            = delete;
  Reader& operator=(const Reader&) = delete;

  FormAlgebra forms{this};

  /// The form of a schema of the document.
  [[nodiscard]] FormId form(const Json& schema, const std::string& pointer);
  /// The form whose values are written: with objects closed as DocumentRules demand. Use
  /// `forms[id]` to combine it with other forms.
  [[nodiscard]] const Form& written(FormId id);

 private:
  using ResourceId                        = Document::ResourceId;
  using Scope                             = std::vector<ResourceId>;
  using ScopeId                           = core::Id<Scope>;
  static constexpr std::size_t max_scopes = 100, max_negations = 100;
  static constexpr std::size_t all_items = std::numeric_limits<std::uint32_t>::max();

  // Whether a schema describes a value or only tests it.
  enum class Role : std::uint8_t { describes, tests };
  struct Site {
    const Json& schema;
    const std::string& pointer;
    ResourceId resource;
    ScopeId scope;
    Role role;
    Assertions has;
  };

  [[nodiscard]] FormId child(const Site& site, const Json& schema, const std::string& part);
  // The same for a schema that only tests.
  [[nodiscard]] FormId test(const Site& site, const Json& schema, const std::string& part);
  [[nodiscard]] FormId child(const Site& site, const Json& schema, const std::string& part,
                             Role role);
  // The form of a schema that says a type and no more, as most members do; it needs no place.
  [[nodiscard]] std::optional<FormId> find_by_type(const Site& site, const Json& schema);

  // The dynamic scope inside a resource: the resources entered, outermost first, without those
  // whose anchors others have further out: dynamic references never choose these.
  [[nodiscard]] ScopeId entered(ScopeId scope, ResourceId resource);
  [[nodiscard]] bool adds_anchor(const Scope& scope, const Document::Resource& resource) const;

  [[nodiscard]] FormId form_at(Location place, ScopeId scope, Role role);
  // A double negation cancels out, even if the inner one has no form.
  [[nodiscard]] FormId negation(const Location& place, ScopeId scope);
  [[nodiscard]] Location target(const Location& place, const char* keyword) const;
  // The target of a reference that the resources on the way may replace.
  [[nodiscard]] Location dynamic_target(const Location& place, ScopeId scope,
                                        const char* keyword) const;

  [[nodiscard]] Form read(std::uint32_t site) override;
  [[nodiscard]] Form read(const Location& place, ScopeId scope, Role role);

  [[nodiscard]] std::vector<FormId> branches(const Site& site, const char* keyword, Role role);

  [[nodiscard]] Form any_of(const std::vector<FormId>& ids);
  // \param others  the same branches, read as tests
  [[nodiscard]] Form one_of(const Form& outer, const std::vector<FormId>& ids,
                            const std::vector<FormId>& others);
  // The branches whose objects may have a text as the value of one key, which all require: those
  // without a common text need not be compared. nullopt if there is no such key.
  using BranchesByText = std::map<std::string, std::vector<std::size_t>>;
  [[nodiscard]] std::optional<BranchesByText> find_tag(const std::vector<FormId>& ids);
  [[nodiscard]] Form conditional(const Site& site, const Form& outer);
  // If a property is present, the object must conform to a schema, or have others.
  [[nodiscard]] Form dependent(const Site& site, Form all, const char* keyword);

  [[nodiscard]] ObjectForm with_keys(const ObjectForm::Evaluated& keys, FormId rest);
  void close_objects(const Site& site, Form& all);
  void name_keys(const Site& site, ObjectForm& form) const;
  // More alternatives of an object are not compared with each other when they are closed.
  static constexpr std::size_t max_compared = 32;
  // Removes objects that closing would remove, unless another schema names the keys they require;
  // whether there were some.
  bool keep_named(Form& form);
  [[nodiscard]] bool may_share(const ObjectForm& a, const ObjectForm& b);
  // The constant texts of required keys, as of a tag that tells variants apart.
  using Tags = std::map<std::string, std::vector<std::string>>;
  [[nodiscard]] Tags tags_of(const ObjectForm& form);
  [[nodiscard]] static bool differ_by_tag(const Tags& a, const Tags& b);
  void close_arrays(const Site& site, Form& all);

  // Applies the keywords without in-place subschemas.
  [[nodiscard]] Form own(const Site& site);
  [[nodiscard]] std::optional<StringForm> text(const Site& site);
  [[nodiscard]] ArrayForm array(const Site& site);

  [[nodiscard]] ObjectForm object(const Site& site);

  DocumentRules rules_;
  Document document_;
  std::vector<Scope> scopes_;
  std::map<std::tuple<const Json*, ScopeId, Role>, FormId> known_;
  std::array<std::optional<FormId>, 7> by_type_{};
  std::map<FormId, Form> closed_;
  Constants constants_{forms};
  std::deque<std::tuple<Location, ScopeId, Role>> sites_;
  std::size_t depth_ = 0;  // of nested negations
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/reader.ipp>
#endif
