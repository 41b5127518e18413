#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/tools/custom_tool.hpp>

#include <program/dialogue.hpp>
#include <program/parameter_names.hpp>
#include <program/responses.hpp>

namespace program {

namespace {

// Converts the items of an input to the turns of a dialogue: a turn of the model is a message, or
// calls, or a message and the calls after it.
class InputItems {
 public:
  InputItems(Dialogue& dialogue, std::vector<std::string>& ignored)
      : dialogue_(&dialogue), ignored_(&ignored) {}

  void add(const Fields& item) {
    const std::string& type = item.find("type") != nullptr ? item.text("type") : message_type;
    if (type == "message") return add_message(item);
    if (type == "function_call" || type == "custom_tool_call") return add_call(item, type);
    if (type == "function_call_output" || type == "custom_tool_call_output") {
      item.allow({"type", "id", "call_id", "output", "status", "caller", "name"}, *ignored_);
      end_turn();
      return dialogue_->add_result(
          detail::content_text(item, *ignored_, "output", {"input_text", "output_text", "text"}),
          item, "call_id");
    }
    if (type == "mcp_call") return add_hosted(item);
    if (type == "mcp_list_tools") return;  // the request names its tools
    // Earlier reasoning is not shown again.
    if (type == "reasoning") {
      return item.allow({"type", "id", "summary", "content", "encrypted_content", "status"},
                        *ignored_);
    }
    if (type == "item_reference") {
      item.fail("type", "is not supported: the server keeps no items: send the item itself",
                "unsupported_value");
    }
    item.fail("type",
              "is supported as message, function_call, function_call_output, custom_tool_call, "
              "custom_tool_call_output, mcp_call, mcp_list_tools and reasoning only",
              "unsupported_value");
  }
  void end_turn() {
    if (!turn_) return;
    const Fields place = calls_.empty() ? *turn_ : calls_.front().entry;
    dialogue_->add_turn(std::exchange(text_, {}), calls_, place, "");
    turn_.reset();
    calls_.clear();
  }

 private:
  static inline const std::string message_type = "message";

  void add_message(const Fields& item) {
    item.allow({"type", "role", "content", "id", "status", "phase", "name"}, *ignored_);
    const std::string& role = item.text("role");
    if (role == "assistant") {
      std::string text =
          detail::content_text(item, *ignored_, "content", {"output_text", "text", "refusal"});
      if (calls_.empty()) end_turn();
      require_results(item, "role");
      turn_ = item;
      text_ += text;
      return;
    }
    end_turn();
    require_results(item, "role");
    const std::string text =
        detail::content_text(item, *ignored_, "content", {"input_text", "text"});
    if (role == "user") return dialogue_->add_user(text);
    if (role == "system" || role == "developer") return dialogue_->add_system(text);
    item.fail("role", "must be system, developer, user or assistant");
  }
  void add_call(const Fields& item, const std::string& type) {
    require_results(item, "type");
    tooldecode::ToolCall call{.name = item.text("name")};
    const bool is_custom = type == "custom_tool_call";
    if (is_custom) {
      item.allow({"type", "id", "call_id", "name", "input", "status", "caller"}, *ignored_);
      call.arguments = {{std::string(tooldecode::tools::custom_input), item.text("input")}};
    } else {
      item.allow(
          {"type", "id", "call_id", "name", "arguments", "status", "caller", "parsed_arguments"},
          *ignored_);
      call.arguments = detail::read_arguments(item);
    }
    if (!turn_) turn_ = item;
    calls_.push_back({item, "call_id", std::move(call), item, is_custom ? "input" : "arguments"});
  }
  // A call that the server ran, with its result.
  void add_hosted(const Fields& item) {
    if (!calls_.empty()) end_turn();
    require_results(item, "type");
    item.allow({"type", "id", "server_label", "name", "arguments", "output", "error", "status",
                "approval_request_id"},
               *ignored_);
    tooldecode::ToolCall call{.name = item.text("name"), .arguments = detail::read_arguments(item)};
    if (!turn_) turn_ = item;  // else after its message
    calls_.push_back({item, "id", std::move(call), item, "arguments"});
    end_turn();
    const bool is_failed = item.find("output") == nullptr;
    dialogue_->add_result(item.text(is_failed ? "error" : "output"), item, "id");
  }
  void require_results(const Fields& item, std::string_view key) const {
    if (!dialogue_->awaits_result()) return;
    item.fail(key, "comes before the output of a call: its function_call_output is missing");
  }

  Dialogue* dialogue_;
  std::vector<std::string>* ignored_;
  std::optional<Fields> turn_;  // of the model, under way
  std::string text_;
  std::vector<EarlierCall> calls_;
};

std::vector<Message> read_dialogue(const Fields& request, const Format& format,
                                   const tooldecode::ToolSet& tools,
                                   std::vector<std::string>& ignored) {
  Dialogue dialogue(format, tools);
  if (request.find("instructions") != nullptr) {
    if (!request.at("instructions").is_string()) {
      request.fail("instructions", "must be a string", "invalid_type");
    }
    dialogue.add_system(request.text("instructions"));
  }
  const Json& input = request.at("input");
  if (input.is_string()) {
    dialogue.add_user(input.string());
  } else {
    if (!input.is_array()) {
      request.fail("input", "must be a string or an array of items", "invalid_type");
    }
    InputItems items(dialogue, ignored);
    for (const Fields& item : request.objects("input")) items.add(item);
    items.end_turn();
  }
  return dialogue.finish(request, "input");
}

// Checks `include`, which has no effect: what it can name are parts of tools that OpenAI runs, and
// reasoning as OpenAI encrypts it, which answers do not have here.
void read_include(const Fields& request, std::vector<std::string>& ignored) {
  const Json* list = request.find("include");
  if (list == nullptr) return;
  if (!list->is_array()) request.fail("include", "must be an array", "invalid_type");
  constexpr std::string_view known[] = {"file_search_call.results",
                                        "web_search_call.results",
                                        "web_search_call.action.sources",
                                        "message.input_image.image_url",
                                        "computer_call_output.output.image_url",
                                        "code_interpreter_call.outputs",
                                        "reasoning.encrypted_content"};
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = "include[" + std::to_string(i) + ']';
    if (!(*list)[i].is_string()) request.fail(place, "must be a string", "invalid_type");
    const std::string& name = (*list)[i].string();
    if (name == "message.output_text.logprobs") {
      request.fail(place, "is not supported: ask /v1/chat/completions", "unsupported_value");
    }
    if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
      request.fail(place, "is no part of a response that is known" + nearest_hint(name, known));
    }
  }
  if (!list->empty()) ignored.emplace_back("include");
}

void read_text(const Fields& request, ChatRequest& chat) {
  if (request.find("text") == nullptr) return;
  const Fields text = request.object("text");
  text.allow({"format", "verbosity"});
  if (text.find("verbosity") != nullptr) chat.ignored.emplace_back("text.verbosity");
  if (text.find("format") == nullptr) return;
  chat.text.schema = read_text_format(text.object("format"), false);
}

void read_reasoning(const Fields& request, ChatRequest& chat) {
  if (request.find("reasoning") == nullptr) return;
  const Fields reasoning = request.object("reasoning");
  reasoning.allow({"effort", "summary", "generate_summary"});
  chat.reasoning_effort = detail::read_reasoning_effort(reasoning, "effort");
  for (const char* key : {"summary", "generate_summary"}) {
    if (reasoning.find(key) != nullptr) chat.ignored.push_back(reasoning.place(key));
  }
}

// What a response repeats of its request, with the values that hold where it says nothing.
Json echo(const Json& body, const ChatRequest& chat) {
  Json all{{"instructions", nullptr},
           {"max_output_tokens", nullptr},
           {"metadata", Json::object()},
           {"parallel_tool_calls", true},
           {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
           {"temperature", 1.0},
           {"text", {{"format", {{"type", "text"}}}}},
           {"tool_choice", "auto"},
           {"tools", chat.tools.documents},
           {"top_p", 1.0}};
  for (auto& [key, value] : all.items()) {
    const auto given = body.find(key);
    if (key == "tools" || given == body.end() || given->is_null()) continue;
    value = tooldecode::text::ExactNumber::rounded(*given);
  }
  return all;
}

}  // namespace

ChatRequest parse_response(const Json& body, const Format& format, std::size_t vocabulary_size) {
  const Fields request(body, "");
  ChatRequest chat;
  chat.api     = Api::responses;
  chat.ignored = read_names(body, request, response_parameters());
  request.allow_only("background", false);
  request.allow_only("truncation", "disabled");
  chat.model = request.text("model");
  read_include(request, chat.ignored);
  read_text(request, chat);
  read_reasoning(request, chat);
  chat.stops = read_stop(request);
  detail::read_stream(request, chat);
  chat.tools = read_tools(request, chat.ignored);
  read_text_rules(request, chat);
  chat.decode = detail::read_decode(request, vocabulary_size);
  chat.seed   = detail::read_seed(request);
  if (const auto most = request.find_integer("max_output_tokens", 1)) {
    chat.max_tokens      = static_cast<std::size_t>(*most);
    chat.max_tokens_name = "max_output_tokens";
  }
  chat.messages = read_dialogue(request, format, chat.tools.all, chat.ignored);
  chat.echo     = echo(body, chat);
  return chat;
}

}  // namespace program
