#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_set.hpp>

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
