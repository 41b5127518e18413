// Responses of OpenAI's Responses API: items of every kind, whole and as events.
#include <cstddef>
#include <string>
#include <vector>

#include <program/formats.hpp>
#include <program/response_writer.hpp>
#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using program::Json;

namespace {

program::ResponseWriter writer() {
  return program::ResponseWriter({.id = "resp_u", .unique = "u", .model = "m", .created = 7},
                                 {{"instructions", "Be brief."}});
}

struct Event {
  std::string type;
  Json data;
};

std::vector<Event> events_of(const std::string& text) {
  std::vector<Event> events;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line = text.find('\n', at), end = text.find("\n\n", at);
    const std::string name = text.substr(at, line - at);
    const std::string data = text.substr(line + 1, end - line - 1);
    REQUIRE(name.starts_with("event: "));
    REQUIRE(data.starts_with("data: "));
    events.push_back({name.substr(7), tooldecode::text::parse_json(data.substr(6))});
    CHECK(events.back().data["type"] == events.back().type);
    CHECK(events.back().data["sequence_number"] == events.size() - 1);
    at = end + 2;
  }
  return events;
}

const Json no_tokens = Json::array();

}  // namespace

TEST_CASE("ResponseWriter: an answer that reasons, speaks and calls has an item for each") {
  auto streamed = writer();
  const Json begin{{"index", 0},
                   {"id", "call_1"},
                   {"type", "function"},
                   {"function", {{"name", "f"}, {"arguments", ""}}}};
  const Json more{{"index", 0}, {"function", {{"arguments", "{}"}}}};
  std::string text = streamed.begin(1);
  for (const Json& delta :
       {Json{{"reasoning_content", "Let me "}}, Json{{"reasoning_content", "see."}},
        Json{{"content", "So."}}, Json{{"tool_calls", Json::array({begin})}},
        Json{{"tool_calls", Json::array({more})}}}) {
    text += streamed.chunk(0, delta, no_tokens, nullptr);
  }
  tooldecode::EngineReply reply;
  reply.turns.emplace_back();
  reply.turns.back().calls.push_back({"f", Json::object()});
  const tooldecode::ToolCallFSM calls(tooldecode::test::byte_vocabulary(), {},
                                      program::format_named("python").format);
  const program::AnswerEnd end(reply, reply.turns.back().calls, program::AnswerText(calls, {}), {});
  text += streamed.chunk(0, Json::object(), no_tokens, &end);
  text += streamed.end({.prompt = 3, .cached = 1, .completion = 4});
  const auto events = events_of(text);

  std::vector<std::string> types;
  for (const Event& event : events) types.push_back(event.type.substr(event.type.find('.') + 1));
  CHECK(types == std::vector<std::string>{"created",
                                          "in_progress",
                                          "output_item.added",
                                          "content_part.added",
                                          "reasoning_text.delta",
                                          "reasoning_text.delta",
                                          "reasoning_text.done",
                                          "content_part.done",
                                          "output_item.done",
                                          "output_item.added",
                                          "content_part.added",
                                          "output_text.delta",
                                          "output_text.done",
                                          "content_part.done",
                                          "output_item.done",
                                          "output_item.added",
                                          "function_call_arguments.delta",
                                          "function_call_arguments.done",
                                          "output_item.done",
                                          "completed"});
  const Json& last = events.back().data["response"];
  CHECK(last["output"] ==
        tooldecode::text::parse_json(
            R"([{"id": "rs_u_0", "type": "reasoning", "summary": [], "status": "completed",
                 "content": [{"type": "reasoning_text", "text": "Let me see."}]},
                {"id": "msg_u_1", "type": "message", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}]},
                {"id": "fc_u_2", "type": "function_call", "call_id": "call_1", "name": "f",
                 "status": "completed", "arguments": "{}"}])"));
  CHECK(last["usage"]["total_tokens"] == 7);
  CHECK(last["instructions"] == "Be brief.");

  // The whole response says the same.
  Json call = begin;
  call.erase("index");
  call["function"]["arguments"] = "{}";
  const Json parts = Json::array({{{"reasoning_content", "Let me see."}}, {{"content", "So."}}});
  const Json message{{"tool_calls", Json::array({call})}};
  const Json whole =
      tooldecode::text::parse_json(writer().response(Json::array({{{"message", message},
                                                                   {"parts", parts},
                                                                   {"finish_reason", "tool_calls"},
                                                                   {"stop_reason", nullptr}}}),
                                                     {.prompt = 3, .cached = 1, .completion = 4}));
  CHECK(whole["output"] == last["output"]);
  CHECK(whole["usage"] == last["usage"]);
  CHECK(whole["status"] == "completed");
}

TEST_CASE("ResponseWriter: a cut answer is incomplete, and so is its last item") {
  const Json parts = Json::array({{{"reasoning_content", "Hm."}}, {{"content", "So"}}});
  Json choice{{"message", Json::object()},
              {"parts", parts},
              {"finish_reason", "length"},
              {"stop_reason", nullptr}};
  const Json whole = tooldecode::text::parse_json(writer().response(Json::array({choice}), {}));
  CHECK(whole["status"] == "incomplete");
  CHECK(whole["incomplete_details"]["reason"] == "max_output_tokens");
  CHECK(whole["output"][0]["status"] == "completed");
  CHECK(whole["output"][1]["status"] == "incomplete");
  choice["stop_reason"] = "max_turns";
  const Json last = tooldecode::text::parse_json(writer().response(Json::array({choice}), {}));
  CHECK(last["incomplete_details"]["reason"] == "max_turns");
}

TEST_CASE("ResponseWriter: a call that the server ran is an item between the texts around it") {
  const Json call{
      {"id", "call_1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}},
      {"output", "42"}, {"turn", 0},          {"server_label", "shop"},
      {"status", "ok"}};
  Json failed      = call;
  failed["status"] = "timed_out";
  Json announced   = call;
  announced.erase("server_label");
  const Json parts = Json::array({{{"content", "Let me see."}},
                                  {{"cached_tool_calls", Json::array({call, failed, announced})}},
                                  {{"content", "So."}}});
  const Json choice{{"message", Json::object()},
                    {"parts", parts},
                    {"finish_reason", "stop"},
                    {"stop_reason", nullptr}};
  const Json whole = tooldecode::text::parse_json(writer().response(Json::array({choice}), {}));
  CHECK(whole["output"] ==
        tooldecode::text::parse_json(
            R"([{"id": "msg_u_0", "type": "message", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "Let me see.", "annotations": [], "logprobs": []}]},
                {"id": "mcp_u_1", "type": "mcp_call", "server_label": "shop", "name": "f", "arguments": "{}",
                 "output": "42", "error": null, "status": "completed"},
                {"id": "mcp_u_2", "type": "mcp_call", "server_label": "shop", "name": "f", "arguments": "{}",
                 "output": null, "error": "42", "status": "failed"},
                {"id": "msg_u_3", "type": "message", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}]}])"));

  auto streamed    = writer();
  std::string text = streamed.begin(1);
  for (const Json& delta : parts) text += streamed.chunk(0, delta, no_tokens, nullptr);
  tooldecode::EngineReply reply;
  reply.turns.emplace_back();
  const tooldecode::ToolCallFSM calls(tooldecode::test::byte_vocabulary(), {},
                                      program::format_named("python").format);
  const program::AnswerEnd end(reply, {}, program::AnswerText(calls, {}), {});
  text += streamed.chunk(0, Json::object(), no_tokens, &end);
  text += streamed.end({});
  CHECK(events_of(text).back().data["response"]["output"] == whole["output"]);
}

TEST_CASE("ResponseWriter: a stream that fails says why in its last event") {
  auto failing     = writer();
  std::string text = failing.begin(1);
  text += failing.chunk(0, {{"content", "So"}}, no_tokens, nullptr);
  text += failing.failed(program::ApiError(504, "timeout", "", "the answer took too long"));
  const auto events = events_of(text);
  CHECK(events.back().type == "response.failed");
  CHECK(events.back().data["response"]["status"] == "failed");
  CHECK(events.back().data["response"]["error"]["code"] == "timeout");
}
