/// \file
/// BatchSequence: what a BatchLoop asks of each of its sequences.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>

namespace tooldecode::decode {

struct Run;
class SpeculativeSequence;

/// One answer in a batch, decoded a pass at a time.
///
/// The batch calls `take_forced` until it returns false. Unless the answer has ended, it then reads
/// what `add_readings` names in one pass with the other sequences, and calls `take_pass`.
///
/// \par Threads     one thread at a time
class BatchSequence {
 public:
  virtual ~BatchSequence() = default;

  [[nodiscard]] virtual bool is_finished() const noexcept = 0;
  [[nodiscard]] virtual Output& output() noexcept         = 0;
  /// What the model has read so far; move from it only when decoding is over.
  [[nodiscard]] virtual CachedPrefix& read_so_far() noexcept = 0;

  /// Frees the caches for other sequences. The model must read everything again.
  virtual void give_up_cache() = 0;

  /// Takes the next token if it needs no pass, and returns whether it did.
  virtual bool take_forced() = 0;

  /// Tokens that the model must read before the next token is chosen.
  [[nodiscard]] virtual std::size_t unread_count() const noexcept = 0;
  /// Whether so much is unread that it may be read in parts: a prompt, or a tool's result.
  [[nodiscard]] virtual bool is_prefilling() const noexcept = 0;
  /// The next pass reads at most so many tokens, and takes none if more are unread.
  virtual void limit_reading(std::size_t tokens) noexcept = 0;

  /// Appends what the next pass reads for this sequence. If it throws limit_exceeded, nothing has
  /// changed and it can be called again.
  virtual void add_readings(std::vector<BatchReading>& readings) = 0;
  /// Takes tokens from the result of that pass.
  ///
  /// \param first  place in the pass of the sequence's first reading
  virtual void take_pass(BatchPass& pass, std::size_t first) = 0;

  /// The sequence as one that makes drafts; null if it makes none.
  [[nodiscard]] virtual SpeculativeSequence* speculative() noexcept { return nullptr; }
};

/// Makes the sequence of a run; it outlives neither. `read` is a proper prefix of the run's prompt.
using MakeSequence =
    std::function<std::unique_ptr<BatchSequence>(ModelRef, const Run& run, CachedPrefix read)>;

}  // namespace tooldecode::decode
