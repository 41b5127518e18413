// tooldecode ranks: counts the tokens of texts and ranks the vocabulary by frequency.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include <program/command_line.hpp>
#include <program/commands.hpp>
#include <program/files.hpp>
#include <program/json.hpp>
#include <program/paths.hpp>
#include <program/plot.hpp>
#include <program/run_record.hpp>
#include <program/seconds.hpp>
#include <unistd.h>
#include <zlib.h>

namespace program {
namespace {

namespace td = tooldecode;
using Clock  = std::chrono::steady_clock;

struct RanksOptions {
  std::vector<std::string> texts;
  std::string vocabulary = std::string(data_folder) + "/tiny";
  std::string out, plot;
  std::size_t threads      = 0;
  bool json                = false;
  bool held_out            = false;
  std::size_t max_inflated = max_inflated_bytes;
};

// Streams the bytes of a file, inflated if it is gzip.
class FileBytes : public std::streambuf {
 public:
  explicit FileBytes(const std::string& path) : file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!file_ || std::filesystem::is_directory(path)) {
      throw td::Error(td::Errc::file_unreadable, path, "is not a file that can be read");
    }
  }

 private:
  int_type underflow() override {
    const int count = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int state       = Z_OK;
    gzerror(file_.get(), &state);
    // A truncated gzip file ends like a complete one, except for the state of the stream.
    if (count < 0 || (count == 0 && state == Z_BUF_ERROR)) {
      throw td::Error(td::Errc::file_unreadable, "", "is cut short or damaged");
    }
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return count == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_[0]);
  }

  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 16);
};

// Shows progress and speed on stderr from the third second on: twice a second on a terminal,
// elsewhere every ten seconds.
class Meter {
 public:
  void show(std::uint64_t bytes) {
    const auto pause = std::chrono::milliseconds(is_terminal_ ? 500 : 10'000);
    const auto now   = Clock::now();
    if (now - start_ < std::chrono::seconds(2) || now - shown_ < pause) return;
    shown_                 = now;
    const double megabytes = static_cast<double>(bytes) / 1e6;
    std::cerr << (is_terminal_ ? "\r\x1b[K" : "") << detail::rounded(megabytes) << " MB, "
              << detail::rounded(megabytes / seconds_since(start_)) << " MB/s"
              << (is_terminal_ ? "" : "\n") << std::flush;
  }
  void finish() const {
    if (is_terminal_ && shown_ != start_) std::cerr << "\r\x1b[K";
  }

 private:
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  bool is_terminal_        = isatty(STDERR_FILENO) == 1;
};

std::vector<td::TokenCounts> count_files(const td::Tokenizer& tokenizer,
                                         const RanksOptions& options) {
  std::vector<td::TokenCounts> counts;
  std::uint64_t before = 0;
  Meter meter;
  for (const std::string& path : options.texts) {
    FileBytes bytes(path);
    std::istream text(&bytes);
    try {
      counts.push_back(td::count_tokens(
          tokenizer, text, {.threads = options.threads, .on_progress = [&](std::uint64_t done) {
                              meter.show(before + done);
                            }}));
      before += counts.back().bytes();
    } catch (const td::Error& error) {
      throw td::Error(error.code(), path, error.what());
    }
  }
  meter.finish();
  return counts;
}

// What was counted, without folders, which differ between machines.
std::string source_of(const RanksOptions& options, const td::TokenCounts& counts) {
  std::string names;
  for (const std::string& path : options.texts) {
    names += (names.empty() ? "" : ", ") + std::filesystem::path(path).filename().string();
  }
  return names + " (" + std::to_string(counts.bytes()) + " bytes)";
}

std::string share_of_vocabulary(const td::FrequencyRanks& ranks, std::size_t k) {
  const double share = 100 * static_cast<double>(k) / static_cast<double>(ranks.size());
  return detail::rounded(share, "%.3g") + " %";
}

// The share of one text that the first ranks of all other texts cover.
struct HeldOut {
  std::string text;
  std::vector<td::FrequencyRanks::Coverage> coverage;
};

std::vector<HeldOut> hold_out(const td::Tokenizer& tokenizer, const RanksOptions& options,
                              const std::vector<td::TokenCounts>& by_file) {
  std::vector<HeldOut> rows;
  for (std::size_t out = 0; out < by_file.size(); ++out) {
    td::TokenCounts others(tokenizer.vocabulary().size());
    for (std::size_t file = 0; file < by_file.size(); ++file) {
      if (file != out) others += by_file[file];
    }
    const td::FrequencyRanks ranks(others.counts(), tokenizer.vocabulary());
    rows.push_back({std::filesystem::path(options.texts[out]).filename().string(), {}});
    for (const auto& [k, share] : ranks.coverage_table()) {
      std::uint64_t covered = 0;
      for (std::size_t id = 0; id < ranks.size(); ++id) {
        if (ranks.rank_of(static_cast<td::TokenId>(id)) < k) covered += by_file[out].counts()[id];
      }
      rows.back().coverage.push_back(
          {k, by_file[out].total() == 0
                  ? 0
                  : static_cast<double>(covered) / static_cast<double>(by_file[out].total())});
    }
  }
  return rows;
}

void print_held_out(const std::vector<HeldOut>& rows, std::size_t size) {
  if (rows.empty()) return;
  std::cout << "\nEach text by ranks of the others alone:\n\n| text |";
  for (const auto& [k, share] : rows.front().coverage) {
    std::cout << ' '
              << detail::rounded(100 * static_cast<double>(k) / static_cast<double>(size), "%.3g")
              << " % |";
  }
  std::cout << "\n| --- |";
  for (std::size_t i = 0; i < rows.front().coverage.size(); ++i) std::cout << " ---: |";
  for (const HeldOut& row : rows) {
    std::cout << "\n| " << row.text << " |";
    for (const auto& [k, share] : row.coverage) {
      std::cout << ' ' << detail::rounded(100 * share, "%.2f") << " % |";
    }
  }
  std::cout << '\n';
}

void print_table(const td::FrequencyRanks& ranks, const td::TokenCounts& counts, double seconds,
                 const std::vector<HeldOut>& held_out) {
  std::cout << "| of V | tokens | coverage |\n| ---: | ---: | ---: |\n";
  for (const auto& [k, share] : ranks.coverage_table()) {
    std::cout << "| " << share_of_vocabulary(ranks, k) << " | " << k << " | "
              << detail::rounded(100 * share, "%.2f") << " % |\n";
  }
  const double megabytes = static_cast<double>(counts.bytes()) / 1e6;
  std::cout << '\n'
            << counts.total() << " tokens, " << counts.distinct() << " of " << ranks.size()
            << " different ones; " << detail::rounded(megabytes, "%.2f") << " MB in "
            << detail::rounded(seconds, "%.2f") << " s (" << detail::rounded(megabytes / seconds)
            << " MB/s)\n";
  print_held_out(held_out, ranks.size());
}

Json to_json(const std::vector<td::FrequencyRanks::Coverage>& coverage) {
  Json table = Json::array();
  for (const auto& [k, share] : coverage) table.push_back({{"k", k}, {"share", share}});
  return table;
}

void print_json(const td::FrequencyRanks& ranks, const td::TokenCounts& counts, double seconds,
                const std::vector<HeldOut>& held_out) {
  Json report{{"made_by", run_record()},
              {"source", ranks.source()},
              {"vocabulary_size", ranks.size()},
              {"always", ranks.always_count()},
              {"tokens", counts.total()},
              {"distinct", counts.distinct()},
              {"bytes", counts.bytes()},
              {"seconds", seconds},
              {"coverage", to_json(ranks.coverage_table())}};
  for (const HeldOut& row : held_out) {
    report["held_out"].push_back({{"text", row.text}, {"coverage", to_json(row.coverage)}});
  }
  std::cout << report.text({.indent = 2}) << '\n';
}

// The long tail: the share of the text that the first k tokens cover, and how rare the k-th token
// is.
Plot to_plot(const td::FrequencyRanks& ranks, const td::TokenCounts& counts) {
  Plot plot{.title            = "Coverage of the text and frequency by rank",
            .x_label          = "rank",
            .y_label          = "coverage, % of the text",
            .series           = {{.name = "coverage", .is_curve = true},
                                 {.name = "at % of V"},
                                 {.name = "frequency", .is_curve = true, .is_on_right = true}},
            .x_is_logarithmic = true,
            .right_label      = "frequency, % of the text"};
  std::vector<std::uint64_t> falling(counts.counts().begin(), counts.counts().end());
  std::sort(falling.begin(), falling.end(), std::greater<>());
  for (double x = 1; x < static_cast<double>(ranks.size()); x = std::max(x + 1, 1.05 * x)) {
    const auto k = static_cast<std::size_t>(x);
    plot.series[0].points.push_back({static_cast<double>(k), 100 * ranks.coverage(k)});
    if (falling[k - 1] == 0) continue;
    plot.series[2].points.push_back(
        {static_cast<double>(k),
         100 * static_cast<double>(falling[k - 1]) / static_cast<double>(ranks.total())});
  }
  for (const auto& [k, share] : ranks.coverage_table()) {
    if (k == 0) continue;
    const double y = 100 * share;
    plot.series[1].points.push_back(
        {static_cast<double>(k), y, y, y, share_of_vocabulary(ranks, k)});
  }
  return plot;
}

void run_ranks(const RanksOptions& options) {
  if (options.held_out && options.texts.size() < 2) {
    throw td::Error(td::Errc::invalid_option, "--held-out", "needs two texts or more");
  }
  for (const std::string& path : {options.out, options.plot}) {
    if (!path.empty() && !std::ofstream(path, std::ios::app)) {  // fail before the work
      throw td::Error(td::Errc::file_unreadable, path, "cannot be written");
    }
  }
  const td::Tokenizer tokenizer = open_tokenizer(options.vocabulary, options.max_inflated);
  const auto start              = Clock::now();
  const auto by_file            = count_files(tokenizer, options);
  td::TokenCounts counts(tokenizer.vocabulary().size());
  for (const td::TokenCounts& file : by_file) counts += file;
  const double seconds = seconds_since(start);
  if (counts.total() == 0) {
    throw td::Error(td::Errc::invalid_option, "--text", "there is no text in the files");
  }
  const td::FrequencyRanks ranks(counts.counts(), tokenizer.vocabulary(),
                                 source_of(options, counts));
  if (!options.out.empty()) ranks.save(options.out);
  if (!options.plot.empty()) {
    std::ofstream file(options.plot, std::ios::binary);
    file << draw_svg(to_plot(ranks, counts));
    if (!file.flush()) {
      throw td::Error(td::Errc::file_unreadable, options.plot, "cannot be written");
    }
  }
  const auto held_out =
      options.held_out ? hold_out(tokenizer, options, by_file) : std::vector<HeldOut>{};
  (options.json ? print_json : print_table)(ranks, counts, seconds, held_out);
}

}  // namespace

void add_ranks(CommandLine& line) {
  auto options = std::make_shared<RanksOptions>();
  Command sub =
      line.command("ranks", "Rank the tokens of a vocabulary by how often they occur in texts");
  sub.option("--text", options->texts, "text files, plain or .gz").required();
  sub.option(
         "--vocabulary", options->vocabulary,
         "tokenizer.json, GGUF, tokenizer.model, .tiktoken, tekken.json or .json.gz; or a directory with a tokenizer.json; "
         "default: the embedded model's")
      .shows_default();
  sub.option("--out", options->out, "write ranks and counts to this JSON file");
  sub.option("--plot", options->plot, "draw coverage and frequency by rank into this SVG file");
  sub.option("--threads", options->threads, "0: as many as there are cores")
      .within(0, 1024)
      .shows_default();
  sub.flag("--held-out", options->held_out,
           "also how much of each text the first ranks of all the other texts make up");
  sub.flag("--json", options->json, "print one JSON object and nothing else");
  sub.option("--max-inflated", options->max_inflated,
             "most bytes that a compressed file may inflate to")
      .shows_default();
  sub.runs([options] { run_ranks(*options); });
}

}  // namespace program
