/// \file
/// JsonValue: a JSON value in the library's interfaces, without a JSON library's header.
#pragma once

#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>

#include <tooldecode/core/config.hpp>

#include <nlohmann/json_fwd.hpp>

namespace tooldecode {

/// Holds a JSON value whose members keep their order.
///
/// `parse_json_value` makes one of a text, `text` gives its text. It converts from and to nlohmann::ordered_json,
/// which it holds: include <nlohmann/json.hpp> to work with that.
///
/// \par Complexity  a copy O(size); a move O(1)
class JsonValue {
 public:
  /// null
  JsonValue() noexcept;
  // NOLINTNEXTLINE(google-explicit-constructor): the same value
  template <std::same_as<nlohmann::ordered_json> J>
  JsonValue(const J& value) : JsonValue(&value) {}
  template <std::same_as<nlohmann::ordered_json> J>
  JsonValue(J&& value) : JsonValue() {
    swap_with(value);
  }
  /// A list in braces, as nlohmann reads one: `{{"city", "Oslo"}}` is an object.
  template <class J = nlohmann::ordered_json>
  JsonValue(std::initializer_list<typename J::initializer_list_t::value_type> list)
      : JsonValue(J(list)) {}
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue();

  /// `{}`
  [[nodiscard]] static JsonValue object();

  /// The value without spaces, as nlohmann's `dump()` writes it.
  [[nodiscard]] std::string text() const;

  [[nodiscard]] const nlohmann::ordered_json& json() const noexcept;
  [[nodiscard]] nlohmann::ordered_json& json();
  [[nodiscard]] const nlohmann::ordered_json* operator->() const noexcept { return &json(); }
  [[nodiscard]] nlohmann::ordered_json* operator->() { return &json(); }
  /// A member or an item, as nlohmann's operator finds it.
  template <class Key>
  [[nodiscard]] decltype(auto) operator[](const Key& key) const {
    return static_cast<const std::type_identity_t<nlohmann::ordered_json>&>(json())[key];
  }
  template <class Key>
  [[nodiscard]] decltype(auto) operator[](const Key& key) {
    return json()[key];
  }
  // NOLINTNEXTLINE(google-explicit-constructor): the same value
  operator const nlohmann::ordered_json&() const noexcept { return json(); }

  friend bool operator==(const JsonValue& a, const JsonValue& b) { return a.equals(b.json()); }
  friend bool operator==(const JsonValue& a, const nlohmann::ordered_json& b) {
    return a.equals(b);
  }
  template <class T>
    requires(!std::is_class_v<T> || std::same_as<T, std::string>)
  friend bool operator==(const JsonValue& a, const T& b) {
    return a.json() == b;
  }
  friend std::ostream& operator<<(std::ostream& out, const JsonValue& value) {
    value.write(out);
    return out;
  }

 private:
  explicit JsonValue(const nlohmann::ordered_json* value);
  void swap_with(nlohmann::ordered_json& value);
  [[nodiscard]] bool equals(const nlohmann::ordered_json& other) const;
  void write(std::ostream& out) const;

  std::unique_ptr<nlohmann::ordered_json> value_;  // nothing: null, which a move leaves
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/json_value.ipp>
#endif
