#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/call_key.hpp>

#include "handles.hpp"
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

namespace tooldecode::python {
namespace {

using namespace nb::literals;

std::string text_of(nb::handle text) {
  std::string bytes;
  if (nb::isinstance<nb::str>(text) && nb::try_cast(text, bytes)) return bytes;
  throw Error(Errc::malformed_call, "", "a key or a text is no Unicode");
}

JsonValue number_of(nb::handle number) {
  if (PyFloat_Check(number.ptr())) {
    const double value = nb::cast<double>(number);
    if (std::isfinite(value)) return value;
    throw Error(Errc::malformed_call, "", "a number that is not finite cannot be written");
  }
  const auto written = nb::steal<nb::str>(PyNumber_ToBase(number.ptr(), 10));
  if (!written.is_valid()) {  // CPython limits the digits that it converts
    PyErr_Clear();
    throw Error(Errc::limit_exceeded, "", "a number has too many digits");
  }
  std::string digits = written.c_str();
  // As in the calls that a model writes, an integer keeps all its digits.
  auto value = text::find_number(digits);
  return value && !value->is_number_float() ? *std::move(value)
                                            : JsonValue::exact(std::move(digits));
}

// A value as `json.loads` gives it.
JsonValue json_of(nb::handle value, std::size_t depth = 0) {
  if (value.is_none()) return nullptr;
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr())) return number_of(value);
  if (nb::isinstance<nb::str>(value)) return text_of(value);
  if (depth == text::ValueReader::max_depth) {
    throw Error(Errc::limit_exceeded, "", "is nested too deep");
  }
  if (nb::isinstance<nb::list>(value)) {
    JsonValue::Array items;
    for (const nb::handle item : nb::borrow<nb::list>(value)) {
      items.push_back(json_of(item, depth + 1));
    }
    return items;
  }
  if (!nb::isinstance<nb::dict>(value)) {
    throw Error(Errc::malformed_call, "", "a value has no JSON");
  }
  JsonValue::Object members;
  for (const auto [key, member] : nb::borrow<nb::dict>(value)) {
    members.emplace_back(text_of(key), json_of(member, depth + 1));
  }
  return members;
}

std::optional<JsonValue> find_json(nb::handle value) {
  try {
    return json_of(value);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The part of a schema that fill_defaults reads for a value, because a whole one may be large and
// refer to itself.
JsonValue defaults_of(nb::handle schema, const JsonValue& value, std::size_t depth = 0) {
  if (depth == text::ValueReader::max_depth) {
    throw Error(Errc::limit_exceeded, "", "is nested too deep with its defaults");
  }
  JsonValue::Object properties;
  const auto find = [](nb::handle in, const char* key) -> nb::object {
    if (!nb::isinstance<nb::dict>(in) || !nb::borrow<nb::dict>(in).contains(key)) return {};
    return in[key];
  };
  const nb::object listed = find(schema, "properties");
  if (value.is_object() && listed.is_valid() && nb::isinstance<nb::dict>(listed)) {
    for (const auto [name, property] : nb::borrow<nb::dict>(listed)) {
      std::string key;
      if (!nb::isinstance<nb::dict>(property) || !nb::try_cast(name, key)) continue;
      const auto at             = value.find(key);
      const JsonValue* argument = at == value.end() ? nullptr : &*at;
      std::optional<JsonValue> standard;
      if (argument == nullptr) {
        const nb::object given = find(property, "default");
        if (given.is_valid()) standard = find_json(given);
        if (!standard) continue;
        argument = &*standard;
      }
      JsonValue read = defaults_of(property, *argument, depth + 1);
      if (standard) read["default"] = *std::move(standard);
      properties.emplace_back(std::move(key), std::move(read));
    }
  }
  return JsonValue::Object{{"properties", std::move(properties)}};
}

std::string key_of(nb::handle name, const std::optional<nb::dict>& arguments, nb::handle schema) {
  const std::string tool = text_of(name);
  if (!arguments) return any_arguments_key(tool);
  JsonValue value = json_of(*arguments);
  fill_defaults(value, defaults_of(schema, value));
  return call_key({tool, std::move(value)}, nullptr);
}

}  // namespace

void bind_call_key(nb::module_& module) {
  module.def(
      "call_key", &key_of, "name"_a, "arguments"_a.none(), "schema"_a = nb::none(),
      nb::sig(
          "def call_key(name: str, arguments: dict[str, typing.Any] | None, schema: typing.Any = None) -> str"),
      "Equal for calls with the same meaning: the order of arguments, 1 and 1.0, and documented defaults\n"
      "make no difference.\n\n"
      "schema: of the tool's arguments. Without arguments: the key of an output that answers any. Error\n"
      "limit_exceeded for arguments that are nested too deep, malformed_call for what JSON does not have.");
}

}  // namespace tooldecode::python
