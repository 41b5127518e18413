/// \file
/// code_of, error_of: the code of the Error that some work throws, and where it stands.
#pragma once

#include <string>

#include <tooldecode/core/error.hpp>

#include <support/catch.hpp>

namespace tooldecode::test {

/// Fails the test if nothing is thrown.
Errc code_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    UNSCOPED_INFO(error.what());
    return error.code();
  }
  FAIL("nothing was thrown");
  return {};
}

/// The code and the place of the Error, or "none" if nothing is thrown.
std::string error_of(const auto& work) {
  try {
    static_cast<void>(work());
  } catch (const Error& error) {
    return std::string(name(error.code())) + ' ' + error.where();
  }
  return "none";
}

}  // namespace tooldecode::test
