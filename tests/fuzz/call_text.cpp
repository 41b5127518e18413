// A model's text gives a typed error, or calls and values that stay the same when written and read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/nlohmann.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <fuzz/fuzz.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;

template <class F>
void calls(const F& format, std::string_view text) {
  static const ToolSet tools = ToolSet::parse(
      R"([{"name": "f", "parameters": {"type": "object",
           "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}}])");
  try {
    const auto read = format.parse(text, tools);
    if (read.empty()) return;
    const std::string written = AnyFormat(format).write(read, tools);
    const auto again          = fuzz::must_read(
        written, [&](std::string_view calls) { return format.parse(calls, tools); });
    fuzz::demand(read == again, "calls change when written", written);
  } catch (const Error&) {
    return;
  }
}

template <class Read, class Write>
void values(std::string_view text, Read read, Write write) {
  try {
    const auto value          = read(text);
    const std::string written = write(value);
    const auto again          = fuzz::must_read(written, read);
    fuzz::demand(value == again, "a value changes when written", written);
    fuzz::demand(write(again) == written, "a text changes when written again", written);
  } catch (const Error&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  calls(PythonCall{}, text);
  for (const auto& format : {JsonCall::hermes(), JsonCall::llama(), JsonCall::mistral(),
                             JsonCall::bare(), JsonCall::bare_list()}) {
    calls(format, text);
  }
  for (const auto& format :
       {DelimitedCall::mistral(), DelimitedCall::deepseek_v3(), DelimitedCall::deepseek_v3_1(),
        DelimitedCall::kimi_k2(), DelimitedCall::react()}) {
    calls(format, text);
  }
  calls(HarmonyCall{}, text);
  for (const auto& format : {XmlCall::qwen3_coder(), XmlCall::glm()}) calls(format, text);
  for (const auto& format : {PositionalCall::toolken(), PositionalCall::tool_dec()}) {
    calls(format, text);
  }
  using Json = nlohmann::ordered_json;
  values(
      text, [](std::string_view json) { return text::parse_json(json); },
      [](const Json& value) { return text::write_json(value); });
  values(
      text, [](std::string_view python) { return text::parse_python_literal(python); },
      [](const Json& value) { return text::write_python_literal(value); });
  return 0;
}
