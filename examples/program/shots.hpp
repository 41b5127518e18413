/// \file
/// Prompts of models that were not trained for this program: tools and example calls, as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/research/classify.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/formats.hpp>
#include <program/prompt.hpp>
#include <program/rows.hpp>

namespace program {

/// Example dialogues with right answers, at the start of a prompt.
struct Shots {
  std::vector<Row> rows{};
};

/// Whether a row can be an example: it has one question with a complete answer. (The leaderboard's
/// lists of allowed values nest in objects, which does not say which are right together.)
inline bool can_be_shown(const Row& row) {
  const auto is_plain = [](const tooldecode::ExpectedArgument& argument) {
    return !argument.allowed.empty() && !argument.allowed.front().is_object();
  };
  return row.messages.size() == 1 && !row.expected.empty() &&
         std::ranges::all_of(row.expected, [&](const tooldecode::ExpectedCall& call) {
           return std::ranges::all_of(call.arguments, is_plain);
         });
}

/// Reads the first rows of a file that can be examples; Error{malformed_document} if there are too
/// few.
inline Shots read_shots(const std::string& file, std::size_t count) {
  Shots shots;
  if (count == 0) return shots;
  LeftOut left_out;
  read_rows(file, 0, shots.rows, left_out);
  std::erase_if(shots.rows, [](const Row& row) { return !can_be_shown(row); });
  if (shots.rows.size() < count) {
    throw tooldecode::Error(tooldecode::Errc::malformed_document, file,
                            "must have " + std::to_string(count) +
                                " rows of one question and its calls, has " +
                                std::to_string(shots.rows.size()));
  }
  shots.rows.resize(count);
  return shots;
}

/// The calls of a row's answer; of several right values the first one.
inline std::vector<tooldecode::ToolCall> right_calls(const Row& row) {
  std::vector<tooldecode::ToolCall> calls;
  for (const tooldecode::ExpectedCall& expected : row.expected) {
    tooldecode::ToolCall call{expected.name, Json::object()};
    for (const auto& argument : expected.arguments) {
      if (argument.optional) continue;
      call.arguments[argument.key] = argument.allowed.front();
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

/// The instruction for the model; it shows how to write a call by example.
inline std::string instruction(const Format& format) {
  const std::vector<tooldecode::ToolCall> example{
      {"function_name", Json{{"parameter_name", "value"}}}};
  return "Answer with function calls alone. A call is written like this:\n" + format.write(example);
}

/// The turns for a chat template that does not support tools: the tools are part of the first turn
/// of each dialogue. A system message precedes the instruction in its turn.
inline std::vector<Message> turns_with_tools(const tooldecode::ToolSet& tools, const Format& format,
                                             const Shots& shots,
                                             const std::vector<Message>& messages) {
  const auto ask = [](const tooldecode::ToolSet& known, const std::string& question) {
    return "Functions:\n" + tools_text(known) + "\nQuestion: " + question;
  };
  const bool has_system = !messages.empty() && messages.front().role == "system";
  const auto is_user    = [](const Message& message) { return message.role == "user"; };
  if (has_system && std::ranges::none_of(messages, is_user)) {
    return turns_with_tools(tools, format, shots, without_system(messages));
  }
  std::vector<Message> turns{{"system", has_system ? messages.front().content + "\n\n" : ""}};
  turns.front().content += instruction(format);
  for (const Row& shot : shots.rows) {
    turns.push_back({"user", ask(shot.tools, shot.messages.front().content)});
    const auto calls = right_calls(shot);
    turns.push_back({"assistant", format.write(calls, shot.tools)});
    turns.back().delimiters = find_delimiters(format, shot.tools, calls, turns.back().content);
  }
  bool is_first = true;
  for (std::size_t i = has_system ? 1 : 0, end = 0; i < messages.size(); i = end) {
    end = i + 1;
    if (messages[i].role == "tool") {
      while (end < messages.size() && messages[end].role == "tool") ++end;
      turns.push_back({"user", results_text(std::span(messages).subspan(i, end - i))});
    } else if (messages[i].role == "user" && std::exchange(is_first, false)) {
      turns.push_back({"user", ask(tools, messages[i].content)});
    } else {
      turns.push_back(messages[i]);
    }
  }
  return turns;
}

/// The turns as plain text, for models without a chat template.
inline std::string plain_text(const std::vector<Message>& turns) {
  std::string text;
  for (const Message& turn : turns) {
    if (turn.role == "assistant") {
      text += "Answer: " + turn.content + "\n\n";
    } else {
      text += turn.content + '\n';
      if (turn.role == "system") text += '\n';
    }
  }
  return text + "Answer: ";
}

}  // namespace program
