/// \file
/// JsonValue: a JSON value whose objects keep the order of their members.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// Converts values of another JSON library: specialise it with `static JsonValue read(const J&)`,
/// as <tooldecode/nlohmann.hpp> does.
template <class J>
struct JsonConversion {};

/// Options of JsonValue::text.
struct JsonLayout {
  int indent = -1;     ///< spaces per level, one member per line; negative: one line without spaces
  bool ascii = false;  ///< writes `\u00e9` for characters that are not ASCII
};

/// A JSON value, with an interface like that of nlohmann::json.
///
/// `parse_json_value` reads one from text, `text` writes it. <tooldecode/nlohmann.hpp> converts to
/// and from nlohmann's type. If the reader is configured to, it keeps a number that fits neither 64
/// bits nor a double as text (`is_exact`).
///
/// \par Complexity  a copy O(size); a move O(1); a member O(members before it)
/// \par Errors      Error{malformed_json} if a value is not of the requested type, or lacks a
///                  member
class JsonValue {
 public:
  /// Integers read without a sign are `unsigned_integer`.
  enum class Type : std::uint8_t {
    null,
    boolean,
    integer,
    unsigned_integer,
    floating,
    exact,
    string,
    array,
    object
  };
  using Array  = std::vector<JsonValue>;
  using Member = std::pair<std::string, JsonValue>;
  using Object = std::vector<Member>;

  /// Iterates over items or members. A scalar has one item, itself; null has none.
  template <bool is_const>
  class Iterator {
   public:
    using value_type        = JsonValue;
    using difference_type   = std::ptrdiff_t;
    using reference         = std::conditional_t<is_const, const JsonValue&, JsonValue&>;
    using pointer           = std::conditional_t<is_const, const JsonValue*, JsonValue*>;
    using iterator_category = std::random_access_iterator_tag;

    Iterator() noexcept = default;
    template <bool other>
      requires(is_const && !other)
    // NOLINTNEXTLINE(google-explicit-constructor): as iterators do
    Iterator(const Iterator<other>& from) noexcept : item_(from.item_), member_(from.member_) {}

    reference operator*() const { return value(); }
    pointer operator->() const { return &value(); }
    [[nodiscard]] const std::string& key() const { return member_->first; }
    [[nodiscard]] reference value() const { return member_ ? member_->second : *item_; }
    Iterator& operator+=(difference_type n) {
      if (member_) member_ += n;
      if (item_) item_ += n;
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) { return std::exchange(*this, *this + 1); }
    Iterator operator--(int) { return std::exchange(*this, *this + -1); }
    friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
    friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
    friend Iterator operator-(Iterator a, difference_type n) { return a += -n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) {
      return a.member_ ? a.member_ - b.member_ : a.item_ - b.item_;
    }
    reference operator[](difference_type n) const { return *(*this + n); }
    friend bool operator==(const Iterator&, const Iterator&)  = default;
    friend auto operator<=>(const Iterator&, const Iterator&) = default;

   private:
    friend class JsonValue;
    template <bool>
    friend class Iterator;
    using MemberPointer = std::conditional_t<is_const, const Member*, Member*>;

    pointer item_         = nullptr;
    MemberPointer member_ = nullptr;
  };
  using iterator       = Iterator<false>;
  using const_iterator = Iterator<true>;

  JsonValue() noexcept {}
  // NOLINTBEGIN(google-explicit-constructor): the same value
  JsonValue(std::nullptr_t) noexcept {}
  template <std::same_as<bool> Boolean>
  JsonValue(Boolean value) noexcept : type_(Type::boolean) {
    held_.boolean = value;
  }
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  JsonValue(Integer value) noexcept
      : type_(std::is_signed_v<Integer> ? Type::integer : Type::unsigned_integer) {
    if constexpr (std::is_signed_v<Integer>) {
      held_.integer = value;
    } else {
      held_.natural = value;
    }
  }
  template <std::floating_point Float>
  JsonValue(Float value) noexcept : type_(Type::floating) {
    held_.floating = static_cast<double>(value);
  }
  JsonValue(std::string value);
  JsonValue(std::string_view value);
  JsonValue(const char* value);
  JsonValue(Array items);
  JsonValue(Object members);
  template <class Range>
    requires(!std::same_as<Range, Array> && !std::same_as<Range, Object> &&
             !std::convertible_to<const Range&, std::string_view> &&
             requires(const Range& range) {
               range.begin();
               range.end();
             } && !std::same_as<typename Range::value_type, Range> &&
             !std::same_as<typename Range::value_type, char> &&
             std::constructible_from<JsonValue, typename Range::value_type>)
  JsonValue(const Range& range) : JsonValue(Array(range.begin(), range.end())) {}
  template <class Map>
    requires(std::constructible_from<std::string, typename Map::key_type> &&
             std::constructible_from<JsonValue, typename Map::mapped_type>)
  JsonValue(const Map& map) : JsonValue(Object(map.begin(), map.end())) {}
  /// A braced list, read like nlohmann's: `{{"city", "Oslo"}}` is an object; a list that is not
  /// only pairs of a text and a value is an array.
  JsonValue(std::initializer_list<JsonValue> list);
  template <class J>
    requires requires(const J& value) { JsonConversion<J>::read(value); }
  JsonValue(const J& value) : JsonValue(JsonConversion<J>::read(value)) {}
  // NOLINTEND(google-explicit-constructor)
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept { swap(other); }
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue() {
    if (type_ >= Type::exact) destroy();
  }
  void swap(JsonValue& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(held_, other.held_);
  }

  [[nodiscard]] static JsonValue array(std::initializer_list<JsonValue> list = {});
  [[nodiscard]] static JsonValue object(std::initializer_list<JsonValue> list = {});
  /// A number kept as text, which must be valid JSON; see is_exact.
  [[nodiscard]] static JsonValue exact(std::string number);

  /// Writes JSON. Numbers look as in Python; infinities become null, and bytes that are not UTF-8
  /// become U+FFFD.
  [[nodiscard]] std::string text(JsonLayout layout = {}) const;

  [[nodiscard]] Type type() const noexcept { return type_; }
  [[nodiscard]] const char* type_name() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return type_ == Type::null; }
  [[nodiscard]] bool is_boolean() const noexcept { return type_ == Type::boolean; }
  /// A number that fits 64 bits or a double.
  [[nodiscard]] bool is_number() const noexcept {
    return is_number_integer() || type_ == Type::floating;
  }
  [[nodiscard]] bool is_number_integer() const noexcept {
    return type_ == Type::integer || type_ == Type::unsigned_integer;
  }
  [[nodiscard]] bool is_number_unsigned() const noexcept { return type_ == Type::unsigned_integer; }
  [[nodiscard]] bool is_number_float() const noexcept { return type_ == Type::floating; }
  [[nodiscard]] bool is_exact() const noexcept { return type_ == Type::exact; }
  [[nodiscard]] bool is_string() const noexcept { return type_ == Type::string; }
  [[nodiscard]] bool is_array() const noexcept { return type_ == Type::array; }
  [[nodiscard]] bool is_object() const noexcept { return type_ == Type::object; }
  [[nodiscard]] bool is_structured() const noexcept { return type_ >= Type::array; }

  /// Number of items or members; 0 for null, 1 for scalars.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// The text of a string, or the digits of an exact number.
  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] std::string& string();
  [[nodiscard]] const Array& list() const;
  [[nodiscard]] Array& list();
  /// The members of an object; empty for other types.
  [[nodiscard]] const Object& items() const;
  /// The members of an object; null becomes an empty object.
  [[nodiscard]] Object& items();
  /// Converts to bool, a number, a string, or a std::vector of these.
  template <class T>
  [[nodiscard]] T get() const {
    if constexpr (std::same_as<T, bool>) {
      return boolean();
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(number());
    } else if constexpr (std::integral<T> && std::is_signed_v<T>) {
      return static_cast<T>(integer());
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(integer()));
    } else if constexpr (std::constructible_from<T, const JsonValue&> &&
                         !std::is_same_v<T, std::string>) {
      return T(*this);
    } else if constexpr (requires(T all, typename T::value_type one) { all.push_back(one); } &&
                         !std::is_same_v<T, std::string>) {
      T all;
      for (const JsonValue& item : list()) all.push_back(item.get<typename T::value_type>());
      return all;
    } else {
      static_assert(std::is_same_v<T, std::string>, "a value is no such type");
      return string();
    }
  }

  /// The member with a key, or `end()`.
  [[nodiscard]] const_iterator find(std::string_view key) const noexcept;
  [[nodiscard]] iterator find(std::string_view key) noexcept;
  /// The value at a JSON pointer (RFC 6901), "/properties/a"; nullptr if there is none.
  [[nodiscard]] const JsonValue* find_at(std::string_view pointer) const;
  [[nodiscard]] bool contains(std::string_view key) const noexcept;
  [[nodiscard]] const JsonValue& at(std::string_view key) const;
  [[nodiscard]] JsonValue& at(std::string_view key);
  [[nodiscard]] const JsonValue& at(std::size_t index) const;
  [[nodiscard]] JsonValue& at(std::size_t index);
  /// A member or an item. On a non-const value a missing member is added, and null becomes an
  /// object.
  template <class Key>
  [[nodiscard]] const JsonValue& operator[](const Key& key) const {
    return at(place(key));
  }
  template <class Key>
  JsonValue& operator[](const Key& key) {
    if constexpr (std::integral<Key>) {
      return at(place(key));
    } else {
      return member(place(key));
    }
  }
  /// A member as a C++ value, or `otherwise` if it is missing.
  template <class T>
  [[nodiscard]] T value(std::string_view key, T otherwise) const {
    const auto found = find(key);
    return found == end() ? std::move(otherwise) : found->template get<T>();
  }
  [[nodiscard]] std::string value(std::string_view key, const char* otherwise) const {
    return value(key, std::string(otherwise));
  }
  [[nodiscard]] const JsonValue& front() const { return *begin(); }
  [[nodiscard]] JsonValue& front() { return *begin(); }
  [[nodiscard]] const JsonValue& back() const { return *(end() - 1); }
  [[nodiscard]] JsonValue& back() { return *(end() - 1); }

  [[nodiscard]] const_iterator begin() const noexcept;
  [[nodiscard]] const_iterator end() const noexcept;
  [[nodiscard]] iterator begin() noexcept;
  [[nodiscard]] iterator end() noexcept;

  /// Appends an item; null becomes an array.
  void push_back(JsonValue value) { emplace_back(std::move(value)); }
  JsonValue& emplace_back(JsonValue value);
  /// Removes a member; returns how many were removed.
  std::size_t erase(std::string_view key);
  void erase(std::size_t index);
  iterator erase(const_iterator at);
  void clear() noexcept;
  /// Adds the members of another object; equal keys get its values.
  void update(const JsonValue& other);

  /// Equality: members must be in the same order; numbers compare by value, whatever their type.
  friend bool operator==(const JsonValue& a, const JsonValue& b) noexcept { return a.equals(b); }
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_null_pointer_v<T>)
  friend bool operator==(const JsonValue& a, T b) noexcept {
    return a.equals(JsonValue(b));
  }
  template <class T>
    requires(std::convertible_to<const T&, std::string_view> && !std::is_null_pointer_v<T>)
  friend bool operator==(const JsonValue& a, const T& b) noexcept {
    return a.is_text(std::string_view(b));
  }
  friend std::ostream& operator<<(std::ostream& out, const JsonValue& value) {
    value.write(out);
    return out;
  }

 private:
  static std::string_view place(std::string_view key) noexcept { return key; }
  template <std::integral Integer>
  static std::size_t place(Integer index) noexcept {
    return static_cast<std::size_t>(index);
  }
  [[noreturn]] void fail(const char* wanted) const;
  void destroy() noexcept;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::int64_t integer() const;
  JsonValue& member(std::string_view key);
  [[nodiscard]] bool equals(const JsonValue& other) const noexcept;
  [[nodiscard]] bool is_text(std::string_view text) const noexcept;
  void write(std::ostream& out) const;

  union Held {
    std::uint64_t natural = 0;
    std::int64_t integer;
    double floating;
    bool boolean;
    std::string* string;  // also for exact numbers
    Array* array;
    Object* object;
  };

  Type type_ = Type::null;
  Held held_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/json_value.ipp>
#endif
