#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/adapters/tooldecode.h>

#include <support/byte_vocabulary.hpp>
#include <support/c_calls.hpp>
#include <support/catch.hpp>

namespace td = tooldecode;
using namespace tooldecode::test::c;

TEST_CASE("td_call_stream gives an answer's events while it is written") {
  const Vocabulary vocabulary = make_vocabulary(td::test::byte_vocabulary());
  td_specification tools      = specification_of(TD_TOOLS, tool_documents);
  tools.format                = "hermes";
  const Constraint constraint = make_constraint(vocabulary.get(), tools);
  td_call_stream* made        = nullptr;
  require_ok([&](td_error** error) { return td_call_stream_make(constraint.get(), &made, error); });
  const CallStream stream(made);
  const td_event* events = nullptr;
  std::size_t count      = 0;
  const auto listed      = [&] {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
      all += std::to_string(events[i].kind) + ':' + std::to_string(events[i].call) + ':' +
             std::string(events[i].text.data, events[i].text.size) + ' ';
    }
    return all;
  };
  const auto push = [&](std::string_view bytes) {
    const td_text given = text(bytes);
    require_ok([&](td_error** error) {
      return td_call_stream_push_bytes(stream.get(), given, &events, &count, error);
    });
    return listed();
  };
  CHECK(push("Hm. <tool") == "1:0:Hm.  ");
  CHECK(push("_call>\n{\"name\": \"abc\"") == "3:0:abc ");
  CHECK(push(", \"arguments\": {\"a\"") == "4:0:{\"a\" ");
  const std::int32_t tokens[] = {':', ' ', '"', '"', '}', '}'};
  require_ok([&](td_error** error) {
    return td_call_stream_push(stream.get(), tokens, 6, &events, &count, error);
  });
  CHECK(count == 6);
  CHECK(push("\n</tool_call>").empty());
  const Told refused = told([&](td_error** error) {
    return td_call_stream_push_bytes(stream.get(), text("x"), &events, &count, error);
  });
  CHECK(refused.code == TD_ERROR_MALFORMED_CALL);
  CHECK(refused.where == "byte 68");
  CHECK(count == 0);
  require_ok([&](td_error** error) {
    return td_call_stream_finish(stream.get(), &events, &count, error);
  });
  CHECK(listed() == "6:1: ");

  // The events of what comes before a refused token, in the same push, are given.
  require_ok([&](td_error** error) { return td_call_stream_make(constraint.get(), &made, error); });
  const CallStream other(made);
  const std::string_view begin = "Hm. <tool_call>\n{\"name\": \"abc\", x";
  const std::vector<std::int32_t> some(begin.begin(), begin.end());
  const Told late = told([&](td_error** error) {
    return td_call_stream_push(other.get(), some.data(), some.size(), &events, &count, error);
  });
  CHECK(late.code == TD_ERROR_MALFORMED_CALL);
  CHECK(listed().ends_with("3:0:abc "));
  require_ok([&](td_error** error) { return td_call_stream_make(constraint.get(), &made, error); });
  const CallStream third(made);
  for (const std::int32_t unknown : {-1, 1 << 20}) {
    const std::int32_t given[] = {'H', 'm', unknown, '.'};
    const Told outside         = told([&](td_error** error) {
      return td_call_stream_push(third.get(), given, 4, &events, &count, error);
    });
    CHECK(outside.code == TD_ERROR_UNKNOWN_TOKEN);
    CHECK(listed() == "1:0:H 1:0:m ");
  }
  const Constraint regex = make_constraint(vocabulary.get(), specification_of(TD_REGEX, pattern));
  CHECK(told([&](td_error** error) {
          return td_call_stream_make(regex.get(), &made, error);
        }).where == "constraint");
  CHECK(made == nullptr);
  CHECK(told([&](td_error** error) {
          return td_call_stream_finish(nullptr, &events, &count, error);
        }).code == TD_ERROR_INVALID_ARGUMENT);
}
