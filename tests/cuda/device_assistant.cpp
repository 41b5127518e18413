// The program's model on a GPU, in the emulator: `tooldecode call --device cuda`. The program has the
// function that this file defines only where it is built with CUDA.
#define load_on_device load_on_emulated_device
#include <program/device_assistant.cu>
#undef load_on_device

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/drafts.hpp>
#include <program/formats.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/gguf_writer.hpp>

using namespace tooldecode;

namespace {

std::vector<TokenId> answer_of(const program::Assistant& assistant,
                               const std::string& drafter = "none") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "book", "parameters": {"type": "object",
      "properties": {"place": {"type": "string"}}, "required": ["place"]}}])");
  const program::Format& format = assistant.format("");
  const ToolCallFSM calls(assistant.masks, tools, format.format, {});
  const auto prompt = assistant.prompt(calls.tools(), format, {{"user", "Book Luigi's."}});
  const DecodeOptions options{.max_tokens = 6, .temperature = 0};
  if (drafter == "none") {
    const ModelRef model = assistant.model_ref();
    return Decoder{model, calls}(prompt, options).tokens;
  }
  program::DraftOptions drafts;
  drafts.settings.drafter = drafter;
  const auto drafting     = program::load_drafting(drafts, {}, assistant);
  const Output output = program::decode_with_drafts(assistant, drafting, calls, prompt, options);
  CHECK(output.passes < output.tokens.size());
  return output.tokens;
}

}  // namespace

TEST_CASE("load_on_device, the embedded model: answers as it does on the host") {
  simt::options.schedule = simt::Schedule::lockstep;
  program::ModelOptions options;
  options.context   = 256;
  const auto tokens = answer_of(*program::load_on_emulated_device(options.name, options));
  CHECK(tokens.size() == 6);
  CHECK(tokens == answer_of(*program::load_assistant(options)));
}

TEST_CASE("load_on_device, EAGLE and Medusa: draft the same answer; EAGLE-3 is refused") {
  simt::options.schedule = simt::Schedule::lockstep;
  program::ModelOptions options;
  options.context      = 256;
  const auto assistant = program::load_on_emulated_device(options.name, options);
  const auto tokens    = answer_of(*program::load_assistant(options));
  for (const std::string drafter : {"eagle", "medusa"}) {
    if (test::is_sanitized && drafter == "medusa") continue;
    INFO(drafter);
    CHECK(answer_of(*assistant, drafter) == tokens);
  }
  CHECK_THROWS_WITH(static_cast<void>(assistant->draft_target(true)),
                    test::contains("which --device cuda does not give"));
}

TEST_CASE("begins_texts, a GGUF file: reads add_bos_token, which is true if it is not there") {
  constexpr std::uint32_t boolean = 7;
  for (const bool adds : {false, true}) {
    tooldecode::test::GgufWriter file;
    file.key("tokenizer.ggml.add_bos_token", boolean).put(static_cast<std::uint8_t>(adds));
    CHECK(program::begins_texts(file.file(1)) == adds);
  }
  tooldecode::test::GgufWriter file;
  CHECK(program::begins_texts(file.number("other", 1).file(1)));
}

TEST_CASE("load_assistant, an unknown device: is named") {
  program::ModelOptions options;
  options.device = "gpu";
  CHECK_THROWS_WITH(program::load_assistant(options), "--device \"gpu\": must be cpu or cuda");
}
