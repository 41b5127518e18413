/// \file
/// Errors of tooldecode.h: a code, a place and a text.
#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/core/error.hpp>

namespace tooldecode::c_interface {

/// Maps error codes of the library to those of the C interface.
inline constexpr std::pair<Errc, td_code> codes[] = {
    {Errc::file_unreadable, TD_ERROR_FILE_UNREADABLE},
    {Errc::malformed_json, TD_ERROR_MALFORMED_JSON},
    {Errc::malformed_file, TD_ERROR_MALFORMED_FILE},
    {Errc::malformed_vocabulary, TD_ERROR_MALFORMED_VOCABULARY},
    {Errc::malformed_document, TD_ERROR_MALFORMED_DOCUMENT},
    {Errc::malformed_schema, TD_ERROR_MALFORMED_SCHEMA},
    {Errc::unsupported_keyword, TD_ERROR_UNSUPPORTED_KEYWORD},
    {Errc::unsatisfiable_schema, TD_ERROR_UNSATISFIABLE_SCHEMA},
    {Errc::malformed_pattern, TD_ERROR_MALFORMED_PATTERN},
    {Errc::unsupported_pattern, TD_ERROR_UNSUPPORTED_PATTERN},
    {Errc::unsupported_name, TD_ERROR_UNSUPPORTED_NAME},
    {Errc::malformed_grammar, TD_ERROR_MALFORMED_GRAMMAR},
    {Errc::limit_exceeded, TD_ERROR_LIMIT_EXCEEDED},
    {Errc::duplicate_tool, TD_ERROR_DUPLICATE_TOOL},
    {Errc::unknown_tool, TD_ERROR_UNKNOWN_TOOL},
    {Errc::unknown_format, TD_ERROR_UNKNOWN_FORMAT},
    {Errc::malformed_call, TD_ERROR_MALFORMED_CALL},
    {Errc::unknown_state, TD_ERROR_UNKNOWN_STATE},
    {Errc::unknown_token, TD_ERROR_UNKNOWN_TOKEN},
    {Errc::shape_mismatch, TD_ERROR_SHAPE_MISMATCH},
    {Errc::invalid_option, TD_ERROR_INVALID_OPTION},
    {Errc::device_failure, TD_ERROR_DEVICE_FAILURE},
    {Errc::cancelled, TD_ERROR_CANCELLED},
};

/// The code of an error; TD_ERROR if it has none.
[[nodiscard]] constexpr td_code code_of(Errc error) noexcept {
  for (const auto& [known, code] : codes) {
    if (known == error) return code;
  }
  return TD_ERROR;
}

/// The zero-terminated name of a code.
[[nodiscard]] constexpr const char* name_of(td_code code) noexcept {
  for (const auto& [error, known] : codes) {
    if (known == code) return name(error).data();
  }
  switch (code) {
    case TD_OK:
      return "ok";
    case TD_NOT_ALLOWED:
      return "not_allowed";
    case TD_PENDING:
      return "pending";
    case TD_ERROR:
      return "error";
    case TD_ERROR_INVALID_ARGUMENT:
      return "invalid_argument";
    case TD_ERROR_BUFFER_TOO_SMALL:
      return "buffer_too_small";
    case TD_ERROR_OUT_OF_MEMORY:
      return "out_of_memory";
    case TD_ERROR_MODEL:
      return "model";
    default:
      return "unknown";
  }
}

/// A wrong call of the interface, in contrast to wrong input.
class Refusal : public std::runtime_error {
 public:
  Refusal(td_code code, std::string where, const std::string& what)
      : std::runtime_error(where + ": " + what), code_(code), where_(std::move(where)) {}

  [[nodiscard]] td_code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  td_code code_;
  std::string where_;
};

/// An error as the interface reports it.
struct Failure {
  td_code code = TD_ERROR;
  std::string where;
  std::string text;
};

/// Converts the exception that is being handled.
[[nodiscard]] inline Failure current_failure() {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return {refusal.code(), refusal.where(), refusal.what()};
  } catch (const Error& error) {
    return {code_of(error.code()), error.where(), error.what()};
  } catch (const std::bad_alloc&) {
    return {TD_ERROR_OUT_OF_MEMORY, "", "there is no more memory"};
  } catch (const std::length_error& error) {
    return {TD_ERROR_OUT_OF_MEMORY, "", error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return {TD_ERROR_FILE_UNREADABLE, error.path1().string(), error.what()};
  } catch (const std::system_error& error) {
    return {TD_ERROR_OUT_OF_MEMORY, "", error.what()};
  } catch (const std::exception& error) {
    return {TD_ERROR, "", error.what()};
  } catch (...) {
    return {TD_ERROR, "", "an exception of no known type"};
  }
}

/// Requires a pointer that is not null.
inline void require(const void* pointer, const char* argument) {
  if (pointer == nullptr) throw Refusal(TD_ERROR_INVALID_ARGUMENT, argument, "must not be null");
}
/// Requires an array that is not null unless it is empty.
inline void require_array(const void* pointer, std::size_t count, const char* argument) {
  if (count > 0) require(pointer, argument);
}

/// Copies a caller's struct after checking its size.
template <class Struct>
[[nodiscard]] Struct fields_of(const Struct* from, const char* argument) {
  require(from, argument);
  if (from->struct_size != sizeof(Struct)) {
    throw Refusal(TD_ERROR_INVALID_ARGUMENT, std::string(argument) + ".struct_size",
                  "must be " + std::to_string(sizeof(Struct)) + ", the size of the type, and is " +
                      std::to_string(from->struct_size));
  }
  return *from;
}

/// A caller's text.
[[nodiscard]] inline std::string_view view(const td_text& text, const char* argument) {
  require_array(text.data, text.size, argument);
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}

}  // namespace tooldecode::c_interface
