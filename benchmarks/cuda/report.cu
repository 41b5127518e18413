#include <cstdio>
#include <exception>
#include <fstream>
#include <utility>

#include "report.hpp"

namespace cuda_benchmark {

namespace {

struct Goal {
  Requirement requirement;
  const char* text;
  double share;
};
constexpr Goal goals[] = {
    {Requirement::pruned_head,
     "pruned head: 85 % of the copy bandwidth at K >= 32k, H = 4096, n = 1 and 10", 0.85},
    {Requirement::masked_softmax, "masked softmax: 80 % of the copy bandwidth at V = 128k, B >= 64",
     0.80},
    {Requirement::tree_attention,
     "tree attention: 60 % of its floor at 8k to 32k tokens, 60 nodes, 32/8 heads, dim 128", 0.60},
};

double share(const Result& result) {
  return result.floor / result.timing.microseconds;
}

// The result furthest from its floor; null if none was measured.
const Result* find_least(const std::vector<Result>& results, Requirement requirement) {
  const Result* minimum = nullptr;
  for (const Result& result : results) {
    if (result.requirement != requirement) continue;
    if (minimum == nullptr || share(result) < share(*minimum)) minimum = &result;
  }
  return minimum;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

std::string rounded(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

std::string listed(char open, const std::vector<std::string>& entries, char close) {
  std::string out(1, open);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out += (i == 0 ? "\n  " : ",\n  ") + entries[i];
  }
  return out + (entries.empty() ? "" : "\n ") + close;
}

std::string as_json(const Result& result) {
  std::string peers;
  for (const Peer& peer : result.peers) {
    peers += (peers.empty() ? "" : ", ") + quoted(peer.name) + ": " + rounded(peer.microseconds);
  }
  return "{\"kernel\": " + quoted(result.kernel) + ", \"numbers\": " + quoted(result.numbers) +
         ", \"size\": " + quoted(result.size) +
         ", \"microseconds\": " + rounded(result.timing.microseconds) +
         ", \"spread\": " + rounded(result.timing.spread) +
         ", \"floor_microseconds\": " + rounded(result.floor) +
         ", \"share_of_floor\": " + rounded(share(result)) + ", \"peer_microseconds\": {" + peers +
         "}}";
}

}  // namespace

void Report::add(Result result) {
  if (results_.empty()) {
    std::printf("\n%-36s %-4s %-26s %9s %9s %5s %10s %6s\n", "", "", "", "us", "floor", "of it",
                "peer's us", "ratio");
  }
  std::printf("%-36s %-4s %-26s %9.2f ", result.kernel.c_str(), result.numbers.c_str(),
              result.size.c_str(), result.timing.microseconds);
  if (result.floor > 0) {
    std::printf("%9.2f %4.0f%%\n", result.floor, 100 * share(result));
  } else {
    std::printf("%9s %5s\n", "", "");
  }
  for (const Peer& peer : result.peers) {
    std::printf("%93s %9.2f %5.2fx  %s\n", "", peer.microseconds,
                peer.microseconds / result.timing.microseconds, peer.name.c_str());
  }
  std::fflush(stdout);
  results_.push_back(std::move(result));
}

void Report::attempt(const std::string& what, const std::function<void()>& measure) {
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  if (!contains(what, only_) && !contains(only_, what)) return;  // the latter has parts
  try {
    measure();
  } catch (const std::exception& error) {
    failures_.push_back(what + ": " + error.what());
    std::printf("FAILED: %s\n", failures_.back().c_str());
    std::fflush(stdout);
  }
}

void Report::print_verdicts() const {
  std::printf("\n");
  for (const Goal& goal : goals) {
    const Result* minimum = find_least(results_, goal.requirement);
    if (minimum == nullptr) {
      std::printf("NOT MEASURED: %s\n", goal.text);
    } else {
      std::printf("%s: %s; least %.1f %% (%s, %s, %s)\n",
                  share(*minimum) >= goal.share ? "HOLDS" : "MISSED", goal.text,
                  100 * share(*minimum), minimum->kernel.c_str(), minimum->numbers.c_str(),
                  minimum->size.c_str());
    }
  }
  for (const std::string& failure : failures_) std::printf("FAILED: %s\n", failure.c_str());
}

void Report::write(const std::string& path, const Origin& origin) const {
  std::vector<std::string> results, failures, verdicts;
  for (const Result& result : results_) results.push_back(as_json(result));
  for (const std::string& failure : failures_) failures.push_back(quoted(failure));
  for (const Goal& goal : goals) {
    const Result* minimum = find_least(results_, goal.requirement);
    if (minimum == nullptr) continue;
    verdicts.push_back(
        "{\"goal\": " + quoted(goal.text) + ", \"least_share\": " + rounded(share(*minimum)) +
        ", \"at\": " + quoted(minimum->kernel + ", " + minimum->numbers + ", " + minimum->size) +
        ", \"holds\": " + (share(*minimum) >= goal.share ? "true" : "false") + "}");
  }
  const std::string unfinished = path + ".new";  // so that a complete file always exists
  std::ofstream(unfinished)
      << "{\n"
      << " \"question\": \"CUDA kernels against the memory they read and against libraries\",\n"
      << " \"made_by\": " << (origin.made_by.empty() ? "null" : origin.made_by) << ",\n"
      << " \"machine\": " << quoted(origin.machine) << ",\n"
      << " \"cuda\": " << quoted(origin.cuda) << ",\n"
      << " \"driver\": " << quoted(origin.driver) << ",\n"
      << " \"cublas\": " << quoted(origin.cublas) << ",\n"
      << " \"cub\": " << quoted(origin.cub) << ",\n"
      << " \"date\": " << quoted(origin.date) << ",\n"
      << " \"commit\": " << quoted(origin.commit) << ",\n"
      << " \"command\": " << quoted(origin.command) << ",\n"
      << " \"times\": \"CUDA events around replayed graphs, medians; buffers that exceed the cache "
         "in turn\",\n"
      << " \"copy_gigabytes_per_second\": " << rounded(ceilings_.copy_bandwidth / 1e3) << ",\n"
      << " \"read_gigabytes_per_second\": " << rounded(ceilings_.read_bandwidth / 1e3) << ",\n"
      << " \"matmul_teraflops\": " << rounded(ceilings_.matmul_rate / 1e6) << ",\n"
      << " \"verdicts\": " << listed('[', verdicts, ']') << ",\n"
      << " \"failures\": " << listed('[', failures, ']') << ",\n"
      << " \"results\": " << listed('[', results, ']') << "\n}\n";
  std::rename(unfinished.c_str(), path.c_str());
}

}  // namespace cuda_benchmark
