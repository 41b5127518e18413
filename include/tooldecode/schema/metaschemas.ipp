#pragma once

#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/metaschemas.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::schema {

namespace detail {

// In pieces, since some compilers take no literal of more than 16 KB.
inline constexpr const char* metaschema_texts =
    R"([
{"$schema": "http://json-schema.org/draft-07/schema#", "$id":
"http://json-schema.org/draft-07/schema#", "definitions": {"schemaArray": {"type": "array",
"minItems": 1, "items": {"$ref": "#"}}, "nonNegativeInteger": {"type": "integer", "minimum": 0},
"nonNegativeIntegerDefault0": {"allOf": [{"$ref": "#/definitions/nonNegativeInteger"}, {}]},
"simpleTypes": {"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]},
"stringArray": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}}, "type": [
"object", "boolean"], "properties": {"$id": {"type": "string", "format": "uri-reference"},
"$schema": {"type": "string", "format": "uri"}, "$ref": {"type": "string", "format":
"uri-reference"}, "$comment": {"type": "string"}, "title": {"type": "string"}, "description": {
"type": "string"}, "default": true, "readOnly": {"type": "boolean"}, "writeOnly": {"type":
"boolean"}, "examples": {"type": "array", "items": true}, "multipleOf": {"type": "number",
"exclusiveMinimum": 0}, "maximum": {"type":
"number"}, "exclusiveMaximum": {"type": "number"}, "minimum": {"type": "number"},
"exclusiveMinimum": {"type": "number"}, "maxLength": {"$ref": "#/definitions/nonNegativeInteger"},
"minLength": {"$ref": "#/definitions/nonNegativeIntegerDefault0"}, "pattern": {"type": "string",
"format": "regex"}, "additionalItems": {"$ref": "#"}, "items": {"anyOf": [{"$ref": "#"}, {"$ref":
"#/definitions/schemaArray"}]}, "maxItems": {"$ref": "#/definitions/nonNegativeInteger"},
"minItems": {"$ref": "#/definitions/nonNegativeIntegerDefault0"}, "uniqueItems": {"type":
"boolean"}, "contains": {"$ref": "#"}, "maxProperties": {"$ref":
"#/definitions/nonNegativeInteger"}, "minProperties": {"$ref":
"#/definitions/nonNegativeIntegerDefault0"}, "required": {"$ref": "#/definitions/stringArray"},
"additionalProperties": {"$ref": "#"}, "definitions": {"type": "object", "additionalProperties": {
"$ref": "#"}}, "properties": {"type": "object", "additionalProperties": {"$ref": "#"}},
"patternProperties": {"type": "object", "additionalProperties": {"$ref": "#"}, "propertyNames": {
"format": "regex"}}, "dependencies": {"type": "object", "additionalProperties": {"anyOf": [{
"$ref": "#"}, {"$ref": "#/definitions/stringArray"}]}}, "propertyNames": {"$ref": "#"}, "const":
true, "enum": {"type": "array", "items": true}, "type": {"anyOf": [{"$ref":
"#/definitions/simpleTypes"}, {"type": "array", "items": {"$ref": "#/definitions/simpleTypes"},
"minItems": 1, "uniqueItems": true}]}, "format": {"type": "string"}, "contentMediaType": {"type":
"string"}, "contentEncoding": {"type": "string"}, "if": {"$ref": "#"}, "then": {"$ref": "#"},
"else": {"$ref": "#"}, "allOf": {"$ref": "#/definitions/schemaArray"}, "anyOf": {"$ref":
"#/definitions/schemaArray"}, "oneOf": {"$ref": "#/definitions/schemaArray"}, "not": {"$ref": "#"}
}},
)"
    R"({"$schema": "https://json-schema.org/draft/2019-09/schema", "$id":
"https://json-schema.org/draft/2019-09/meta/applicator", "$vocabulary": {
"https://json-schema.org/draft/2019-09/vocab/applicator": true}, "$recursiveAnchor": true, "type":
["object", "boolean"], "properties": {"additionalItems": {"$recursiveRef": "#"},
"unevaluatedItems": {"$recursiveRef": "#"}, "items": {"anyOf": [{"$recursiveRef": "#"}, {"$ref":
"#/$defs/schemaArray"}]}, "contains": {"$recursiveRef": "#"}, "additionalProperties": {
"$recursiveRef": "#"}, "unevaluatedProperties": {"$recursiveRef": "#"}, "properties": {"type":
"object", "additionalProperties": {"$recursiveRef": "#"}}, "patternProperties": {"type": "object",
"additionalProperties": {"$recursiveRef": "#"}, "propertyNames": {"format": "regex"}},
"dependentSchemas": {"type": "object", "additionalProperties": {"$recursiveRef": "#"}},
"propertyNames": {"$recursiveRef": "#"}, "if": {"$recursiveRef": "#"}, "then": {"$recursiveRef":
"#"}, "else": {"$recursiveRef": "#"}, "allOf": {"$ref": "#/$defs/schemaArray"}, "anyOf": {"$ref":
"#/$defs/schemaArray"}, "oneOf": {"$ref": "#/$defs/schemaArray"}, "not": {"$recursiveRef": "#"}},
"$defs": {"schemaArray": {"type": "array", "minItems": 1, "items": {"$recursiveRef": "#"}}}},
{"$schema": "https://json-schema.org/draft/2019-09/schema", "$id":
"https://json-schema.org/draft/2019-09/meta/content", "$vocabulary": {
"https://json-schema.org/draft/2019-09/vocab/content": true}, "$recursiveAnchor": true, "type": [
"object", "boolean"], "properties": {"contentMediaType": {"type": "string"}, "contentEncoding": {
"type": "string"}, "contentSchema": {"$recursiveRef": "#"}}},
{"$schema": "https://json-schema.org/draft/2019-09/schema", "$id":
"https://json-schema.org/draft/2019-09/meta/core", "$vocabulary": {
"https://json-schema.org/draft/2019-09/vocab/core": true}, "$recursiveAnchor": true, "type": [
"object", "boolean"], "properties": {"$id": {"type": "string", "format": "uri-reference",
"pattern": "^[^#]*#?$"}, "$schema": {"type": "string", "format": "uri"}, "$anchor": {"type":
"string", "pattern": "^[A-Za-z][-A-Za-z0-9.:_]*$"}, "$ref": {"type": "string", "format":
"uri-reference"}, "$recursiveRef": {"type": "string", "format": "uri-reference"},
"$recursiveAnchor": {"type": "boolean"}, "$vocabulary": {"type": "object", "propertyNames": {
"type": "string", "format": "uri"}, "additionalProperties": {"type": "boolean"}}, "$comment": {
"type": "string"}, "$defs": {"type": "object", "additionalProperties": {"$recursiveRef": "#"}}}},
{"$schema": "https://json-schema.org/draft/2019-09/schema", "$id":
"https://json-schema.org/draft/2019-09/meta/format", "$vocabulary": {
"https://json-schema.org/draft/2019-09/vocab/format": true}, "$recursiveAnchor": true, "type": [
"object", "boolean"], "properties": {"format": {"type": "string"}}},
{"$schema": "https://json-schema.org/draft/2019-09/schema", "$id":
"https://json-schema.org/draft/2019-09/meta/meta-data", "$vocabulary": {
"https://json-schema.org/draft/2019-09/vocab/meta-data": true}, "$recursiveAnchor": true, "type":
["object", "boolean"], "properties": {"title": {"type": "string"}, "description": {"type":
"string"}, "default": true, "deprecated": {"type": "boolean"}, "readOnly": {"type": "boolean"},
"writeOnly": {"type": "boolean"}, "examples": {"type": "array", "items": true}}},
{"$schema": "https://json-schema.org/draft/2019-09/schema", "$id":
"https://json-schema.org/draft/2019-09/meta/validation", "$vocabulary": {
"https://json-schema.org/draft/2019-09/vocab/validation": true}, "$recursiveAnchor": true, "type":
["object", "boolean"], "properties": {"multipleOf": {"type": "number", "exclusiveMinimum": 0},
"maximum": {"type": "number"}, "exclusiveMaximum": {"type": "number"}, "minimum": {"type":
"number"}, "exclusiveMinimum": {"type": "number"}, "maxLength": {"$ref":
"#/$defs/nonNegativeInteger"}, "minLength": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
"pattern": {"type": "string", "format": "regex"}, "maxItems": {"$ref":
"#/$defs/nonNegativeInteger"}, "minItems": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
"uniqueItems": {"type": "boolean"}, "maxContains": {"$ref": "#/$defs/nonNegativeInteger"},
"minContains": {"$ref": "#/$defs/nonNegativeInteger"}, "maxProperties": {"$ref":
"#/$defs/nonNegativeInteger"}, "minProperties": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
"required": {"$ref": "#/$defs/stringArray"}, "dependentRequired": {"type": "object",
"additionalProperties": {"$ref": "#/$defs/stringArray"}}, "const": true, "enum": {"type": "array",
"items": true}, "type": {"anyOf": [{"$ref": "#/$defs/simpleTypes"}, {"type": "array", "items": {
"$ref": "#/$defs/simpleTypes"}, "minItems": 1, "uniqueItems": true}]}}, "$defs": {
"nonNegativeInteger": {"type": "integer", "minimum": 0}, "nonNegativeIntegerDefault0": {"$ref":
"#/$defs/nonNegativeInteger"}, "simpleTypes": {"enum": ["array", "boolean", "integer", "null",
"number", "object", "string"]}, "stringArray": {"type": "array", "items": {"type": "string"},
"uniqueItems": true}}},
{"$schema": "https://json-schema.org/draft/2019-09/schema", "$id":
"https://json-schema.org/draft/2019-09/schema", "$vocabulary": {
"https://json-schema.org/draft/2019-09/vocab/core": true,
"https://json-schema.org/draft/2019-09/vocab/applicator": true,
"https://json-schema.org/draft/2019-09/vocab/validation": true,
"https://json-schema.org/draft/2019-09/vocab/meta-data": true,
"https://json-schema.org/draft/2019-09/vocab/format": false,
"https://json-schema.org/draft/2019-09/vocab/content": true}, "$recursiveAnchor": true, "allOf": [
{"$ref": "meta/core"}, {"$ref": "meta/applicator"}, {"$ref": "meta/validation"}, {"$ref":
"meta/meta-data"}, {"$ref": "meta/format"}, {"$ref": "meta/content"}], "type": ["object",
"boolean"], "properties": {"definitions": {"type": "object", "additionalProperties": {
"$recursiveRef": "#"}}, "dependencies": {"type": "object", "additionalProperties": {"anyOf": [{
"$recursiveRef": "#"}, {"$ref": "meta/validation#/$defs/stringArray"}]}}}},
)"
    R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/applicator", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/applicator": true}, "$dynamicAnchor": "meta", "type":
["object", "boolean"], "properties": {"prefixItems": {"$ref": "#/$defs/schemaArray"}, "items": {
"$dynamicRef": "#meta"}, "contains": {"$dynamicRef": "#meta"}, "additionalProperties": {
"$dynamicRef": "#meta"}, "properties": {"type": "object", "additionalProperties": {"$dynamicRef":
"#meta"}}, "patternProperties": {"type": "object", "additionalProperties": {"$dynamicRef": "#meta"
}, "propertyNames": {"format": "regex"}}, "dependentSchemas": {"type": "object",
"additionalProperties": {"$dynamicRef": "#meta"}}, "propertyNames": {"$dynamicRef": "#meta"},
"if": {"$dynamicRef": "#meta"}, "then": {"$dynamicRef": "#meta"}, "else": {"$dynamicRef": "#meta"},
"allOf": {"$ref": "#/$defs/schemaArray"}, "anyOf": {"$ref": "#/$defs/schemaArray"}, "oneOf": {
"$ref": "#/$defs/schemaArray"}, "not": {"$dynamicRef": "#meta"}}, "$defs": {"schemaArray": {
"type": "array", "minItems": 1, "items": {"$dynamicRef": "#meta"}}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/content", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/content": true}, "$dynamicAnchor": "meta", "type": [
"object", "boolean"], "properties": {"contentEncoding": {"type": "string"}, "contentMediaType": {
"type": "string"}, "contentSchema": {"$dynamicRef": "#meta"}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/core", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/core": true}, "$dynamicAnchor": "meta", "type": [
"object", "boolean"], "properties": {"$id": {"$ref": "#/$defs/uriReferenceString", "pattern":
"^[^#]*#?$"}, "$schema": {"$ref": "#/$defs/uriString"}, "$ref": {"$ref":
"#/$defs/uriReferenceString"}, "$anchor": {"$ref": "#/$defs/anchorString"}, "$dynamicRef": {
"$ref": "#/$defs/uriReferenceString"}, "$dynamicAnchor": {"$ref": "#/$defs/anchorString"},
"$vocabulary": {"type": "object", "propertyNames": {"$ref": "#/$defs/uriString"},
"additionalProperties": {"type": "boolean"}}, "$comment": {"type": "string"}, "$defs": {"type":
"object", "additionalProperties": {"$dynamicRef": "#meta"}}}, "$defs": {"anchorString": {"type":
"string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$"}, "uriString": {"type": "string", "format":
"uri"}, "uriReferenceString": {"type": "string", "format": "uri-reference"}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/format-annotation", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/format-annotation": true}, "$dynamicAnchor": "meta",
"type": ["object", "boolean"], "properties": {"format": {"type": "string"}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/format-assertion", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/format-assertion": true}, "$dynamicAnchor": "meta",
"type": ["object", "boolean"], "properties": {"format": {"type": "string"}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/meta-data", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/meta-data": true}, "$dynamicAnchor": "meta", "type":
["object", "boolean"], "properties": {"title": {"type": "string"}, "description": {"type":
"string"}, "default": true, "deprecated": {"type": "boolean"}, "readOnly": {"type": "boolean"},
"writeOnly": {"type": "boolean"}, "examples": {"type": "array", "items": true}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/unevaluated", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/unevaluated": true}, "$dynamicAnchor": "meta",
"type": ["object", "boolean"], "properties": {"unevaluatedItems": {"$dynamicRef": "#meta"},
"unevaluatedProperties": {"$dynamicRef": "#meta"}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/meta/validation", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/validation": true}, "$dynamicAnchor": "meta", "type":
["object", "boolean"], "properties": {"type": {"anyOf": [{"$ref": "#/$defs/simpleTypes"}, {"type":
"array", "items": {"$ref": "#/$defs/simpleTypes"}, "minItems": 1, "uniqueItems": true}]}, "const":
true, "enum": {"type": "array", "items": true}, "multipleOf": {"type": "number",
"exclusiveMinimum": 0}, "maximum": {"type": "number"}, "exclusiveMaximum": {"type": "number"},
"minimum": {"type": "number"}, "exclusiveMinimum": {"type": "number"}, "maxLength": {"$ref":
"#/$defs/nonNegativeInteger"}, "minLength": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
"pattern": {"type": "string", "format": "regex"}, "maxItems": {"$ref":
"#/$defs/nonNegativeInteger"}, "minItems": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
"uniqueItems": {"type": "boolean"}, "maxContains": {"$ref": "#/$defs/nonNegativeInteger"},
"minContains": {"$ref": "#/$defs/nonNegativeInteger"}, "maxProperties": {"$ref":
"#/$defs/nonNegativeInteger"}, "minProperties": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
"required": {"$ref": "#/$defs/stringArray"}, "dependentRequired": {"type": "object",
"additionalProperties": {"$ref": "#/$defs/stringArray"}}}, "$defs": {"nonNegativeInteger": {
"type": "integer", "minimum": 0}, "nonNegativeIntegerDefault0": {"$ref":
"#/$defs/nonNegativeInteger"}, "simpleTypes": {"enum": ["array", "boolean", "integer", "null",
"number", "object", "string"]}, "stringArray": {"type": "array", "items": {"type": "string"},
"uniqueItems": true}}},
{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id":
"https://json-schema.org/draft/2020-12/schema", "$vocabulary": {
"https://json-schema.org/draft/2020-12/vocab/core": true,
"https://json-schema.org/draft/2020-12/vocab/applicator": true,
"https://json-schema.org/draft/2020-12/vocab/unevaluated": true,
"https://json-schema.org/draft/2020-12/vocab/validation": true,
"https://json-schema.org/draft/2020-12/vocab/meta-data": true,
"https://json-schema.org/draft/2020-12/vocab/format-annotation": true,
"https://json-schema.org/draft/2020-12/vocab/content": true}, "$dynamicAnchor": "meta", "allOf": [
{"$ref": "meta/core"}, {"$ref": "meta/applicator"}, {"$ref": "meta/unevaluated"}, {"$ref":
"meta/validation"}, {"$ref": "meta/meta-data"}, {"$ref": "meta/format-annotation"}, {"$ref":
"meta/content"}], "type": ["object", "boolean"], "properties": {"definitions": {"type": "object",
"additionalProperties": {"$dynamicRef": "#meta"}}, "dependencies": {"type": "object",
"additionalProperties": {"anyOf": [{"$dynamicRef": "#meta"}, {"$ref":
"meta/validation#/$defs/stringArray"}]}}, "$recursiveAnchor": {"$ref":
"meta/core#/$defs/anchorString"}, "$recursiveRef": {"$ref": "meta/core#/$defs/uriReferenceString"}
}}
])";

}  // namespace detail

TOOLDECODE_INLINE const std::map<std::string, JsonValue>& metaschemas() {
  static const std::map<std::string, JsonValue> known = [] {
    const BuildBudget::Pause once;
    std::map<std::string, JsonValue> all;
    for (JsonValue& one : text::parse_json(detail::metaschema_texts)) {
      const std::string uri = one["$id"].string();
      all.emplace(uri.substr(0, uri.find('#')), std::move(one));
    }
    return all;
  }();
  return known;
}

}  // namespace tooldecode::schema
