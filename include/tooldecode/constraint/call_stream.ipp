#pragma once

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_parts.ipp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/open_argument.hpp>
#include <tooldecode/grammar/byte_labels.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

TOOLDECODE_INLINE CallStream::CallStream(ToolCallFSM calls)
    : calls_(std::move(calls)), labels_(labels_of(calls_)), open_(formats::OpenArgument()) {}

TOOLDECODE_INLINE core::Boxed<grammar::ByteLabels> CallStream::labels_of(const ToolCallFSM& calls) {
  const auto label_of = [calls](std::span<const std::uint32_t> marks) {
    const auto has = [marks](std::uint32_t mark) {
      return std::find(marks.begin(), marks.end(), mark) != marks.end();
    };
    if (const auto tool = calls.tool_of(marks)) {
      const Part part   = has(formats::mark::arguments)  ? Part::arguments
                          : has(formats::mark::argument) ? Part::argument
                                                         : Part::call;
      const auto format = std::find_if(marks.begin(), marks.end(), [](std::uint32_t mark) {
        return mark >= formats::mark::format_of_set && mark != formats::mark::calls;
      });
      return label(part, *tool, format == marks.end() ? 0 : *format - formats::mark::format_of_set);
    }
    return label(has(formats::mark::text)         ? Part::text
                 : has(formats::mark::text_value) ? Part::text_value
                 : has(formats::mark::more_text)  ? Part::more_text
                 : has(formats::mark::reasoning)  ? Part::reasoning
                                                  : Part::none);
  };
  const Constraint& grammar = calls.constraint();
  return core::Boxed(
      grammar::ByteLabels(grammar.automaton(), grammar.automaton_state(calls.initial()), label_of));
}

template <class Change>
CallStream::Events CallStream::change(const Change& change) {
  // All members except the constraint; of the argument, which may be long, only the length.
  auto all = std::tie(labels_, position_, part_, delimiters_, characters_, in_call_, has_ended_,
                      tool_, format_, call_, given_, before_, open_);
  std::tuple before(labels_, position_, part_, delimiters_, characters_, in_call_, has_ended_,
                    tool_, format_, call_, given_, before_, open_);
  const std::size_t length = argument_.size();
  old_                     = length;
  ended_.clear();
  try {
    Events events;
    change(events);
    return events;
  } catch (...) {
    all = std::move(before);
    if (!ended_.empty()) argument_ = std::move(ended_);
    argument_.resize(length);
    throw;
  }
}

TOOLDECODE_INLINE std::vector<StreamEvent> CallStream::push(TokenId token) {
  const Vocabulary& vocabulary = calls_.vocabulary();
  if (token < 0 || static_cast<std::size_t>(token) >= vocabulary.size()) {
    throw Error(Errc::unknown_token, std::to_string(token),
                "must be an id of the vocabulary, below " + std::to_string(vocabulary.size()));
  }
  if (vocabulary.is_end(token)) return finish();
  return change([&](Events& events) {
    const std::string_view bytes = vocabulary.grammar_bytes(token);
    if (bytes.empty()) refuse("the constraint does not allow token " + std::to_string(token));
    read(bytes, events);
  });
}

TOOLDECODE_INLINE std::vector<StreamEvent> CallStream::push(std::string_view bytes) {
  constexpr char marks[] = {control_open, control_close};
  const std::size_t mark = bytes.find_first_of(std::string_view(marks, 2));
  return change([&](Events& events) {
    read(bytes.substr(0, mark), events);
    if (mark != std::string_view::npos) refuse("the constraint does not allow this byte");
  });
}

TOOLDECODE_INLINE std::vector<StreamEvent> CallStream::finish() {
  return change([&](Events& events) {
    if (std::exchange(has_ended_, true)) return;
    const bool is_whole =
        labels_->finish([&](char byte, Label label) { take(byte, label, events); });
    if (in_call_ && is_whole) end_call(events);
    // A whole answer may end after a delimiter only if that is text.
    enter(part_ == Part::text && is_whole ? Part::more_text : Part::none, events);
    enter(Part::none, events);
    events.push_back({.kind = Kind::answer_end, .call = call_});
  });
}

TOOLDECODE_INLINE void CallStream::read(std::string_view bytes, Events& events) {
  if (has_ended_ && !bytes.empty()) {
    refuse("nothing may follow the end of the answer");
  }
  for (const char byte : bytes) {
    if (!labels_->push(byte, [&](char one, Label label) { take(one, label, events); })) {
      refuse("the constraint does not allow this byte");
    }
    ++position_;
    settle(events);
  }
  if (part_ == Part::argument) {
    const auto& format = calls_.shared_->format.member(format_);
    add(Kind::arguments, open_->more(format, calls_.tools()[tool_], given_, before_, argument_),
        events);
  }
}

TOOLDECODE_INLINE void CallStream::refuse(std::string_view why) const {
  throw Error(Errc::malformed_call, "byte " + std::to_string(position_), why);
}

TOOLDECODE_INLINE void CallStream::take(char byte, Label label, Events& events) {
  const Part part = part_of(label);
  if (in_call_ && !(is_in_call(label) && tool_of(label) == tool_)) end_call(events);
  if (is_in_call(label) && !in_call_) begin_call(label, events);
  if (part_ == Part::argument && part != part_) end_argument(events);
  enter(part, events);
  if (byte == control_open || byte == control_close) return;
  switch (part) {
    case Part::none:
      break;
    case Part::text:
    case Part::more_text:
    case Part::reasoning:
      add(part == Part::reasoning ? Kind::reasoning : Kind::text,
          characters_.push(delimiters_.push({&byte, 1})), events);
      break;
    case Part::text_value:
      add(Kind::text, characters_.push({&byte, 1}), events);
      break;
    case Part::arguments:
      add(Kind::arguments, characters_.push({&byte, 1}), events);
      break;
    case Part::call:
      before_ += byte;
      break;
    case Part::argument:
      argument_ += byte;
      break;
  }
}

TOOLDECODE_INLINE void CallStream::settle(Events& events) {
  if (part_ == Part::argument &&
      labels_->all_next([](Label label) { return part_of(label) != Part::argument; })) {
    end_argument(events);
    enter(Part::call, events);
  }
  if (in_call_ && labels_->all_next(
                      [&](Label label) { return !is_in_call(label) || tool_of(label) != tool_; })) {
    end_call(events);
  }
  Label next = 0;
  if (!in_call_ && labels_->all_next([&](Label label) {
        const bool is_same =
            next == 0 || (tool_of(next) == tool_of(label) && format_of(next) == format_of(label));
        next = label;
        return is_in_call(label) && is_same;
      })) {
    begin_call(next, events);
  }
}

TOOLDECODE_INLINE void CallStream::begin_call(Label label, Events& events) {
  enter(Part::call, events);
  in_call_ = true;
  tool_    = tool_of(label);
  format_  = format_of(label);
  events.push_back({.kind   = Kind::call_begin,
                    .call   = call_,
                    .text   = calls_.tools()[tool_].name,
                    .format = format_});
}

TOOLDECODE_INLINE void CallStream::end_call(Events& events) {
  if (part_ == Part::argument) end_argument(events);
  enter(Part::none, events);
  if (calls_.shared_->format.member(format_).reads_arguments()) {
    add(Kind::arguments, given_ == 0 ? "{}" : "}", events);
  }
  events.push_back({.kind = Kind::call_end, .call = call_});
  in_call_ = false;
  given_   = 0;
  before_.clear();
  ++call_;
}

TOOLDECODE_INLINE void CallStream::end_argument(Events& events) {
  const auto [key, value] = calls_.shared_->format.member(format_).read_argument(
      calls_.tools()[tool_], given_, before_, argument_);
  std::string text = given_++ == 0 ? "{" : ", ";
  text::append_json_string(text, key);
  text += ": " + text::write_json(value);
  add(Kind::arguments, std::string_view(text).substr(open_->size()), events);
  *open_ = {};
  before_.clear();
  if (old_ > 0) ended_ = std::move(argument_);
  old_ = 0;
  argument_.clear();
}

TOOLDECODE_INLINE void CallStream::enter(Part part, Events& events) {
  if (part == part_) return;
  switch (part_) {
    case Part::text:
    case Part::more_text:
    case Part::reasoning: {
      std::string rest = characters_.push(delimiters_.finish());
      if (part == Part::more_text && delimiters_.found() != nullptr) {
        rest += characters_.push(*delimiters_.found());
      }
      rest += characters_.finish();
      add(part_ == Part::reasoning ? Kind::reasoning : Kind::text, rest, events);
      break;
    }
    case Part::text_value:
      add(Kind::text, characters_.finish(), events);
      break;
    case Part::arguments:
      add(Kind::arguments, characters_.finish(), events);
      break;
    default:
      break;
  }
  part_            = part;
  const auto& ends = calls_.shared_->reading;
  if (part == Part::text) {
    auto all = ends.text_ends;
    all.insert(all.end(), ends.turn_ends.begin(), ends.turn_ends.end());
    delimiters_ = text::StopFinder(std::move(all));
  }
  if (part == Part::more_text) delimiters_ = text::StopFinder(ends.text_ends);
  if (part == Part::reasoning) delimiters_ = text::StopFinder(ends.reasoning_ends);
}

TOOLDECODE_INLINE void CallStream::add(Kind kind, std::string_view text, Events& events) const {
  if (text.empty()) return;
  const std::size_t call = kind == Kind::arguments ? call_ : 0;
  if (!events.empty() && events.back().kind == kind && events.back().call == call) {
    events.back().text += text;
  } else {
    events.push_back({.kind = kind, .call = call, .text = std::string(text)});
  }
}

TOOLDECODE_INLINE CallStream::Label CallStream::label(Part part, std::size_t tool,
                                                      std::size_t format) noexcept {
  return static_cast<Label>(part) << 32 | format << 24 | tool;
}

}  // namespace tooldecode
