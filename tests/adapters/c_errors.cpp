#include <filesystem>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>

#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/core/error.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::c_interface;

namespace {

template <class Exception>
Failure failure_of(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    return current_failure();
  }
}

}  // namespace

TEST_CASE("code_of gives each Errc a distinct code, and name_of each code a distinct name") {
  std::set<td_code> seen;
  for (int i = 0; i <= static_cast<int>(Errc::cancelled); ++i) {
    const auto error   = static_cast<Errc>(i);
    const td_code code = code_of(error);
    CHECK(code > TD_ERROR);
    CHECK(seen.insert(code).second);
    CHECK(name_of(code) == name(error));
  }
  CHECK(code_of(static_cast<Errc>(1000)) == TD_ERROR);
  std::set<std::string> names;
  for (const td_code code :
       {TD_OK, TD_NOT_ALLOWED, TD_PENDING, TD_ERROR, TD_ERROR_INVALID_ARGUMENT,
        TD_ERROR_BUFFER_TOO_SMALL, TD_ERROR_OUT_OF_MEMORY, TD_ERROR_CANCELLED, TD_ERROR_MODEL}) {
    CHECK(names.insert(name_of(code)).second);
  }
  CHECK(names.count("unknown") == 0);
  CHECK(name_of(-1) == std::string("unknown"));
}

TEST_CASE("failure_of gives an exception's code, place and text") {
  const Failure error = failure_of(Error(Errc::malformed_schema, "#/a", "is wrong"));
  CHECK(error.code == TD_ERROR_MALFORMED_SCHEMA);
  CHECK(error.where == "#/a");
  CHECK(error.text == "#/a: is wrong");
  const Failure refusal = failure_of(Refusal(TD_ERROR_INVALID_ARGUMENT, "out", "must be"));
  CHECK(refusal.code == TD_ERROR_INVALID_ARGUMENT);
  CHECK(refusal.where == "out");
  CHECK(refusal.text == "out: must be");
  CHECK(failure_of(std::bad_alloc()).code == TD_ERROR_OUT_OF_MEMORY);
  CHECK(failure_of(std::length_error("long")).code == TD_ERROR_OUT_OF_MEMORY);
  CHECK(failure_of(std::system_error(std::error_code())).code == TD_ERROR_OUT_OF_MEMORY);
  CHECK(failure_of(std::filesystem::filesystem_error("no", "a", std::error_code())).code ==
        TD_ERROR_FILE_UNREADABLE);
  CHECK(failure_of(std::runtime_error("other")).text == "other");
  CHECK(failure_of(3).code == TD_ERROR);
}
