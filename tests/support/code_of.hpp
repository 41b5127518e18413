/// \file
/// code_of: the code of the Error that some work throws.
#pragma once

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

}  // namespace tooldecode::test
