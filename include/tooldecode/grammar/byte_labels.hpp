/// \file
/// ByteLabels: finds the grammar's marks around each byte of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

/// Reads a text byte by byte and labels each byte with the marks (Grammar::tagged) around the node
/// that read it. A byte with several readings gets its label once all remaining readings agree.
///
/// If the grammar's labels are unambiguous, a label is delayed by at most the longest text that two
/// labels share, such as the beginning of a delimiter.
///
/// \par Complexity  O(positions + unlabelled bytes) per byte
/// \par Threads     a value; one thread at a time, beside any other use of the automaton
/// \par Source      parallel sets of readings: Thompson 1968
class ByteLabels {
 public:
  /// The caller's code for a list of marks, innermost first.
  using Label   = std::uint64_t;
  using LabelOf = std::function<Label(std::span<const std::uint32_t> tags)>;

  /// \param automaton  must outlive this object
  ByteLabels(const Automaton& automaton, Automaton::State initial, LabelOf label_of);

  /// Reads a byte and passes each byte whose label is now known to `take`, in order. Returns false,
  /// with no change, if the byte is not allowed.
  template <class Take>
  bool push(char byte, const Take& take) {
    std::vector<Reading> next;
    {
      Automaton::Cursor walk(*automaton_);
      std::vector<std::pair<Label, Frames>> parts;
      for (const Reading& reading : readings_) {
        parts.clear();
        for (const StackFrame& frame : reading.frames) {
          at(parts, label(frame)).push_back(frame);
        }
        for (const auto& [label, frames] : parts) {
          const auto begin = walk.begin(frames);
          const auto after = walk.step(begin, static_cast<std::uint8_t>(byte));
          if (!after.empty()) {
            std::vector<Label> labels = reading.labels;
            labels.push_back(label);
            const auto positions = walk.positions(after);
            Frames& all          = at(next, labels);
            all.insert(all.end(), positions.begin(), positions.end());
          }
          walk.drop(begin);
        }
      }
    }
    if (next.empty()) return false;
    readings_ = std::move(next);
    forget_repeated();
    bytes_ += byte;
    settle(take);
    return true;
  }

  /// Labels the remaining bytes by one reading, one that may end here if there is one; returns
  /// whether there is. Push nothing after it.
  template <class Take>
  bool finish(const Take& take) {
    const auto ends = [](const Reading& reading) {
      return std::any_of(reading.frames.begin(), reading.frames.end(),
                         [](const StackFrame& frame) { return frame.node == Positions::text_end; });
    };
    const auto found = std::find_if(readings_.begin(), readings_.end(), ends);
    const bool whole = found != readings_.end();
    if (!whole) {
      readings_.resize(1);
    } else {
      readings_ = {Reading(*found)};
    }
    settle(take);
    return whole;
  }

  /// Whether all bytes are labelled, and the next one can only have labels for which `is_of_kind`
  /// is true.
  template <class IsOfKind>
  [[nodiscard]] bool all_next(const IsOfKind& is_of_kind) {
    if (!bytes_.empty()) return false;
    for (const Reading& reading : readings_) {
      for (const StackFrame& frame : reading.frames) {
        if (!is_of_kind(label(frame))) return false;
      }
    }
    return true;
  }

 private:
  using Frames = std::vector<StackFrame>;
  // Positions with equal labels for the unlabelled bytes.
  struct Reading {
    std::vector<Label> labels;
    Frames frames;
  };

  static Frames& at(std::vector<std::pair<Label, Frames>>& parts, Label label);
  static Frames& at(std::vector<Reading>& readings, const std::vector<Label>& labels);

  // If readings reach the same position, keeps the first: they no longer differ.
  void forget_repeated();

  // Cached for the last stack, because most positions have the same marks as the one before.
  [[nodiscard]] Label label(const StackFrame& frame);

  // Passes on the bytes whose labels all readings agree on.
  template <class Take>
  void settle(const Take& take) {
    const std::vector<Label>& labels = readings_[0].labels;
    std::size_t count                = labels.size();
    for (const Reading& reading : readings_) {
      const auto end =
          std::mismatch(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(count),
                        reading.labels.begin());
      count = static_cast<std::size_t>(end.first - labels.begin());
    }
    if (count == 0) return;
    const std::vector<Label> settled(labels.begin(),
                                     labels.begin() + static_cast<std::ptrdiff_t>(count));
    const std::string bytes = bytes_.substr(0, count);
    bytes_.erase(0, count);
    for (Reading& reading : readings_) {
      reading.labels.erase(reading.labels.begin(),
                           reading.labels.begin() + static_cast<std::ptrdiff_t>(count));
    }
    for (std::size_t i = 0; i < count; ++i) take(bytes[i], settled[i]);
  }

  const Automaton* automaton_;
  LabelOf label_of_;
  std::vector<Reading> readings_;
  std::string bytes_;
  bool has_last_ = false;
  StackId last_below_{};
  Label last_label_ = 0;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/byte_labels.ipp>
#endif
