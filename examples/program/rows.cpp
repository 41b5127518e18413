#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/value_reader.hpp>

#include <program/files.hpp>
#include <program/json.hpp>
#include <program/rows.hpp>

namespace program {

void LeftOut::add(const std::string& reason, const std::string& id) {
  auto [at, fresh] = reasons_.emplace(reason, Rows{0, id});
  ++at->second.count;
}

void LeftOut::add(const tooldecode::Error& error, const std::string& id) {
  add(std::string(name(error.code())), id + ", " + error.what());
}

std::size_t LeftOut::count() const {
  std::size_t result = 0;
  for (const auto& [reason, rows] : reasons_) result += rows.count;
  return result;
}

std::string LeftOut::report() const {
  std::string text;
  for (const auto& [reason, rows] : reasons_) {
    text += "left out: " + std::to_string(rows.count) + (rows.count == 1 ? " row, " : " rows, ") +
            reason + " (" + rows.first + ")\n";
  }
  return text;
}

namespace {

tooldecode::ToolCall read_call(const Json& call) {
  return {call.at("name").get<std::string>(), call.at("arguments")};
}

void read_dialogue(const Json& source, Row& row) {
  row.tools  = tooldecode::ToolSet::from_json(source.at("tools"));
  row.choice = parse_choice(source.at("choice").get<std::string>());
  row.format = &format_named(source.at("format").get<std::string>());
  for (const Json& message : source.at("messages")) {
    row.messages.push_back({message.at("role").string(), message.at("content").string()});
  }
  for (const Json& call : source.at("calls")) {
    row.expected.push_back(tooldecode::ExpectedCall::exactly(read_call(call)));
  }
  row.group = row.expected.empty()            ? "no call needed"
              : source.at("seen").get<bool>() ? "seen tools"
                                              : "held-out tools";
}

bool read_bfcl(const Json& source, Row& row) {
  row.tools = tooldecode::ToolSet::from_json(source.at("functions"));
  row.group = source.at("category").get<std::string>();
  std::string before;
  for (const Json& message : source.at("question")) {
    const auto content = message.at("content").get<std::string>();
    if (message.at("role") == "system") {
      before += content + '\n';
    } else {
      row.messages.push_back({message.at("role").string(), std::exchange(before, "") + content});
    }
  }
  if (!source.at("expects_call").get<bool>()) return true;
  if (source.contains("answers")) {
    for (const Json& answer : source["answers"]) {
      row.expected.push_back(tooldecode::ExpectedCall::from_bfcl(answer));
    }
  } else if (source.contains("call_json") && !source["call_json"].is_null()) {
    const Json& calls = source["call_json"];
    for (const Json& call : calls.is_array() ? calls : Json::array({calls})) {
      row.expected.push_back(tooldecode::ExpectedCall::exactly(read_call(call)));
    }
  }
  return !row.expected.empty();
}

void read_api_bank(const Json& source, Row& row) {
  row.tools = tooldecode::ToolSet::from_json(source.at("apis"));
  row.group = "API-Bank level " + std::to_string(source.at("level").get<int>());
  row.messages.push_back({"user", source.at("input").get<std::string>()});
  row.choice.choice = tooldecode::ToolChoice::required;
  auto expected     = tooldecode::ExpectedCall::exactly(read_call(source.at("call_json")));
  const auto texts  = row.format->parse(source.at("call_python").get<std::string>(), row.tools);
  for (auto& argument : expected.arguments) {
    argument.allowed.push_back(texts.at(0).arguments.at(argument.key));
  }
  row.expected.push_back(std::move(expected));
}

}  // namespace
void read_rows(const std::filesystem::path& path, std::size_t limit, std::vector<Row>& rows,
               LeftOut& left_out) {
  using tooldecode::Errc;
  using tooldecode::Error;
  std::istringstream lines(read_file(path));
  std::size_t number = 0, seen = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    if (limit != 0 && ++seen > limit) return;
    const std::string place = path.string() + ':' + std::to_string(number);
    Row row{.id = place, .group = "", .format = &format_named("python")};
    try {
      const auto source = tooldecode::text::parse_json(line);
      if (source.is_object() && source.contains("id")) row.id = source["id"].get<std::string>();
      if (source.contains("tools") && source.contains("calls")) {
        read_dialogue(source, row);
      } else if (source.contains("apis")) {
        read_api_bank(source, row);
      } else if (source.contains("functions") && source.contains("expects_call")) {
        if (!read_bfcl(source, row)) {
          left_out.add("a call is expected, but not known which", row.id);
          continue;
        }
      } else {
        left_out.add("no row of a form that is known", row.id);
        continue;
      }
      rows.push_back(std::move(row));
    } catch (const Error& error) {
      const bool is_of_value = error.code() == Errc::malformed_json && error.where().empty();
      if (is_of_value) {  // a type other than requested
        left_out.add("no row of a form that is known", row.id + ", " + error.what());
        continue;
      }
      if (error.code() == Errc::malformed_json) throw Error(error.code(), place, error.what());
      left_out.add(error, row.id);
    }
  }
}

}  // namespace program
