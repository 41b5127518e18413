/// \file
/// ReplyTraces: writes a server's latest replies to trace files after each reply.
#pragma once

#include <cstddef>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/engine_speculator.hpp>

#include <program/answer_trace.hpp>
#include <program/assistant.hpp>
#include <program/trace_file.hpp>

namespace program {

class ReplyTraces {
 public:
  static constexpr std::size_t kept = 16;

  ReplyTraces(std::vector<std::string> paths, const Assistant& assistant, const std::string& model)
      : assistant_(&assistant), file_(std::move(paths), "serve", {{"model", model}}, kept) {}

  [[nodiscard]] bool is_on() const noexcept { return file_.is_on(); }

  void add(const std::string& id, const tooldecode::EngineReply& reply) {
    AnswerTrace answer(assistant_->tokenizer.vocabulary(), id);
    for (std::size_t i = 0; i < reply.turns.size(); ++i) {
      const tooldecode::EngineTurn& turn = reply.turns[i];
      answer.add(turn.output);
      if (turn.results.empty() || i + 1 == reply.turns.size()) continue;
      answer.add_results(turn.more, reply.turns[i + 1].output.trace.begin);
    }
    if (reply.cancelled) answer.set("cancelled", true);
    if (reply.error) answer.set("error", reply.error->what());
    file_.add(answer);
    try {
      file_.write();
    } catch (const tooldecode::Error& error) {
      if (!std::exchange(has_failed_, true)) std::cerr << "tooldecode: " << error.what() << '\n';
    }
  }

 private:
  const Assistant* assistant_;
  TraceFile file_;
  bool has_failed_ = false;
};

}  // namespace program
