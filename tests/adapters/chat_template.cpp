#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/chat_template.hpp>
#include <program/shots.hpp>
#include <support/catch.hpp>

using namespace program;

namespace td = tooldecode;

namespace {

// A template that writes each call of a turn in the given form, else the turn's text.
ChatTemplate chat(const std::string& call) {
  return {
      "{%- if tools %}<|tools|>{{ tools | tojson }}\n{% endif %}{%- for turn in messages %}<|{{ "
      "turn.role }}|>\n{%- if turn.tool_calls %}{%- for call in turn.tool_calls %}" +
          call +
          "{%- endfor %}{%- else %}{{ turn.content }}{%- endif %}<|end|>\n{%- endfor %}{%- if "
          "add_generation_prompt %}<|assistant|>\n{%- endif %}",
      "", "<|end|>"};
}

}  // namespace

TEST_CASE("find_format finds a chat template's call format by the call that it writes") {
  CHECK(find_format(chat("<tool_call>\n{\"name\": \"{{ call.function.name }}\", \"arguments\": "
                         "{{ call.function.arguments | tojson }}}\n</tool_call>")) == "hermes");
  CHECK(find_format(chat("<tool_call>\n{\"name\": \"{{ call.function.name }}\", \"arguments\": "
                         "{{ call.function.arguments | tojson }}}\n</tool_call>"
                         "{# You are Qwen, created by Alibaba Cloud. #}")) == "qwen-2.5");
  CHECK(find_format(chat("<|python_tag|>{\"name\": \"{{ call.function.name }}\", \"parameters\": "
                         "{{ call.function.arguments | tojson }}}")) == "llama");
  CHECK(find_format(chat("<tool_call>\n<function={{ call.function.name }}>\n{%- for key, value in "
                         "call.function.arguments | items %}<parameter={{ key }}>\n{{ value }}\n"
                         "</parameter>\n{%- endfor %}</function>\n</tool_call>")) == "qwen3-coder");
  // Those of Mistral and Kimi write the id of a call.
  CHECK(find_format(chat("[TOOL_CALLS] [{\"name\": \"{{ call.function.name }}\", \"arguments\": "
                         "{{ call.function.arguments | tojson }}, \"id\": \"{{ call.id }}\"}]")) ==
        "mistral");
  CHECK(find_format(chat("[TOOL_CALLS]{{ call.function.name }}[CALL_ID]{{ call.id }}[ARGS]"
                         "{{ call.function.arguments | tojson }}")) == "mistral-args");
  CHECK(find_format(chat("<|tool_calls_section_begin|><|tool_call_begin|>{{ call.id }}"
                         "<|tool_call_argument_begin|>{{ call.function.arguments | tojson }}"
                         "<|tool_call_end|><|tool_calls_section_end|>")) == "kimi-k2");
  // Hunyuan's tokens have a suffix.
  const std::string hunyuan =
      "<tool_calls:a1><tool_call:a1>{{ call.function.name }}{%- for key, value in "
      "call.function.arguments | items %}<arg_key:a1>{{ key }}</arg_key:a1><arg_value:a1>{{ value }}"
      "</arg_value:a1>{%- endfor %}</tool_call:a1></tool_calls:a1>";
  CHECK(find_format(chat(hunyuan)) == "hunyuan-4:a1");
  CHECK(
      find_format(chat("]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"{{ call.function.name "
                       "}}\">{%- for key, value in call.function.arguments | items %}"
                       "]<]minimax[>[<{{ key }}>{{ value }}]<]minimax[>[</{{ key }}>{%- endfor %}"
                       "]<]minimax[>[</invoke>]<]minimax[>[</tool_call>")) == "minimax-m3");
  // Other marks around a text that is one of the formats.
  CHECK_FALSE(
      find_format(chat("<own>{\"name\": \"{{ call.function.name }}\", \"arguments\": "
                       "{{ call.function.arguments | tojson }}}</own>")));
  // One that leaves calls out.
  const ChatTemplate silent("{%- for turn in messages %}{{ turn.content }}\n{%- endfor %}", "", "");
  CHECK_FALSE(find_format(silent));
}

TEST_CASE("ChatTemplate::has_system holds for templates that write a system message") {
  const std::string turn = "{{ message.content }}";
  const auto has_system  = [](const std::string& text) {
    return ChatTemplate("{%- for message in messages %}" + text + "{%- endfor %}", "", "")
        .has_system();
  };
  CHECK(has_system(turn));
  CHECK_FALSE(has_system("{%- if message.role != 'system' %}" + turn + "{%- endif %}"));
  CHECK_FALSE(has_system(
      "{%- if message.role == 'system' %}{{ raise_exception('no system') }}{%- endif %}" + turn));
}

TEST_CASE("turns_with_tools: joins a system message with the instruction") {
  const auto tools =
      td::ToolSet::parse(R"([{"name": "f", "description": "Does it.", "parameters": {}}])");
  const Format& format = format_named("python");
  const auto turns     = [&](const std::vector<Message>& messages) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const Message& turn : turns_with_tools(tools, format, {}, messages)) {
      all.emplace_back(turn.role, turn.content);
    }
    return all;
  };
  const auto plain = turns({{"user", "Hi"}});
  auto expected    = plain;
  REQUIRE(expected.front().first == "system");
  expected.front().second = "Be brief.\n\n" + expected.front().second;
  CHECK(turns({{"system", "Be brief."}, {"user", "Hi"}}) == expected);
  // Without a user message it is the question, so that the tools are shown.
  CHECK(turns({{"system", "Hi"}}) == plain);
}

TEST_CASE("ChatTemplate::takes holds for the variables that the template names") {
  const ChatTemplate effort(
      "{%- if reasoning_effort is not defined %}{%- set reasoning_effort = 'medium' %}{%- endif %}"
      "Reasoning: {{ reasoning_effort }}\n{%- for turn in messages %}{{ turn.content }}{%- endfor %}",
      "", "");
  const ChatTemplate silent("{%- for turn in messages %}{{ turn.content }}{%- endfor %}", "", "");
  CHECK(effort.takes("reasoning_effort"));
  CHECK_FALSE(effort.takes("effort"));
  CHECK_FALSE(silent.takes("reasoning_effort"));
  const ChatTemplate quoted("{{ 'reasoning_effort' }}", "", "");
  CHECK_FALSE(quoted.takes("reasoning_effort"));

  const std::vector<Message> turns{{"user", "Hi"}};
  const auto text = [&](const ChatTemplate& chat, const TemplateVariables& variables) {
    std::string whole;
    for (const TemplatePart& part : chat.render(turns, td::ToolSet(), variables)) {
      whole += part.text;
    }
    return whole;
  };
  CHECK(text(effort, {}) == "Reasoning: mediumHi");
  CHECK(text(effort, {{"reasoning_effort", "high"}}) == "Reasoning: highHi");
  CHECK(text(silent, {{"reasoning_effort", "high"}}) == "Hi");

  const ChatTemplate thinks("{%- if think %}{{ 'Think' + mark }}{{ budget }}{%- endif %}", "", "");
  CHECK(text(thinks, {{"think", false}, {"mark", ": "}, {"budget", 512}}).empty());
  CHECK(text(thinks, {{"think", true}, {"mark", ": "}, {"budget", 512}}) == "Think: 512");
  const ChatTemplate members("{%- for turn in messages %}{{ turn.content }}{%- endfor %}", "", "");
  CHECK(members.takes("messages"));
  CHECK_FALSE(members.takes("content"));
}

namespace {

std::string text_of(const ChatTemplate& chat, const std::vector<Message>& turns) {
  std::string text;
  for (const TemplatePart& part : chat.render(turns, td::ToolSet())) text += part.text;
  return text;
}

// An assistant's turn with these calls, which have one argument each.
Message calling(const std::vector<std::pair<std::string, std::string>>& ids_and_names) {
  Message turn{"assistant", "Hm.[calls]"};
  turn.calls_at = 3;
  for (const auto& [id, name] : ids_and_names) {
    turn.calls.emplace_back(id, td::ToolCall{name, Json{{"of", name}}});
  }
  return turn;
}

// Writes each message; it is `refusals` that tell one template from another.
std::string template_of(const std::string& refusals, const std::string& calls = "m.tool_calls") {
  return "{%- if tools %}{{ tools | tojson }}{% endif %}{%- set ns = namespace(call='', turns=0) %}"
         "{%- for m in messages %}" +
         refusals + "{%- if m.tool_calls %}{%- for c in " + calls +
         " %}({{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}){%- set ns.call = "
         "c.id %}{%- endfor %}{%- elif m.role == 'tool' %}[{{ m.tool_call_id }} {{ m.content }}]"
         "{%- else %}<{{ m.content }}>{%- endif %}{%- endfor %}";
}

const std::string refuses_others =
    "{%- if m.role == 'tool' and not m.tool_call_id %}{{ raise_exception('no id') }}{%- endif %}";

}  // namespace

TEST_CASE("ChatTemplate gives calls and results ids where results need their calls") {
  const ChatTemplate chat(template_of(refuses_others), "", "");
  REQUIRE(chat.needs_calls());
  CHECK_FALSE(chat.takes_one_call());
  const auto dialogue = [&](const std::string& one, const std::string& two) {
    return text_of(chat, {{"user", "?"},
                          calling({{one, "f"}, {two, "g"}}),
                          {"tool", "1", "f", one},
                          {"tool", "2", "g", two}});
  };
  const auto expected = [](const std::string& one, const std::string& two) {
    return "<?>(" + one + " f {\"of\": \"f\"})(" + two + " g {\"of\": \"g\"})[" + one + " 1][" +
           two + " 2]";
  };
  CHECK(dialogue("abcDEF123", "abcDEF124") == expected("abcDEF123", "abcDEF124"));
  // An id that fits is its own, whatever another would get.
  CHECK(dialogue("x", "call00001") == expected("call00002", "call00001"));
  CHECK(dialogue("call00001", "x") == expected("call00001", "call00002"));
  // Without ids, a call and its result have the same one.
  CHECK(dialogue("", "") == expected("call00001", "call00002"));
}

TEST_CASE("ChatTemplate::needs_calls holds for templates that count the text before a result") {
  const ChatTemplate counts(
      template_of("{%- if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
                  "{%- if (m.role == 'user') != (ns.turns % 2 == 0) %}"
                  "{{ raise_exception('roles must alternate') }}{%- endif %}"
                  "{%- set ns.turns = ns.turns + 1 %}{%- endif %}"),
      "", "");
  CHECK(counts.needs_calls());
  CHECK_FALSE(ChatTemplate(template_of(""), "", "").needs_calls());
  const Message turn = calling({{"abcDEF123", "f"}});
  CHECK(text_of(counts, {{"user", "?"},
                         turn,
                         {"tool", "1", "f", "abcDEF123"},
                         {"assistant", "One."},
                         {"user", "Thanks."}}) ==
        "<?>(abcDEF123 f {\"of\": \"f\"})[abcDEF123 1]<One.><Thanks.>");
}

TEST_CASE("ChatTemplate writes a message for each call where the template writes only the first") {
  const ChatTemplate chat(template_of(refuses_others, "m.tool_calls[:1]"), "", "");
  CHECK(chat.needs_calls());
  REQUIRE(chat.takes_one_call());
  CHECK(text_of(chat, {{"user", "?"},
                       calling({{"1", "f"}, {"2", "g"}}),
                       {"tool", "1", "f", "1"},
                       {"tool", "2", "g", "2"},
                       {"assistant", "Done."}}) ==
        "<?>(call00001 f {\"of\": \"f\"})[call00001 1](call00002 g {\"of\": \"g\"})[call00002 2]"
        "<Done.>");
}

TEST_CASE("end_of_template has what is behind the last input, of which an empty one is none") {
  CHECK(end_of_template({{"a", false}, {"b", true}, {"c", false}, {"", true}, {"d", false}}) ==
        "cd");
  CHECK(end_of_template({{"c", false}, {"d", true}}).empty());
}

TEST_CASE("ChatTemplate and encode_parts write earlier calls with the model's delimiter tokens") {
  // Bytes, then the format's mark and the end of a turn.
  std::vector<td::Vocabulary::Entry> entries;
  for (int b = 0; b < 256; ++b) entries.push_back({std::string(1, static_cast<char>(b))});
  entries.push_back({"[TOOL_CALLS]", td::TokenType::control});
  entries.push_back({"<|end|>", td::TokenType::control});
  const td::Vocabulary vocabulary(entries, {.end_tokens = {257}});
  const td::Tokenizer tokenizer(vocabulary, td::vocabulary::BytePairEncoding(vocabulary, {}, {}),
                                td::vocabulary::PreTokenizer({"."}), false);
  const ChatTemplate chat(
      "{%- for m in messages %}{{ m.role }}: {{ (m.content | trim).split('</think>')[-1] }}<|end|>"
      "{%- endfor %}",
      "", "");
  const auto tools = td::ToolSet::parse(
      R"([{"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}])");
  const Format& format = format_named("mistral");
  for (const std::string argument : {"Oslo", "[TOOL_CALLS]", "x<|end|>", "</think>"}) {
    CAPTURE(argument);
    const std::vector calls{td::ToolCall{"f", Json{{"a", argument}}}};
    Message turn{"assistant", "Hm. writtencalls0. "};
    turn.calls_at = turn.content.size();
    turn.content += format.write(calls, tools);
    turn.delimiters =
        find_delimiters(format, tools, calls, std::string_view(turn.content).substr(turn.calls_at));
    for (TextRange& range : turn.delimiters) range.at += turn.calls_at;
    REQUIRE(turn.delimiters.size() == 1);
    const std::string question = "[TOOL_CALLS] writtencalls0. writtencallsx1. ?";
    const auto parts           = chat.render({{"user", question}, turn}, td::ToolSet());
    const auto tokens          = encode_parts(tokenizer, parts);
    std::string text;
    std::vector<std::string> marks;
    for (const td::TokenId token : tokens) {
      text += vocabulary.name(token);
      if (token > 255) marks.emplace_back(vocabulary.name(token));
    }
    CHECK(text == "user: " + question + "<|end|>assistant: " + turn.content + "<|end|>");
    CHECK(marks == std::vector<std::string>{"<|end|>", "[TOOL_CALLS]", "<|end|>"});
  }
}
