#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode {

class SchemaCompiler::Parts {
 public:
  Parts(Grammar& grammar, const Json& root, SchemaOptions options)
      : grammar_(grammar),
        root_(root),
        options_(std::move(options)),
        first_(static_cast<std::uint32_t>(grammar.size())),
        reader_(root, std::move(options_.rules)),
        text_(grammar, options_.syntax, options_.whitespace, options_.every_spelling,
              std::move(options_.excluded)),
        values_(grammar, reader_, text_, options_.documented_order,
                options_.every_spelling ? options_.numbers.as_judged()
                                        : options_.numbers.as_written()) {}

  [[nodiscard]] NodeId value(const Json& schema, const std::string& pointer) {
    return built(pointer, "no value conforms to this schema", [&] {
      const schema::FormId form = reader_.form(schema, pointer);
      return &schema == &root_ ? values_.value(form, members(text_.colon(), false))
                               : values_.value(form);
    });
  }
  [[nodiscard]] NodeId keyword_arguments(const Json& schema, const std::string& pointer,
                                         std::optional<std::uint32_t> mark) {
    return built(pointer, "no arguments conform to this schema", [&] {
      const NodeId equals =
          grammar_.sequence({text_.space(), grammar_.literal("="), text_.space()});
      std::vector<NodeId> choices;
      for (const schema::ObjectForm& object :
           reader_.written(reader_.form(schema, pointer)).objects) {
        auto written       = members(equals, true);
        written.every_mark = mark;
        choices.push_back(values_.members(object, written));
      }
      return grammar_.choice(std::move(choices));
    });
  }
  [[nodiscard]] const schema::Reader& reader() const noexcept { return reader_; }
  [[nodiscard]] const schema::Spellings& text() const noexcept { return text_; }

 private:
  // Makes a node within the limits; throws if no text matches it.
  template <class Make>
  [[nodiscard]] NodeId built(const std::string& pointer, const char* otherwise, const Make& make) {
    const BuildBudget budget(options_.limits);
    try {
      const NodeId node = make();
      if (grammar_.is_satisfiable(node, first_)) return node;
    } catch (const Error& error) {
      throw error.under(pointer);
    }
    throw Error(Errc::unsatisfiable_schema, pointer, otherwise);
  }
  [[nodiscard]] schema::GrammarBuilder::Members members(NodeId assign, bool plain) const {
    return {.assign           = assign,
            .plain            = plain,
            .documented_order = options_.documented_order,
            .tags             = tags(),
            .leading_keys     = options_.leading_keys};
  }

  // Marks of the members that the root schema itself describes: its properties, then other required
  // names.
  [[nodiscard]] std::unordered_map<std::string, std::uint32_t> tags() const {
    std::unordered_map<std::string, std::uint32_t> all;
    if (!root_.is_object()) return all;
    const auto add = [&](const std::string& name) {
      all.try_emplace(name, argument_tag + static_cast<std::uint32_t>(all.size()));
    };
    const auto properties = root_.find("properties"), required = root_.find("required");
    if (properties != root_.end() && properties->is_object()) {
      for (const auto& property : properties->items()) add(property.first);
    }
    if (required != root_.end() && required->is_array()) {
      for (const Json& name : *required) {
        if (name.is_string()) add(name.string());
      }
    }
    return all;
  }

  Grammar& grammar_;
  const Json& root_;
  SchemaOptions options_;
  NodeId first_;
  schema::Reader reader_;
  schema::Spellings text_;
  schema::GrammarBuilder values_;
};

TOOLDECODE_INLINE SchemaCompiler::SchemaCompiler(Grammar& grammar, const Json& root,
                                                 SchemaOptions options)
    : parts_(std::make_unique<Parts>(grammar, root, std::move(options))) {}
TOOLDECODE_INLINE SchemaCompiler::~SchemaCompiler() = default;

TOOLDECODE_INLINE NodeId SchemaCompiler::value(const Json& schema, const std::string& pointer) {
  return parts_->value(schema, pointer);
}
TOOLDECODE_INLINE NodeId SchemaCompiler::keyword_arguments(const Json& schema,
                                                           const std::string& pointer,
                                                           std::optional<std::uint32_t> mark) {
  return parts_->keyword_arguments(schema, pointer, mark);
}

TOOLDECODE_INLINE NodeId SchemaCompiler::whitespace() const noexcept {
  return parts_->text().space();
}
TOOLDECODE_INLINE NodeId SchemaCompiler::comma() const noexcept {
  return parts_->text().comma();
}
TOOLDECODE_INLINE NodeId SchemaCompiler::colon() const noexcept {
  return parts_->text().colon();
}

TOOLDECODE_INLINE Grammar Grammar::json_schema(const JsonValue& schema) {
  return json_schema(schema, {});
}

TOOLDECODE_INLINE Grammar Grammar::json_schema(const JsonValue& schema,
                                               const SchemaOptions& options) {
  if (schema.is_string()) return json_schema(text::parse_exact_json(schema.string()), options);
  return build({options.limits, "#"}, [&] {
    Grammar grammar;
    grammar.root_ = SchemaCompiler(grammar, schema, options).value(schema, "#");
    return grammar;
  });
}

}  // namespace tooldecode
