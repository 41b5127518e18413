/// \file
/// td_call_stream for tooldecode.h: the events of an answer that may call tools.
/// Defines functions, so include it in exactly one file; c_interface.hpp does.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/c_handles.hpp>
#include <tooldecode/adapters/tooldecode.h>

extern "C" {

td_code td_call_stream_make(const td_constraint* constraint, td_call_stream** out,
                            td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] {
    const auto& calls = shared_of(constraint).calls();
    if (!calls) {
      throw Refusal(TD_ERROR_INVALID_ARGUMENT, "constraint", "must be of the kind TD_TOOLS");
    }
    return new td_call_stream{Events(*calls)};
  });
}
td_code td_call_stream_push(td_call_stream* stream, const int32_t* tokens, size_t count,
                            const td_event** events, size_t* event_count, td_error** error) {
  using namespace tooldecode::c_interface;
  return give_events(stream, events, event_count, error, [&](Events& all) {
    for (const std::int32_t token : tokens_from(tokens, count)) all.add(all.stream().push(token));
  });
}
td_code td_call_stream_push_bytes(td_call_stream* stream, td_text bytes, const td_event** events,
                                  size_t* event_count, td_error** error) {
  using namespace tooldecode::c_interface;
  return give_events(stream, events, event_count, error,
                     [&](Events& all) { all.add(all.stream().push(view(bytes, "bytes"))); });
}
td_code td_call_stream_finish(td_call_stream* stream, const td_event** events, size_t* event_count,
                              td_error** error) {
  using namespace tooldecode::c_interface;
  return give_events(stream, events, event_count, error,
                     [](Events& all) { all.add(all.stream().finish()); });
}
void td_call_stream_free(td_call_stream* stream) {
  delete stream;
}

}  // extern "C"
