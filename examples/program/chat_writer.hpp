/// \file
/// ChatWriter: responses in the form of chat completions.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <program/json.hpp>
#include <program/reply.hpp>

namespace program {

/// Writes the objects and chunks of chat completions.
class ChatWriter final : public ReplyWriter {
 public:
  /// \param with_usage  the last chunk of a stream has the usage, all others have it as null
  ChatWriter(ReplyHead head, bool with_usage)
      : ReplyWriter(std::move(head)), with_usage_(with_usage) {}

  [[nodiscard]] std::string response(Json choices, const Usage& usage) override;
  [[nodiscard]] std::string begin(std::size_t choices) override;
  [[nodiscard]] std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                  const AnswerEnd* end) override;
  [[nodiscard]] std::string end(const Usage& usage) override;

 private:
  [[nodiscard]] Json object(const char* kind) const;
  [[nodiscard]] Json chunk_json(std::size_t choice, const Json& delta, const Json& tokens,
                                const AnswerEnd* end) const;

  bool with_usage_;
};

}  // namespace program
