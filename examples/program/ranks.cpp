// tooldecode ranks: counts the tokens of texts and ranks the vocabulary by frequency.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <streambuf>
#include <string>
#include <vector>

#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include <program/commands.hpp>
#include <program/files.hpp>
#include <program/json.hpp>
#include <program/plot.hpp>
#include <program/run_record.hpp>
#include <unistd.h>
#include <zlib.h>

namespace program {
namespace {

namespace td = tooldecode;
using Clock  = std::chrono::steady_clock;

struct RanksOptions {
  std::vector<std::string> texts;
  std::string vocabulary = TOOLDECODE_EXAMPLE_DATA "/tiny";
  std::string out, plot;
  std::size_t threads      = 0;
  bool json                = false;
  std::size_t max_inflated = most_inflated_bytes;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The bytes of a file as they are read, inflated where it is gzip.
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
    // A gzip file that is cut short ends like a whole one, save for the state of the stream.
    if (count < 0 || (count == 0 && state == Z_BUF_ERROR)) {
      throw td::Error(td::Errc::file_unreadable, "", "is cut short or damaged");
    }
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return count == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_[0]);
  }

  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 16);
};

// Says on stderr how much is done and how fast, from the third second on: twice a second on a
// terminal, elsewhere every ten seconds.
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

td::TokenCounts count_files(const td::Tokenizer& tokenizer, const RanksOptions& options) {
  td::TokenCounts counts(tokenizer.vocabulary().size());
  Meter meter;
  for (const std::string& path : options.texts) {
    FileBytes bytes(path);
    std::istream text(&bytes);
    try {
      counts += td::count_tokens(
          tokenizer, text, {.threads = options.threads, .on_progress = [&](std::uint64_t done) {
                              meter.show(counts.bytes() + done);
                            }});
    } catch (const td::Error& error) {
      throw td::Error(error.code(), path, error.what());
    }
  }
  meter.finish();
  return counts;
}

// What was counted, without the folders, which differ from one machine to the next.
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

void print_table(const td::FrequencyRanks& ranks, const td::TokenCounts& counts, double seconds) {
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
}

void print_json(const td::FrequencyRanks& ranks, const td::TokenCounts& counts, double seconds) {
  Json table = Json::array();
  for (const auto& [k, share] : ranks.coverage_table()) {
    table.push_back({{"k", k}, {"share", share}});
  }
  std::cout << Json{{"source", ranks.source()},
                    {"vocabulary_size", ranks.size()},
                    {"always", ranks.always_count()},
                    {"tokens", counts.total()},
                    {"distinct", counts.distinct()},
                    {"bytes", counts.bytes()},
                    {"seconds", seconds},
                    {"coverage", table},
                    {"made_by", run_record()}}
                   .dump(2, ' ', false, Json::error_handler_t::replace)
            << '\n';
}

// The long tail: how much of the text the first k tokens make up, and how rare the k-th is.
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
  for (const std::string& path : {options.out, options.plot}) {
    if (!path.empty() && !std::ofstream(path, std::ios::app)) {  // before the work, not after it
      throw td::Error(td::Errc::file_unreadable, path, "cannot be written");
    }
  }
  const td::Tokenizer tokenizer =
      std::filesystem::is_directory(options.vocabulary)
          ? td::load_tokenizer(options.vocabulary)
          : td::parse_tokenizer(read_file(options.vocabulary, options.max_inflated),
                                options.vocabulary);
  const auto start     = Clock::now();
  const auto counts    = count_files(tokenizer, options);
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
  (options.json ? print_json : print_table)(ranks, counts, seconds);
}

}  // namespace

void add_ranks(CLI::App& app) {
  auto options  = std::make_shared<RanksOptions>();
  CLI::App* sub = app.add_subcommand(
      "ranks", "Rank the tokens of a vocabulary by how often they occur in texts");
  sub->add_option("--text", options->texts, "text files, plain or .gz")->required();
  sub->add_option("--vocabulary", options->vocabulary,
                  "tokenizer.json, GGUF or .json.gz; or a directory with a tokenizer.json; "
                  "default: the embedded model's")
      ->capture_default_str();
  sub->add_option("--out", options->out, "write ranks and counts to this JSON file");
  sub->add_option("--plot", options->plot,
                  "draw coverage and frequency by rank into this SVG file");
  sub->add_option("--threads", options->threads, "0: as many as there are cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  sub->add_flag("--json", options->json, "print one JSON object and nothing else");
  sub->add_option("--max-inflated", options->max_inflated,
                  "most bytes that a compressed file may inflate to")
      ->capture_default_str();
  sub->callback([options] { run_ranks(*options); });
}

}  // namespace program
