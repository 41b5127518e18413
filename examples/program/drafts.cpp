#include <program/command_line.hpp>
#include <program/drafts.hpp>
#include <program/speculation.hpp>

namespace program {

void add_draft_options(Command& sub, DraftOptions& options) {
  sub.option("--speculation", options.settings.drafter,
             "none, forced, lookup, forced+lookup, eagle, medusa or all; the last three with "
             "the embedded model only")
      .shows_default();
  sub.option("--ranks", options.ranks,
             "frequency ranks of the draft's vocabulary, or none for all of it")
      .shows_default();
  sub.option("--k", options.settings.k, "tokens of the draft's vocabulary; 0 is all")
      .shows_default();
  sub.flag("--context", options.settings.with_context,
           "draft with the prompt's tokens too, however rare");
}

tooldecode::Output decode_with_drafts(const Assistant& assistant, const DraftOptions& drafts,
                                      const tooldecode::ToolCallFSM& calls,
                                      std::span<const tooldecode::TokenId> prompt,
                                      const tooldecode::DecodeOptions& options) {
  tooldecode::Output output;
  with_drafter(assistant, drafts, calls.structural_tokens(),
               [&](const auto& model, const auto& drafter) {
                 output = decode_with(model, calls, drafter, prompt, options);
               });
  return output;
}

}  // namespace program
