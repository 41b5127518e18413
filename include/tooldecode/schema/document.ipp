#pragma once

#include <algorithm>
#include <array>

#include <tooldecode/schema/document.hpp>
#include <tooldecode/schema/metaschemas.hpp>
#include <tooldecode/text/json_pointer.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE std::string resolve_uri(std::string_view base, std::string_view reference) {
  const auto scheme_end = [](std::string_view uri) {
    const std::size_t colon = uri.find_first_of(":/?#");
    return colon == std::string_view::npos || uri[colon] != ':' || colon == 0 ? std::size_t{0}
                                                                              : colon + 1;
  };
  const auto path_begin = [&](std::string_view uri) {
    const std::size_t after = scheme_end(uri);
    if (uri.substr(after, 2) != "//") return after;
    return std::min(uri.find_first_of("/?", after + 2), uri.size());
  };
  const auto without_dots = [](std::string_view path) {
    std::vector<std::string_view> kept;
    const bool absolute = path.starts_with('/');
    if (absolute) path.remove_prefix(1);
    for (bool more = true; more;) {
      const std::size_t slash     = path.find('/');
      more                        = slash != std::string_view::npos;
      const std::string_view part = path.substr(0, slash);
      if (part == "..") {
        if (!kept.empty()) kept.pop_back();
      } else if (part != ".") {
        kept.push_back(part);
      }
      if (!more && (part == "." || part == "..")) kept.push_back("");
      if (more) path.remove_prefix(slash + 1);
    }
    std::string result = absolute ? "/" : "";
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (i > 0) result += '/';
      result += kept[i];
    }
    return result;
  };
  base = base.substr(0, base.find('#'));
  if (reference.empty()) return std::string(base);
  if (scheme_end(reference) != 0) {
    const std::size_t begin = path_begin(reference);
    if (reference.substr(scheme_end(reference), 2) != "//") return std::string(reference);
    return std::string(reference.substr(0, begin)) + without_dots(reference.substr(begin));
  }
  if (reference.starts_with("//")) {
    return std::string(base.substr(0, scheme_end(base))) + std::string(reference);
  }
  const std::size_t begin = path_begin(base);
  const std::string root(base.substr(0, begin));
  const std::string_view path  = base.substr(begin, base.find('?', begin) - begin);
  const std::size_t query      = std::min(reference.find('?'), reference.size());
  const std::string_view given = reference.substr(0, query);
  const std::string_view asked = reference.substr(query);
  if (given.empty()) return root + std::string(path) + std::string(asked);
  if (given.starts_with('/')) return root + without_dots(given) + std::string(asked);
  std::string merged(path.substr(0, path.rfind('/') + 1));
  if (merged.empty() && begin > scheme_end(base)) merged = "/";
  return root + without_dots(merged + std::string(given)) + std::string(asked);
}

TOOLDECODE_INLINE Document::Document(const Json& root, SchemaDraft draft,
                                     const std::map<std::string, JsonValue>& remotes,
                                     const std::string& place)
    : remotes_(&remotes) {
  add(root, "", place, draft, true);
  for (const auto& [uri, document] : remotes) add(document, uri, uri + '#', draft, true);
  // A metaschema may refer to others.
  while (!metaschemas_.empty()) {
    const std::string uri = std::move(metaschemas_.back());
    metaschemas_.pop_back();
    if (!by_uri_.contains(uri)) add(metaschemas().at(uri), uri, uri + '#', draft, true);
  }
}

TOOLDECODE_INLINE Document::ResourceId Document::resource_of(const Json& schema,
                                                             ResourceId around) const {
  const auto at = by_root_.find(&schema);
  return at == by_root_.end() ? around : at->second;
}

TOOLDECODE_INLINE Document::Location Document::find(std::string_view reference, ResourceId from,
                                                    const std::string& pointer) const {
  const std::size_t hash = std::min(reference.find('#'), reference.size());
  const std::string uri  = resolve_uri(resources_[from.index()].uri, reference.substr(0, hash));
  const std::string fragment =
      unescape_uri(hash < reference.size() ? reference.substr(hash + 1) : std::string_view());
  ResourceId id = from;
  if (hash != 0 && uri != resources_[from.index()].uri) {
    const auto at = by_uri_.find(uri);
    if (at == by_uri_.end()) {
      throw Error(Errc::unsupported_keyword, pointer,
                  "the reference \"" + std::string(reference) + "\" leaves the document");
    }
    id = at->second;
  }
  const Resource& resource = resources_[id.index()];
  if (fragment.empty()) return {resource.root, resource.pointer, id};
  if (fragment[0] == '/') return at_pointer(fragment, id, reference, pointer);
  const auto anchor = resource.anchors.find(fragment);
  if (anchor == resource.anchors.end()) missing(reference, pointer);
  return {anchor->second, resource.pointers.at(anchor->second), id};
}

TOOLDECODE_INLINE void Document::missing(std::string_view reference, const std::string& pointer) {
  throw Error(Errc::malformed_schema, pointer, "nothing is at \"" + std::string(reference) + '"');
}

TOOLDECODE_INLINE Document::Location Document::at_pointer(std::string_view path, ResourceId id,
                                                          std::string_view reference,
                                                          const std::string& pointer) const {
  Location place{resources_[id.index()].root, resources_[id.index()].pointer, id};
  const auto keys = text::pointer_keys(path);
  if (!keys) missing(reference, pointer);
  for (const std::string& key : *keys) {
    const Json* next = nullptr;
    if (place.schema->is_object()) {
      next = find_member(*place.schema, key);
    } else if (place.schema->is_array()) {
      const auto index = text::item_index(key, place.schema->size());
      if (index) next = &(*place.schema)[*index];
    }
    if (next == nullptr) missing(reference, pointer);
    place.schema   = next;
    place.pointer  = text::extend_pointer(std::move(place.pointer), key);
    place.resource = resource_of(*next, place.resource);
  }
  return place;
}

TOOLDECODE_INLINE const Document::Json* Document::find_member(const Json& object,
                                                              const std::string& name) const {
  if (object.size() <= 16) {
    const auto at = object.find(name);
    return at == object.end() ? nullptr : &*at;
  }
  auto& members = members_[&object];
  if (members.empty()) {
    BuildBudget::spend(20 * object.size(), 32 * object.size());
    members.reserve(object.size());
    for (const auto& [key, member] : object.items()) members.emplace_back(key, &member);
    std::sort(members.begin(), members.end());
  }
  const auto at = std::lower_bound(members.begin(), members.end(),
                                   std::pair<std::string_view, const Json*>{name, nullptr});
  return at == members.end() || at->first != name ? nullptr : at->second;
}

TOOLDECODE_INLINE Document::ResourceId Document::next_id() const noexcept {
  return ResourceId(static_cast<std::uint32_t>(resources_.size()));
}

TOOLDECODE_INLINE Document::ResourceId Document::add(const Json& root, const std::string& uri,
                                                     std::string pointer, SchemaDraft draft,
                                                     bool asserts_format) {
  const auto id = next_id();
  resources_.push_back({&root, uri, std::move(pointer), draft, asserts_format});
  by_root_.emplace(&root, id);
  by_uri_.emplace(uri, id);
  walk(root, id, resources_[id.index()].pointer, 0);
  return id;
}

TOOLDECODE_INLINE std::optional<std::string> Document::text_at(const Json& schema,
                                                               const char* keyword) {
  const auto at = schema.find(keyword);
  if (at == schema.end() || !at->is_string()) return std::nullopt;
  return at->get<std::string>();
}

TOOLDECODE_INLINE bool Document::is_unnamed_leaf(const Json& schema) {
  return std::ranges::none_of(schema.items(), [](const auto& member) {
    const std::string_view name = member.first;
    return member.second.is_structured() || name.starts_with('$') || name == "id" ||
           name.starts_with("unevaluated");
  });
}

TOOLDECODE_INLINE void Document::walk(const Json& schema, ResourceId id, const std::string& pointer,
                                      std::uint32_t depth) {
  if (!schema.is_object()) return;
  if (depth > max_nested) throw Error(Errc::limit_exceeded, pointer, "schemas nest too deeply");
  BuildBudget::spend(5 + 2 * schema.size() + pointer.size() / 16);
  const bool is_root = resources_[id.index()].root == &schema;
  if (is_root) read_dialect(schema, id);
  read_names(schema, id, pointer, is_root);
  id = resource_of(schema, id);
  for (const auto& item : schema.items()) {
    const std::string_view name = item.first;
    const Json& content         = item.second;
    if ((name == "$ref" || name == "$dynamicRef") && content.is_string()) {
      note_metaschema(content.string(), id);
    }
    if (!content.is_structured()) continue;
    const auto keyword = find_keyword(name);
    if (!keyword) continue;
    const auto at      = [&] { return (pointer + '/').append(name); };
    const bool is_list = content.is_array();
    if (keyword->shape == KeywordShape::list || keyword->shape == KeywordShape::either) {
      for (std::size_t i = 0; is_list && i < content.size(); ++i) {
        walk(content[i], id, text::extend_pointer(at(), std::to_string(i)), depth + 1);
      }
    }
    if (keyword->shape == KeywordShape::schema || keyword->shape == KeywordShape::either) {
      if (!is_list) walk(content, id, at(), depth + 1);
    }
    if (keyword->shape == KeywordShape::map && content.is_object()) {
      for (const auto& [key, child] : content.items()) {
        if (is_unnamed_leaf(child)) {  // as most members are
          BuildBudget::spend(5 + 2 * child.size());
        } else {
          walk(child, id, text::extend_pointer(at(), key), depth + 1);
        }
      }
    }
  }
  if (schema.contains("unevaluatedProperties") || schema.contains("unevaluatedItems")) {
    has_unevaluated_ = true;
  }
}

TOOLDECODE_INLINE void Document::note_metaschema(std::string_view reference, ResourceId id) {
  const std::string_view path = reference.substr(0, reference.find('#'));
  if (path.empty()) return;
  std::string uri = resolve_uri(resources_[id.index()].uri, path);
  if (uri.find("//json-schema.org/") != uri.npos && metaschemas().contains(uri)) {
    metaschemas_.push_back(std::move(uri));
  }
}

TOOLDECODE_INLINE void Document::read_dialect(const Json& schema, ResourceId id) {
  const auto dialect = text_at(schema, "$schema");
  if (!dialect) return;
  Resource& resource = resources_[id.index()];
  resource.without.clear();
  const auto draft = find_draft(*dialect);
  if (!draft) return read_vocabularies(*dialect, resource);
  resource.draft          = *draft;
  resource.asserts_format = *draft < SchemaDraft::draft2019;
}

TOOLDECODE_INLINE void Document::read_vocabularies(const std::string& dialect,
                                                   Resource& resource) const {
  const auto refuse = [&](const std::string& what) {
    throw Error(Errc::unsupported_keyword, resource.pointer + "/$schema", what);
  };
  auto at = remotes_->find(dialect);
  if (at == remotes_->end()) at = remotes_->find(dialect.substr(0, dialect.find('#')));
  const auto base = at != remotes_->end() && at->second.is_object() ? text_at(at->second, "$schema")
                                                                    : std::nullopt;
  const auto draft = base ? find_draft(*base) : std::nullopt;
  if (!draft) refuse("the dialect \"" + dialect + "\" is not known");
  resource.draft          = *draft;
  resource.asserts_format = *draft < SchemaDraft::draft2019;
  const auto listed       = at->second.find("$vocabulary");
  if (*draft < SchemaDraft::draft2019 || listed == at->second.end()) return;
  if (!listed->is_object()) refuse("the vocabularies of \"" + dialect + "\" are no object");
  static constexpr std::array<std::string_view, 9> known{
      "applicator", "validation",        "unevaluated",      "core",  "meta-data",
      "content",    "format-annotation", "format-assertion", "format"};
  const std::string place = *draft == SchemaDraft::draft2019
                                ? "https://json-schema.org/draft/2019-09/vocab/"
                                : "https://json-schema.org/draft/2020-12/vocab/";
  std::array<bool, known.size()> has{};
  for (const auto& [uri, required] : listed->items()) {
    const auto* const name = uri.starts_with(place)
                                 ? std::find(known.begin(), known.end(), uri.substr(place.size()))
                                 : known.end();
    if (name == known.end()) {
      if (required == true) refuse("the vocabulary \"" + uri + "\" is not known");
      continue;
    }
    has[static_cast<std::size_t>(name - known.begin())] = true;
    resource.asserts_format |=
        *name == "format-assertion" || (*name == "format" && required == true);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!has[i]) resource.without.push_back(known[i]);
  }
}

TOOLDECODE_INLINE void Document::read_names(const Json& schema, ResourceId id,
                                            const std::string& pointer, bool is_root) {
  const SchemaDraft draft = resources_[id.index()].draft;
  // Up to draft 7 the siblings of a reference are ignored.
  if (draft <= SchemaDraft::draft7 && schema.contains("$ref")) return;
  auto name = text_at(schema, "$id");
  if (!name && draft <= SchemaDraft::draft4) name = text_at(schema, "id");
  if (name) {
    const std::size_t hash     = std::min(name->find('#'), name->size());
    const std::string fragment = hash < name->size() ? name->substr(hash + 1) : "";
    const std::string uri      = resolve_uri(resources_[id.index()].uri, name->substr(0, hash));
    if (hash != 0 && is_root) {
      by_uri_.emplace(uri, id);
      resources_[id.index()].uri = uri;
    } else if (hash != 0) {
      BuildBudget::spend(100, 1000 + pointer.size() + 2 * uri.size());
      const auto own        = next_id();
      const Resource& outer = resources_[id.index()];
      resources_.push_back({&schema, uri, pointer, draft, outer.asserts_format, outer.without});
      by_root_.emplace(&schema, own);
      by_uri_.emplace(uri, own);
      id = own;
      read_dialect(schema, id);
    }
    if (!fragment.empty() && draft <= SchemaDraft::draft7)
      add_anchor(fragment, schema, id, pointer);
  }
  if (resources_[id.index()].draft < SchemaDraft::draft2019) return;
  if (const auto anchor = text_at(schema, "$anchor")) add_anchor(*anchor, schema, id, pointer);
  if (const auto anchor = text_at(schema, "$dynamicAnchor")) {
    add_anchor(*anchor, schema, id, pointer);
    resources_[id.index()].dynamic.emplace(*anchor, &schema);
    has_dynamic_ = true;
  }
  const auto recursive = schema.find("$recursiveAnchor");
  if (recursive != schema.end() && *recursive == true) {
    resources_[id.index()].is_recursive = has_dynamic_ = true;
  }
}

TOOLDECODE_INLINE void Document::add_anchor(const std::string& name, const Json& schema,
                                            ResourceId id, const std::string& pointer) {
  BuildBudget::spend(20, 200 + pointer.size());
  resources_[id.index()].anchors.emplace(name, &schema);
  resources_[id.index()].pointers.emplace(&schema, pointer);
}

}  // namespace tooldecode::schema
