/// \file
/// Document: the resources of a schema document, and the targets of its references.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/schema/document_rules.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::schema {

/// Resolves a reference against a base URI (RFC 3986, section 5); drops fragments.
[[nodiscard]] std::string resolve_uri(std::string_view base, std::string_view reference);

/// A schema document and the documents that it may refer to, `metaschemas` included: each embedded
/// resource with its base URI, draft and anchors.
///
/// \par Complexity  construction O(size of the documents); `find` O(length of the reference), plus
///                  once the size of each object on its path
/// \par Threads     one at a time; refers to the documents
/// \par Errors      Error{malformed_schema, unsupported_keyword} with the JSON pointer
/// \par Source      JSON Schema 2020-12, Core, sections 8 and 9; RFC 3986; RFC 6901
class Document {
 public:
  using Json = JsonValue;

  struct Resource;
  using ResourceId = core::Id<Resource>;
  /// A part of a document with its own URI.
  struct Resource {
    const Json* root;
    std::string uri;  ///< absolute, or as written; without a fragment
    std::string pointer;
    SchemaDraft draft;
    bool asserts_format;  ///< drafts before 2019-09 may assert `format`; later ones only annotate
    std::vector<std::string_view> without{};  ///< vocabularies that its metaschema leaves out
    bool is_recursive = false;                ///< has `$recursiveAnchor`
    std::unordered_map<std::string, const Json*> anchors{};   ///< including dynamic ones
    std::unordered_map<std::string, const Json*> dynamic{};   ///< `$dynamicAnchor`
    std::unordered_map<const Json*, std::string> pointers{};  ///< of the anchored schemas
  };
  struct Location {
    const Json* schema;
    std::string pointer;
    ResourceId resource;
  };

  /// \param draft    of a document without `$schema`
  /// \param remotes  more documents, by URI
  /// \param place    of the root, in the pointers of errors
  explicit Document(const Json& root, SchemaDraft draft = SchemaDraft::draft2020,
                    const std::map<std::string, JsonValue>& remotes = {},
                    const std::string& place                        = "#");

  [[nodiscard]] const Resource& operator[](ResourceId id) const { return resources_[id.index()]; }
  /// Whether a keyword depends on what other keywords have evaluated.
  [[nodiscard]] bool has_unevaluated() const noexcept { return has_unevaluated_; }
  /// Whether a reference depends on the resources that led to it.
  [[nodiscard]] bool has_dynamic() const noexcept { return has_dynamic_; }

  /// The resource whose root is `schema`; `around` if there is none.
  [[nodiscard]] ResourceId resource_of(const Json& schema, ResourceId around) const;

  /// The schema that a reference names.
  ///
  /// \param from     the resource of the reference
  /// \param pointer  of the keyword, for errors
  [[nodiscard]] Location find(std::string_view reference, ResourceId from,
                              const std::string& pointer) const;

 private:
  static constexpr std::uint32_t max_nested = 1000;

  [[noreturn]] static void missing(std::string_view reference, const std::string& pointer);

  [[nodiscard]] Location at_pointer(std::string_view path, ResourceId id,
                                    std::string_view reference, const std::string& pointer) const;

  // Sorts the members of a large object on the first call.
  [[nodiscard]] const Json* find_member(const Json& object, const std::string& name) const;

  [[nodiscard]] ResourceId next_id() const noexcept;
  ResourceId add(const Json& root, const std::string& uri, std::string pointer, SchemaDraft draft,
                 bool asserts_format);

  static std::optional<std::string> text_at(const Json& schema, const char* keyword);

  // Whether a schema has neither a name nor another schema in it.
  [[nodiscard]] static bool is_unnamed_leaf(const Json& schema);
  // Finds the resources and anchors in a schema and below it; `id` is the enclosing resource.
  void walk(const Json& schema, ResourceId id, const std::string& pointer, std::uint32_t depth);

  // Reads `$schema`, which only the root of a resource may have.
  void read_dialect(const Json& schema, ResourceId id);
  // Reads the vocabularies of the caller's metaschema.
  void read_vocabularies(const std::string& dialect, Resource& resource) const;

  void read_names(const Json& schema, ResourceId id, const std::string& pointer, bool is_root);
  // Keeps the URI of a metaschema that a reference names.
  void note_metaschema(std::string_view reference, ResourceId id);
  void add_anchor(const std::string& name, const Json& schema, ResourceId id,
                  const std::string& pointer);

  const std::map<std::string, JsonValue>* remotes_;  // valid in the constructor only
  std::deque<Resource> resources_;
  std::map<const Json*, ResourceId> by_root_;
  std::map<std::string, ResourceId> by_uri_;
  // Of the objects on the paths of references.
  mutable std::unordered_map<const Json*, std::vector<std::pair<std::string_view, const Json*>>>
      members_;
  std::vector<std::string> metaschemas_;  // that references name
  bool has_unevaluated_ = false, has_dynamic_ = false;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/document.ipp>
#endif
