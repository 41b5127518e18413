/// \file
/// CompletionWriter: responses in the form of OpenAI's older completions.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <program/json.hpp>
#include <program/reply.hpp>

namespace program {

/// Writes the objects and chunks of completions.
class CompletionWriter final : public ReplyWriter {
 public:
  /// \param with_usage  the last chunk of a stream has the usage, all others have it as null
  CompletionWriter(ReplyHead head, bool with_usage)
      : ReplyWriter(std::move(head)), with_usage_(with_usage) {}

  [[nodiscard]] std::string response(Json choices, const Usage& usage) override;
  [[nodiscard]] std::string begin(std::size_t choices) override;
  [[nodiscard]] std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                  const AnswerEnd* end) override;
  [[nodiscard]] std::string end(const Usage& usage) override;

 private:
  [[nodiscard]] Json object() const;
  // The value of `logprobs` for more tokens of a choice.
  [[nodiscard]] Json log_probabilities(std::size_t choice, const Json& tokens);

  bool with_usage_;
  std::vector<std::size_t> characters_;  // of each choice so far
};

}  // namespace program
