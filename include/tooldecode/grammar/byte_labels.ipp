#pragma once

#include <tooldecode/grammar/byte_labels.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE ByteLabels::ByteLabels(const Automaton& automaton, Automaton::State initial,
                                         LabelOf label_of)
    : automaton_(&automaton), label_of_(std::move(label_of)) {
  const auto positions = automaton.positions(initial);
  readings_.push_back({{}, {positions.begin(), positions.end()}});
}

TOOLDECODE_INLINE ByteLabels::Frames& ByteLabels::at(std::vector<std::pair<Label, Frames>>& parts,
                                                     Label label) {
  for (auto& [known, frames] : parts) {
    if (known == label) return frames;
  }
  return parts.emplace_back(label, Frames()).second;
}

TOOLDECODE_INLINE ByteLabels::Frames& ByteLabels::at(std::vector<Reading>& readings,
                                                     const std::vector<Label>& labels) {
  for (Reading& reading : readings) {
    if (reading.labels == labels) return reading.frames;
  }
  return readings.emplace_back(Reading{labels, {}}).frames;
}

TOOLDECODE_INLINE void ByteLabels::forget_repeated() {
  for (std::size_t i = readings_.size(); i-- > 1;) {
    std::erase_if(readings_[i].frames, [&](const StackFrame& frame) {
      return std::any_of(readings_.begin(), readings_.begin() + static_cast<std::ptrdiff_t>(i),
                         [&](const Reading& before) {
                           return std::find(before.frames.begin(), before.frames.end(), frame) !=
                                  before.frames.end();
                         });
    });
  }
  std::erase_if(readings_, [](const Reading& reading) { return reading.frames.empty(); });
}

TOOLDECODE_INLINE ByteLabels::Label ByteLabels::label(const StackFrame& frame) {
  if (!has_last_ || frame.below != last_below_) {
    last_label_ = label_of_(automaton_->tags_at(frame));
    last_below_ = frame.below;
    has_last_   = true;
  }
  return last_label_;
}

}  // namespace tooldecode::grammar
