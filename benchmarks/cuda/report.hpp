// The table, the verdicts and the JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace cuda_benchmark {

// The performance goals of the kernels.
enum class Requirement { none, pruned_head, masked_softmax, tree_attention };

// Another way to compute the same result.
struct Peer {
  std::string name;
  double microseconds = 0;
};

// One kernel at one size.
struct Result {
  std::string kernel      = {};
  std::string numbers     = {};  // "BF16"
  std::string size        = {};
  Timing timing           = {};
  double floor            = 0;  // microseconds; 0: unknown
  std::vector<Peer> peers = {};
  Requirement requirement = Requirement::none;
};

class Report {
 public:
  // \param only  measurements without this text in their name are left out
  explicit Report(const Ceilings& ceilings, std::string only = {})
      : ceilings_(ceilings), only_(std::move(only)) {}

  void add(Result result);
  // Runs `measure`; an exception is recorded as a failure and does not stop the others.
  void attempt(const std::string& what, const std::function<void()>& measure);

  void print_verdicts() const;
  [[nodiscard]] bool has_failures() const { return !failures_.empty(); }

  struct Origin {
    std::string machine, cuda, driver, cublas, cub, date, commit, command;
    std::string made_by;
  };
  void write(const std::string& path, const Origin& origin) const;

 private:
  Ceilings ceilings_;
  std::string only_;
  std::vector<Result> results_;
  std::vector<std::string> failures_;
};

}  // namespace cuda_benchmark
