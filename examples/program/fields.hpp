/// \file
/// Fields: the members of a JSON object of a request; errors name the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/tools/document_readings.hpp>

#include <program/json.hpp>

namespace program {

/// Text of a JSON value; bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& value);

/// A refused request, with HTTP status and error object.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const char* code, std::string param, const std::string& message);

  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] Json json() const;

 private:
  int status_;
  const char* code_;
  std::string param_;
};

/// Refuses a request because the server is being stopped.
[[noreturn]] void throw_stopping();

/// A sentence that suggests the nearest name; empty if none is near.
std::string nearest_hint(std::string_view name, std::span<const std::string_view> names);

enum class Places {
  dotted,   ///< as OpenAI does: `messages[0].role`
  pointer,  ///< JSON pointers: `/0/params`
};

/// An object of a request and its place. A null member counts as absent.
class Fields {
 public:
  Fields(const Json& object, std::string place, Places places = Places::dotted);

  [[nodiscard]] std::string place(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, const std::string& what,
                         const char* code = "invalid_value") const;

  [[nodiscard]] const Json* find(std::string_view key) const;
  [[nodiscard]] const Json& at(std::string_view key) const;
  [[nodiscard]] Fields object(std::string_view key) const { return {at(key), place(key), places_}; }
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const;
  [[nodiscard]] std::optional<double> find_number(std::string_view key, double min,
                                                  double max) const;
  [[nodiscard]] std::optional<std::int64_t> find_integer(std::string_view key,
                                                         std::int64_t min) const;
  /// Each element of an array, as an object with its place.
  [[nodiscard]] std::vector<Fields> objects(std::string_view key) const;
  /// Refuses all other members: unknown members are not ignored.
  void allow(std::initializer_list<std::string_view> keys) const;
  /// Allows also members that other servers and libraries add and that a model never sees, such as
  /// `cache_control`. Lists their places among `ignored`, each once, with `[]` for every index.
  void allow(std::initializer_list<std::string_view> keys, std::vector<std::string>& ignored) const;
  /// Refuses all values but one of a known parameter.
  void allow_only(std::string_view key, const Json& supported) const;

 private:
  // Refuses a member with the nearest of the known names.
  [[noreturn]] void refuse(std::string_view key, std::span<const std::string_view> known) const;
  [[nodiscard]] std::string place_of_element(std::string_view key, std::size_t i) const;

  const Json* object_;
  std::string place_;
  Places places_;
};

}  // namespace program
