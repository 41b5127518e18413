#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/explain_refusal.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/thread_pool.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>

#include "handles.hpp"
#include "mask_memory.hpp"
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace tooldecode::python {
namespace {

using namespace nb::literals;
using c_interface::Constrained;
using State = ConstraintHandle::State;

// Ids that are none of the vocabulary are tokens that are not allowed, as drafters may have more.
std::optional<State> advance_by(const Constrained& constraint, State state, std::int64_t token) {
  if (token < 0 || token > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return constraint.advance(state, static_cast<std::int32_t>(token));
}

std::optional<StateHandle> advance(const ConstraintHandle& self, const StateHandle& state,
                                   std::int64_t token) {
  return self.give(advance_by(self.constraint(), self.take(state), token));
}

std::optional<StateHandle> advance_bytes(const ConstraintHandle& self, const StateHandle& state,
                                         const nb::bytes& bytes) {
  const State from = self.take(state);
  return self.give(self.constraint().advance_bytes(from, {bytes.c_str(), bytes.size()}));
}

// The state after those tokens that are allowed, and how many they are.
std::pair<State, std::size_t> follow(const Constrained& constraint, State state,
                                     const std::vector<std::int64_t>& tokens) {
  std::size_t allowed = 0;
  for (; allowed < tokens.size(); ++allowed) {
    const auto next = advance_by(constraint, state, tokens[allowed]);
    if (!next) break;
    state = *next;
  }
  return {state, allowed};
}

std::optional<StateHandle> advance_tokens(const ConstraintHandle& self, const StateHandle& state,
                                          const std::vector<std::int64_t>& tokens) {
  const auto [last, allowed] = follow(self.constraint(), self.take(state), tokens);
  return allowed == tokens.size() ? std::optional(self.give(last)) : std::nullopt;
}

std::size_t validate(const ConstraintHandle& self, const StateHandle& state,
                     const std::vector<std::int64_t>& tokens) {
  return follow(self.constraint(), self.take(state), tokens).second;
}

void fill_mask(const ConstraintHandle& self, const StateHandle& state, nb::handle array,
               std::size_t row) {
  const Constraint& constraint = self.constraint().constraint();
  const State from             = self.take(state);
  const MaskMemory memory(array, constraint.vocabulary_size());
  const MaskView words = memory.row(row);
  const nb::gil_scoped_release release;
  constraint.fill_mask(from, words);
}

std::optional<nb::object> explain_refusal(const ConstraintHandle& self, nb::handle text) {
  const std::string whole = json_text(text);
  std::optional<RefusedText> refused;
  {
    const nb::gil_scoped_release release;
    refused = self.constraint().explain_refusal(whole);
  }
  if (!refused) return std::nullopt;
  nb::list rules;
  for (const RefusedText::Rule& rule : refused->rules) {
    rules.append(nb::make_tuple(rule.pointer, rule.value));
  }
  return python_type("RefusedText")(refused->at, refused->too_short, refused->line, refused->column,
                                    refused->excerpt, refused->caret, refused->reason,
                                    refused->expected, refused->value_at, rules, refused->text());
}

using Rows = std::optional<std::vector<std::size_t>>;
// For each row the state whose mask it holds, or None.
using Shown = std::optional<nb::sequence>;

// States of `shown` [count]; State{} for None. They are copied, since a sequence may make its items
// when it is asked for them.
std::vector<State> states_shown(const nb::sequence& shown, std::size_t count) {
  std::vector<State> states;
  for (const nb::handle one : shown) {
    const StateHandle* given = nullptr;
    if (!one.is_none() && !nb::try_cast(one, given)) {
      throw Error(Errc::invalid_option, "shown/" + std::to_string(states.size()),
                  "must be a State or None");
    }
    states.push_back(given == nullptr ? State{} : given->state);
  }
  if (states.size() == count) return states;
  throw Error(Errc::shape_mismatch, "shown", "must be one for each state");
}

// Writes masks of states [B], after all is checked; `constraints` [B] or [1].
void fill_batch(const std::vector<const ConstraintHandle*>& constraints, const nb::sequence& states,
                nb::handle array, const Rows& rows, ThreadPool* pool, const Shown& shown) {
  struct Job {
    const Constraint* constraint;
    State state;
    MaskView words;
    State shown{};
  };
  std::vector<Job> jobs;
  for (const nb::handle state : states) {
    const std::size_t i = jobs.size();
    if (constraints.size() != 1 && i >= constraints.size()) {
      throw Error(Errc::shape_mismatch, "states", "must be one for each constraint");
    }
    const ConstraintHandle& owner = *constraints[constraints.size() == 1 ? 0 : i];
    try {
      const StateHandle* given = nullptr;
      if (!nb::try_cast(nb::handle(state), given) || given == nullptr) {
        throw Error(
            Errc::invalid_option, "",
            "must be a State, and not None, which advance gives for a token that is not allowed");
      }
      jobs.push_back({&owner.constraint().constraint(), owner.take(*given), {}});
    } catch (const Error& error) {
      throw Error(error.code(), "states/" + std::to_string(i), error.what());
    }
  }
  if (constraints.size() > 1 && jobs.size() != constraints.size()) {
    throw Error(Errc::shape_mismatch, "states", "must be one for each constraint");
  }
  if (rows && rows->size() != jobs.size()) {
    throw Error(Errc::shape_mismatch, "rows", "must be one for each state");
  }
  if (shown) {
    const std::vector<State> known = states_shown(*shown, jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].shown = known[i];
  }
  if (constraints.empty()) return;
  const std::size_t size = constraints[0]->constraint().constraint().vocabulary_size();
  for (std::size_t i = 1; i < constraints.size(); ++i) {
    if (constraints[i]->constraint().words() == mask_word_count(size)) continue;
    throw Error(Errc::shape_mismatch, "constraints/" + std::to_string(i),
                "must have masks as long as the first one's");
  }
  const MaskMemory memory(array, size);
  std::vector<bool> is_taken(memory.rows());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::size_t row = rows ? (*rows)[i] : i;
    jobs[i].words         = memory.row(row);
    if (is_taken[row]) {
      throw Error(Errc::invalid_option, "rows/" + std::to_string(i),
                  "must be no row of another state");
    }
    is_taken[row] = true;
  }
  const auto fill = [&jobs](std::size_t i) {
    jobs[i].constraint->update_mask(jobs[i].shown, jobs[i].state, jobs[i].words);
  };
  const nb::gil_scoped_release release;
  if (pool != nullptr) return (*pool)(jobs.size(), fill);
  for (std::size_t i = 0; i < jobs.size(); ++i) fill(i);
}

void fill_masks(const ConstraintHandle& self, const nb::sequence& states, nb::handle array,
                const Rows& rows, ThreadPool* pool, const Shown& shown) {
  fill_batch({&self}, states, array, rows, pool, shown);
}

void fill_masks_of(const nb::sequence& constraints, const nb::sequence& states, nb::handle array,
                   const Rows& rows, ThreadPool* pool, const Shown& shown) {
  std::vector<nb::object> kept;  // whatever becomes of the list
  std::vector<const ConstraintHandle*> all;
  for (const nb::handle one : constraints) {
    const ConstraintHandle* given = nullptr;
    if (!nb::try_cast(one, given) || given == nullptr) {
      throw Error(Errc::invalid_option, "constraints/" + std::to_string(all.size()),
                  "must be a Constraint");
    }
    all.push_back(given);
    kept.push_back(nb::borrow(one));
  }
  if (all.size() == 1 && nb::len(states) != 1) {
    throw Error(Errc::shape_mismatch, "states", "must be one for each constraint");
  }
  fill_batch(all, states, array, rows, pool, shown);
}

std::size_t prepare(const ConstraintHandle& self, const StateHandle* state, std::size_t max_masks,
                    ThreadPool* pool) {
  const Constraint& constraint = self.constraint().constraint();
  const State from             = state != nullptr ? self.take(*state) : constraint.initial();
  const nb::gil_scoped_release release;
  if (pool == nullptr) return constraint.prepare(from, {.max_masks = max_masks});
  pool->submit([constraint, from, max_masks, pool] {
    (void)constraint.prepare(from, {.max_masks = max_masks, .cancelled = &pool->is_stopping()});
  });
  return 0;
}

std::vector<TokenId> forced_tokens(const ConstraintHandle& self, const StateHandle& state,
                                   const nb::bytes& before) {
  const auto& tokens = self.constraint().tokens();
  const State from   = self.take(state);
  if (!tokens.forced) {
    throw Error(Errc::malformed_vocabulary, "vocabulary",
                "has no tokenizer, as it was made of the bytes of tokens");
  }
  const std::string text(before.c_str(), before.size());
  const nb::gil_scoped_release release;
  return (*tokens.forced)(self.constraint().constraint(), from, text);
}

// What is made for one answer: which tokens leave room for its end.
class CompletionsHandle {
 public:
  explicit CompletionsHandle(ConstraintHandle constraint)
      : constraint_(std::move(constraint)), completions_(constraint_.constraint().constraint()) {}

  [[nodiscard]] std::optional<std::size_t> shortest(const StateHandle& state, std::size_t enough) {
    return completions_.shortest(constraint_.take(state), enough);
  }
  void narrow(const StateHandle& state, std::size_t remaining, nb::handle array, std::size_t row) {
    const State from = constraint_.take(state);
    if (remaining == 0)
      throw Error(Errc::invalid_option, "remaining", remaining, "must be 1 or more");
    const MaskMemory memory(array, constraint_.constraint().constraint().vocabulary_size());
    completions_.narrow(from, remaining, memory.row(row));
  }

 private:
  ConstraintHandle constraint_;
  Completions completions_;
};

nb::object calls_of(const std::vector<ToolCall>& calls) {
  const nb::object type  = python_type("ToolCall");
  const nb::object loads = nb::module_::import_("json").attr("loads");
  nb::list all;
  for (const ToolCall& call : calls) {
    all.append(
        type(nb::str(call.name.data(), call.name.size()), loads(text::write_json(call.arguments))));
  }
  return all;
}

nb::list notes_of(const CallsHandle& self) {
  const nb::object type = python_type("Note");
  nb::list all;
  for (const tools::Note& note : self.calls().tools().notes()) {
    const std::string_view reading = name(note.reading);
    all.append(type(note.tool, note.pointer, nb::str(reading.data(), reading.size()), note.text));
  }
  return all;
}

// A call to be written, given as a name and its arguments.
ToolCall call_of(nb::handle given, const std::string& place) {
  std::string name;
  const bool is_pair = nb::isinstance<nb::sequence>(given) && nb::len(given) == 2;
  if (!is_pair || !nb::isinstance<nb::str>(nb::object(given[0])) ||
      !nb::try_cast(nb::object(given[0]), name)) {
    throw Error(Errc::invalid_option, place, "must be a name, a str of Unicode, and its arguments");
  }
  try {
    JsonValue arguments = text::parse_exact_json(json_text(nb::object(given[1])));
    if (arguments.is_object()) return {std::move(name), std::move(arguments)};
  } catch (const Error& error) {
    throw error.within(place);
  }
  throw Error(Errc::malformed_call, place, "the arguments must be an object");
}

void bind_state(nb::module_& module) {
  nb::class_<StateHandle>(
      module, "State",
      "Where a text stands: an immutable value of the constraint that gave it. To keep one is to be\n"
      "able to go back to it. Equal states allow the same texts. It cannot be pickled: pickle the\n"
      "tokens, and advance by them again.")
      .def(
          "__eq__",
          [](const StateHandle& self, nb::handle other) {
            const StateHandle* one = nullptr;
            return nb::try_cast(other, one) && one != nullptr && *one == self;
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const StateHandle& self) {
             const std::uint64_t value = std::uint64_t{self.state.memory} << 32 | self.state.id;
             return core::hash_combine(self.owner, value) >> 1;
           })
      .def("__copy__", [](nb::object self) { return self; })
      .def("__deepcopy__", [](nb::object self, const nb::object& /*memo*/) { return self; })
      .def("__repr__", [](const StateHandle& self) {
        return "<tooldecode.State " + std::to_string(self.state.id) + " of constraint " +
               std::to_string(self.owner) + '>';
      });
}

}  // namespace

void bind_constraint(nb::module_& module) {
  bind_state(module);
  nb::class_<ThreadPool>(
      module, "ThreadPool",
      "Threads that share the work of fill_masks with the caller. They pay where masks\n"
      "are new to a constraint, or many. Make it behind a fork.")
      .def(nb::init<std::size_t>(), "threads"_a = ThreadPool::usual_threads(),
           nb::sig("def __init__(self, threads: int = ...) -> None"))
      .def_prop_ro("size", &ThreadPool::size, "How many there are beside those that call.");

  nb::class_<ConstraintHandle>(
      module, "Constraint",
      "Decides which tokens may follow. Immutable, and safe from any number of threads.\n\n"
      "A state of another constraint is Error unknown_state everywhere. Arrays for masks are of\n"
      "int32 or uint32, [W] or [rows, W] with W = ceil(V / 32), without gaps, in the CPU's memory:\n"
      "NumPy, torch, whatever offers the buffer protocol or DLPack; a bytearray of 4 W bytes is one mask,\n"
      "in the machine's order of bytes. Bit t % 32 of word t // 32 is 1\n"
      "where token t is allowed. Any other array is an Error (shape_mismatch, unknown_format,\n"
      "invalid_option) before anything is written.")
      .def_prop_ro(
          "vocabulary_size",
          [](const ConstraintHandle& self) {
            return self.constraint().constraint().vocabulary_size();
          },
          "V.")
      .def("__repr__",
           [](const ConstraintHandle& self) {
             return "<tooldecode.Constraint over " +
                    std::to_string(self.constraint().constraint().vocabulary_size()) + " tokens>";
           })
      .def_prop_ro(
          "mask_words", [](const ConstraintHandle& self) { return self.constraint().words(); },
          "W = ceil(V / 32): the words of a mask.")
      .def_prop_ro(
          "memory_bytes",
          [](const ConstraintHandle& self) { return self.constraint().constraint().bytes(); },
          "About how much memory its states and masks take, with those that share them.")
      .def(
          "renew", &ConstraintHandle::renewed,
          "The same constraint for a new text, in other memory where this one's has grown past the\n"
          "vocabulary's `memory_bytes`; states from before are then unknown to it.")
      .def(
          "initial",
          [](const ConstraintHandle& self) { return self.give(self.constraint().initial()); },
          "The state before the first token.")
      .def("advance", &advance, "state"_a, "token"_a,
           "The state after a token; None where it is not allowed, as any id past V.")
      .def("advance_tokens", &advance_tokens, "state"_a, "tokens"_a,
           "The state after tokens [count]; None where one of them is not allowed.")
      .def(
          "advance_bytes", &advance_bytes, "state"_a, "text"_a,
          "The state after bytes of text, wherever tokens begin and end; None where one of them is\n"
          "not allowed.")
      .def(
          "validate", &validate, "state"_a, "tokens"_a,
          "Judges tokens [count], of a draft or a whole text: how many of them, from the first, are allowed\n"
          "one behind the other. All of them are where a text conforms as far as it goes.")
      .def(
          "fill_mask", &fill_mask, "state"_a, "array"_a.none(), "row"_a = 0,
          nb::sig("def fill_mask(self, state: State, array: typing.Any, row: int = 0) -> None"),
          "Writes the tokens that advance allows into a row of an array. Other threads run meanwhile.")
      .def(
          "fill_masks", &fill_masks, "states"_a, "array"_a.none(), "rows"_a = nb::none(),
          "pool"_a = nb::none(), "shown"_a = nb::none(),
          nb::sig(
              "def fill_masks(self, states: collections.abc.Sequence[State], array: typing.Any, rows: "
              "collections.abc.Sequence[int] | None = None, pool: ThreadPool | None = None, "
              "shown: collections.abc.Sequence[State | None] | None = None) -> None"),
          "The same for states [B], into rows [B] (None: 0, 1, 2, ...; no row twice). Other rows stay\n"
          "as they are. shown [B]: the state whose mask each row holds, so that only what differs is\n"
          "written; None: unknown.")
      .def(
          "prepare", &prepare, "state"_a.none() = nb::none(), "max_masks"_a = 1000,
          "pool"_a = nb::none(),
          nb::sig(
              "def prepare(self, state: State | None = None, max_masks: int = 1000, pool: ThreadPool | None = "
              "None) -> int"),
          "Computes masks that texts after a state (None: the initial one) are likely to need, and\n"
          "returns how many it made; with a pool it does so in the background and returns 0. For the\n"
          "time while a prompt is read. Other threads do not wait for it.")
      .def(
          "is_accepting",
          [](const ConstraintHandle& self, const StateHandle& state) {
            return self.constraint().constraint().is_accepting(self.take(state));
          },
          "state"_a, "Whether the text may end here; an end token is then allowed.")
      .def(
          "is_finished",
          [](const ConstraintHandle& self, const StateHandle& state) {
            return self.constraint().constraint().is_finished(self.take(state));
          },
          "state"_a, "Whether an end token has come; only end tokens are allowed then.")
      .def(
          "forced",
          [](const ConstraintHandle& self, const StateHandle& state) {
            const std::string bytes = self.constraint().constraint().jump_forward(self.take(state));
            return nb::bytes(bytes.data(), bytes.size());
          },
          "state"_a, "The bytes that every text goes on with, 256 at most.")
      .def(
          "forced_tokens", &forced_tokens, "state"_a, "before"_a,
          "The tokens that every text goes on with, as the model's tokenizer writes it: they can be put\n"
          "in without a pass. `before` is what the model has written, or the end of it from where the\n"
          "tokenizer begins anew.")
      .def(
          "explain_refusal", &explain_refusal, "text"_a,
          nb::sig("def explain_refusal(self, text: str | bytes) -> tooldecode.RefusedText | None"),
          "The first place of a whole text that is refused, what was expected there, and which keywords\n"
          "of the schema or of the tools' documents forbid it; None where the text conforms. Builds the\n"
          "constraint again with less in it, within its limits. Other threads run meanwhile.")
      .def("__copy__", [](nb::object self) { return self; })
      .def("__deepcopy__", [](nb::object self, const nb::object& /*memo*/) { return self; });

  nb::class_<CallsHandle, ConstraintHandle>(
      module, "ToolCallFSM",
      "The constraint of whole answers: free text where that is allowed, and calls in one format.")
      .def("__repr__",
           [](const CallsHandle& self) {
             std::string names;
             for (const Tool& tool : self.calls().tools()) {
               names += (names.empty() ? " of " : ", ") + tool.name;
             }
             return "<tooldecode.ToolCallFSM" + names + '>';
           })
      .def(
          "parse",
          [](const CallsHandle& self, const std::string& text) {
            return calls_of(self.calls().parse(text));
          },
          "text"_a, nb::sig("def parse(self, text: str) -> list[tooldecode.ToolCall]"),
          "The calls that a text makes; Error malformed_call names the byte where it breaks the format.\n"
          "It reads and does not judge: whether arguments conform is what `advance_bytes` from `initial`\n"
          "says, or `validate` of the tokens.")
      .def_prop_ro(
          "not_enforced",
          [](const CallsHandle& self) {
            nb::list all;
            for (const tools::Note& note : self.calls().tools().notes()) {
              if (tools::is_given_up(note.reading)) {
                all.append(nb::make_tuple(note.tool, note.pointer, note.text));
              }
            }
            return all;
          },
          nb::sig("def not_enforced(self) -> list[tuple[str, str, str]]"),
          "What is not enforced of the tools, see `enforcement` of tool_calls: the tool, the JSON pointer of\n"
          "the cause, and what was given up and why.")
      .def_prop_ro(
          "notes", &notes_of, nb::sig("def notes(self) -> list[tooldecode.Note]"),
          "The places of the tools' documents that are not read literally or contradict themselves, such as\n"
          "a keyword that is misspelt; then what is not enforced.")
      .def(
          "renew", [](const CallsHandle& self) { return CallsHandle(self.renewed()); },
          "See Constraint.renew.")
      .def(
          "write",
          [](const CallsHandle& self, const nb::sequence& calls) {
            std::vector<ToolCall> all;
            for (const nb::handle call : calls) {
              all.push_back(call_of(call, "calls/" + std::to_string(all.size())));
            }
            return self.calls().write(all);
          },
          "calls"_a,
          nb::sig(
              "def write(self, calls: collections.abc.Sequence[tuple[str, dict[str, typing.Any]]]) -> str"),
          "Calls, each a name and its arguments, as a model of this format writes them.");

  nb::class_<CompletionsHandle>(
      module, "Completions",
      "Which tokens leave room for the end of a text, where only so many more may come. Of one answer,\n"
      "or of one batch of its branches; one thread at a time.")
      .def(nb::init<const ConstraintHandle&>(), "constraint"_a)
      .def(
          "shortest", &CompletionsHandle::shortest, "state"_a, "enough"_a = 0,
          "Tokens of the shortest completion of a state, the end token included; None where none was\n"
          "found. Not made sure to be the shortest where it is at most `enough`.")
      .def(
          "narrow", &CompletionsHandle::narrow, "state"_a, "remaining"_a, "array"_a.none(),
          "row"_a = 0,
          nb::sig(
              "def narrow(self, state: State, remaining: int, array: typing.Any, row: int = 0) -> None"),
          "Takes out of the state's mask, in a row of an array, the tokens after which the text cannot end\n"
          "within `remaining` tokens, this one and the end token included.");

  module.def(
      "fill_masks", &fill_masks_of, "constraints"_a, "states"_a, "array"_a.none(),
      "rows"_a = nb::none(), "pool"_a = nb::none(), "shown"_a = nb::none(),
      nb::sig(
          "def fill_masks(constraints: collections.abc.Sequence[Constraint], states: "
          "collections.abc.Sequence[State], array: typing.Any, rows: collections.abc.Sequence[int] | None = None, "
          "pool: ThreadPool | None = None, shown: collections.abc.Sequence[State | None] | None = None) -> None"),
      "The masks of states [B], each of its own constraint [B], see Constraint.fill_masks.");
}

}  // namespace tooldecode::python
