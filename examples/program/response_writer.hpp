/// \file
/// ResponseWriter: responses in the form of OpenAI's Responses API.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <program/json.hpp>
#include <program/reply.hpp>

namespace program {

/// Writes the objects and events of the Responses API. Each item of the output is written as chat
/// completions have it piece by piece. A whole response has at most one reasoning item and one
/// message for each turn; a stream has one for each stretch, in the order in which the model wrote them.
class ResponseWriter final : public ReplyWriter {
 public:
  /// \param echo  members of the request that the response repeats
  ResponseWriter(ReplyHead head, Json echo)
      : ReplyWriter(std::move(head)), echo_(std::move(echo)) {}

  [[nodiscard]] std::string response(Json choices, const Usage& usage) override;
  [[nodiscard]] std::string begin(std::size_t choices) override;
  [[nodiscard]] std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                  const AnswerEnd* end) override;
  [[nodiscard]] std::string end(const Usage& usage) override;
  [[nodiscard]] std::string failed(const ApiError& error) override;

 private:
  enum class Part { none, reasoning, message, call, custom };

  // Adds text to the item of a kind, which is begun if it is not open.
  [[nodiscard]] std::string add_text(Part part, const std::string& text);
  [[nodiscard]] std::string add_call(const Json& entry);
  // A call that the server ran, as a whole.
  [[nodiscard]] std::string add_hosted(const Json& call);
  [[nodiscard]] std::string open(Part part, Json item);
  [[nodiscard]] std::string close(bool is_whole);
  // An event about the open item.
  [[nodiscard]] std::string item_event(const std::string& type, Json more);
  [[nodiscard]] std::string event(const std::string& type, Json more);
  [[nodiscard]] Json object(const char* status, const Json& output) const;
  [[nodiscard]] Json item() const;
  [[nodiscard]] std::string item_id(std::string_view prefix) const;
  // Closes what is open, with the finish_reason and the stop_reason of chat completions.
  [[nodiscard]] std::string finish(std::string_view reason, const Json& stop);

  Json echo_;
  Json output_ = Json::array();  // items that are written
  Part part_   = Part::none;     // of the open item
  Json open_   = nullptr;        // the open item, without its text
  std::string text_;             // of the open item
  std::size_t sequence_ = 0;
  std::string status_;  // empty: in progress
  std::string cut_by_;  // why it is incomplete
};

}  // namespace program
