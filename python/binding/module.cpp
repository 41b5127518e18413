/// \file
/// The extension module tooldecode._core: errors, and what the other files bind.
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/version.hpp>

#include "handles.hpp"
#include <nanobind/nanobind.h>

namespace tooldecode::python {
namespace {

/// A path in it need not be UTF-8; then it has the surrogates that Python's paths have.
nb::object python_text(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

void raise(Errc code, const std::string& where, const char* what) {
  const nb::object error =
      python_type("Error")(python_text(name(code)), python_text(where), python_text(what));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

void translate(const std::exception_ptr& exception, void* /*payload*/) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    raise(error.code(), error.where(), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    raise(Errc::file_unreadable, error.path1().string(), error.what());
  }
}

}  // namespace

std::string json_text(nb::handle value) {
  const auto text_of = [](nb::handle text) {
    std::string bytes;
    if (nb::try_cast(text, bytes)) return bytes;
    throw Error(Errc::malformed_json, "",
                "the text has half of a surrogate pair, which is no Unicode");
  };
  if (nb::isinstance<nb::str>(value)) return text_of(value);
  if (nb::isinstance<nb::bytes>(value)) {
    const auto bytes = nb::borrow<nb::bytes>(value);
    return {bytes.c_str(), bytes.size()};
  }
  // A class of Pydantic's says what its schema is.
  nb::object schema = nb::borrow(value);
  if (nb::hasattr(value, "model_json_schema")) schema = value.attr("model_json_schema")();
  const nb::object write = nb::module_::import_("json").attr("dumps");
  try {
    return text_of(write(schema, nb::arg("ensure_ascii") = false));
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError) &&
        !error.matches(PyExc_RecursionError)) {
      throw;
    }
    // A message of Python's need not be Unicode.
    std::string why;
    if (!nb::try_cast(nb::object(nb::str(error.value())), why)) why = "it raises an error";
    throw Error(Errc::malformed_json, "", "the value has no JSON: " + why);
  }
}

}  // namespace tooldecode::python

NB_MODULE(_core, module) {
  namespace python       = tooldecode::python;
  module.doc()           = "What the package tooldecode is made of; import that.";
  module.attr("version") = nanobind::str(tooldecode::version.data(), tooldecode::version.size());
  nanobind::register_exception_translator(python::translate);
  python::bind_vocabulary(module);
  python::bind_constraint(module);
  python::bind_factories(module);
  python::bind_call_key(module);
  python::bind_call_stream(module);
  python::bind_apply_mask(module);
  python::bind_order_consistency(module);
}
