#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/core/error.hpp>

#include "handles.hpp"
#include <nanobind/nanobind.h>

namespace tooldecode::python {
namespace {

using namespace nb::literals;

const char* name_of(StreamEvent::Kind kind) {
  switch (kind) {
    case StreamEvent::Kind::text:
      return "text";
    case StreamEvent::Kind::reasoning:
      return "reasoning";
    case StreamEvent::Kind::call_begin:
      return "call_begin";
    case StreamEvent::Kind::arguments:
      return "arguments";
    case StreamEvent::Kind::call_end:
      return "call_end";
    case StreamEvent::Kind::answer_end:
      return "answer_end";
  }
  return "";
}

nb::list events_of(const std::vector<StreamEvent>& events) {
  nb::list all;
  if (events.empty()) return all;
  const nb::object type = python_type("StreamEvent");
  for (const StreamEvent& event : events) {
    all.append(
        type(name_of(event.kind), event.call, nb::str(event.text.data(), event.text.size())));
  }
  return all;
}

nb::list push_token(CallStream& self, std::int64_t token) {
  if (token < 0 || token > std::numeric_limits<TokenId>::max()) {
    throw Error(Errc::unknown_token, std::to_string(token), "must be an id of the vocabulary");
  }
  return events_of(self.push(static_cast<TokenId>(token)));
}

nb::list push_bytes(CallStream& self, const nb::bytes& bytes) {
  return events_of(self.push(std::string_view(bytes.c_str(), bytes.size())));
}

}  // namespace

void bind_call_stream(nb::module_& module) {
  nb::class_<CallStream>(
      module, "CallStream",
      "Takes an answer token by token, or in any pieces, and gives what is known of it so far.\n\n"
      "Arguments come as one JSON text, whatever the format. Error malformed_call has the byte where the\n"
      "answer breaks the constraint. One thread at a time.")
      .def(
          "__init__",
          [](CallStream* self, const CallsHandle& constraint) {
            new (self) CallStream(constraint.calls());
          },
          "constraint"_a)
      .def("push", &push_token, "token"_a,
           nb::sig("def push(self, token: int) -> list[tooldecode.StreamEvent]"),
           "What the next token brings; an end token ends the answer.")
      .def("push", &push_bytes, "text"_a,
           nb::sig("def push(self, text: bytes) -> list[tooldecode.StreamEvent]"),
           "The same for bytes, wherever tokens or characters begin and end.")
      .def(
          "finish", [](CallStream& self) { return events_of(self.finish()); },
          nb::sig("def finish(self) -> list[tooldecode.StreamEvent]"),
          "The rest of an answer that has ended, wherever that is; nothing may follow.");
}

}  // namespace tooldecode::python
