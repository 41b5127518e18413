#include "report.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>

#include <program/plot.hpp>

namespace fr_spec {

namespace {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}
std::string range(const Ends& ends, double scale = 1, int digits = 2) {
  return fixed(scale * ends[0], digits) + " to " + fixed(scale * ends[1], digits);
}

void print_line(const std::vector<std::string>& cells) {
  std::cout << '|';
  for (const std::string& cell : cells) std::cout << ' ' << cell << " |";
  std::cout << '\n';
}
void print_head(const std::string& title, const std::vector<std::string>& names) {
  std::cout << '\n' << title << "\n\n";
  print_line(names);
  std::cout << "| --- |";
  for (std::size_t i = 1; i < names.size(); ++i) std::cout << " ---: |";
  std::cout << '\n';
}

// The way with all rows, of the draft's head or of the target's, that a way is compared with.
std::optional<std::size_t> whole_of(const std::vector<Way>& ways, const Way& way,
                                    bool has_own_head = true) {
  if (way.layer == Layer::none || way.layer == Layer::eagle3 || way.with_text) return std::nullopt;
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const bool is_whole = ways[w].k == 0 && !ways[w].chooses_rows;
    if (ways[w].layer == way.layer && is_whole && ways[w].has_own_head == has_own_head) return w;
  }
  return std::nullopt;
}

struct Table {
  std::vector<std::string> names;
  std::vector<const Runs*> runs;
};

Json described(const Way& way, const Bench& bench) {
  constexpr std::array layers{"none", "EAGLE", "EAGLE-3", "Medusa"};
  return {{"way", way.name},
          {"layer", layers[static_cast<std::size_t>(way.layer)]},
          {"k", way.chooses_rows || way.layer == Layer::none ? Json() : Json(bench.rows_of(way))},
          {"head", way.has_own_head ? "8-bit rows" : "the target's"},
          {"context", way.with_context},
          {"lookup_and_forced", way.with_text}};
}

// Tables 1, 6 and 7.
Json report_acceptance(const Table& table, const std::vector<Way>& ways, const Bench& bench) {
  std::vector<std::string> head{"tokens of a pass"};
  head.insert(head.end(), table.names.begin(), table.names.end());
  for (const char* name : {"mean", "95 %", "retention", "95 %", "drafted a round"})
    head.emplace_back(name);
  print_head("Acceptance: answers replayed, trees of one size", head);
  const std::span<const Runs* const> domains(table.runs);
  const Drawn all = all_of(domains);
  Json rows       = Json::array();
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const auto length = [&](std::size_t way) {
      return [way](const Runs& runs, std::span<const std::size_t> prompts) {
        return sums_of(runs, way, prompts).acceptance();
      };
    };
    const auto mean_of = [&](std::size_t way, const Drawn& drawn) {
      return mean(domains, drawn, length(way));
    };
    const Ends ends = interval(domains, [&](const Drawn& drawn) { return mean_of(w, drawn); });
    Json row        = described(ways[w], bench);
    std::vector<std::string> line{ways[w].name};
    Sums sums;
    for (std::size_t d = 0; d < domains.size(); ++d) {
      const std::array one{domains[d]};
      const auto own = [&](const Drawn& drawn) {
        return sums_of(*domains[d], w, drawn[0]).acceptance();
      };
      const double value = own({all[d]});
      row["domains"].push_back({{"domain", table.names[d]},
                                {"prompts", domains[d]->size()},
                                {"acceptance_length", value},
                                {"ci95", interval(one, own)}});
      line.push_back(fixed(value, 2));
      for (const auto& prompt : *domains[d]) sums.add(prompt[w]);
    }
    row["mean"]              = mean_of(w, all);
    row["ci95"]              = ends;
    row["tokens"]            = sums.tokens;
    row["drafted_per_round"] = sums.drafted / sums.verifying();
    line.insert(line.end(), {fixed(row["mean"].get<double>(), 2), range(ends)});
    if (const auto whole = whole_of(ways, ways[w])) {
      const auto retention = [&](const Drawn& drawn) {
        return mean_of(w, drawn) / mean_of(*whole, drawn);
      };
      const Ends kept       = interval(domains, retention);
      row["retention"]      = retention(all);
      row["retention_ci95"] = kept;
      line.insert(line.end(), {fixed(100 * retention(all), 1) + " %", range(kept, 100, 1)});
    } else {
      line.insert(line.end(), {"", ""});
    }
    line.push_back(fixed(row["drafted_per_round"].get<double>(), 1));
    print_line(line);
    rows.push_back(std::move(row));
  }
  std::cout
      << "\nThe paper's averages, 128k tokens, of K = V, 64k, 32k, 16k and 8k: Llama-3-8B 3.89, "
         "retention 97.7, 93.3, 87.4, 80.5 %; Llama-3.2-1B 2.81, 98.7, 95.8, 92.6, 88.5 %\n";
  return rows;
}

// Tables 2, 5 and 8.
Json report_speed(const Table& table, const std::vector<Way>& ways, const Bench& bench) {
  std::vector<std::string> head{"tokens/s (of plain)"};
  head.insert(head.end(), table.names.begin(), table.names.end());
  for (const char* name :
       {"mean of plain", "95 %", "of K = V", "95 %", "of the target's head", "95 %", "differ"})
    head.emplace_back(name);
  print_head("Speed: as many drafts as pay, ways taking turns", head);
  const std::span<const Runs* const> domains(table.runs);
  const Drawn all = all_of(domains);
  Json rows       = Json::array();
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const auto gain = [&](std::size_t base, const Drawn& drawn) {
      return mean(domains, drawn, [&](const Runs& runs, std::span<const std::size_t> prompts) {
        return sums_of(runs, w, prompts).rate() / sums_of(runs, base, prompts).rate();
      });
    };
    Json row = described(ways[w], bench);
    std::vector<std::string> line{ways[w].name};
    std::size_t differ = 0;
    for (std::size_t d = 0; d < domains.size(); ++d) {
      const std::array one{domains[d]};
      const auto to_plain = [&](const Drawn& drawn) {
        return sums_of(*domains[d], w, drawn[0]).rate() / sums_of(*domains[d], 0, drawn[0]).rate();
      };
      const Sums sums = sums_of(*domains[d], w, all[d]);
      differ += static_cast<std::size_t>(sums.differ);
      row["domains"].push_back({{"domain", table.names[d]},
                                {"prompts", domains[d]->size()},
                                {"tokens", sums.tokens},
                                {"tokens_per_second", sums.rate()},
                                {"acceptance_length", sums.acceptance()},
                                {"to_plain", to_plain({all[d]})},
                                {"to_plain_ci95", interval(one, to_plain)}});
      line.push_back(fixed(sums.rate(), 1) + " (" + fixed(to_plain({all[d]}), 2) + ")");
    }
    const Ends gains     = interval(domains, [&](const Drawn& drawn) { return gain(0, drawn); });
    row["to_plain"]      = gain(0, all);
    row["to_plain_ci95"] = gains;
    line.insert(line.end(), {fixed(gain(0, all), 2), range(gains)});
    for (const bool own : {true, false}) {
      const auto whole = whole_of(ways, ways[w], own);
      if (!whole) {
        line.insert(line.end(), {"", ""});
        continue;
      }
      const std::string name = own ? "to_all_rows" : "to_target_head";
      const auto ends = interval(domains, [&](const Drawn& drawn) { return gain(*whole, drawn); });
      row[name]       = gain(*whole, all);
      row[name + "_ci95"] = ends;
      line.insert(line.end(), {fixed(gain(*whole, all), 2), range(ends)});
    }
    row["answers_that_differ"] = differ;
    line.push_back(std::to_string(differ));
    print_line(line);
    rows.push_back(std::move(row));
  }
  std::cout
      << "\nThe paper's averages: Llama-3-8B plain 1, EAGLE-2 2.03, with K = 32k 2.27 (1.12 of all "
         "rows); Llama-3.2-1B 1.28, with 16k 1.59 (1.24); Medusa 1.63, with 32k 1.76 (1.08)\n";
  return rows;
}

// Figures 1 and 6.
Json report_rounds(const Table& table, const std::vector<Way>& ways, const Bench& bench) {
  print_head("A round, ms: the same runs", {"drafter", "rounds", "tokens", "drafted", "draft layer",
                                            "draft head", "tree and others", "target", "rest"});
  Json rows = Json::array();
  for (std::size_t w = 0; w < ways.size(); ++w) {
    Sums sums;
    for (const Runs* runs : table.runs) {
      for (const auto& prompt : *runs) sums.add(prompt[w]);
    }
    const double milli = 1000 / sums.verifying();
    Json row           = described(ways[w], bench);
    row["rounds"]      = sums.verifying();
    row["tokens"]      = sums.acceptance();
    row["drafted"]     = sums.drafted / sums.verifying();
    row["ms"]          = {{"draft_layer", milli * sums.layer},
                          {"draft_head", milli * sums.head},
                          {"tree_and_others", milli * (sums.drafting - sums.layer - sums.head)},
                          {"target", milli * sums.target},
                          {"rest", milli * (sums.seconds - sums.target - sums.drafting)}};
    std::vector<std::string> line{ways[w].name, fixed(sums.verifying(), 0),
                                  fixed(sums.acceptance(), 2),
                                  fixed(row["drafted"].get<double>(), 1)};
    for (const auto& [part, ms] : row["ms"].items()) line.push_back(fixed(ms.get<double>(), 1));
    print_line(line);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Section 3.2: coverage of the counted corpus, of a part that was not counted, and of the target's
// answers.
Json report_coverage(const Options& options, Bench& bench, const Domains& domains) {
  std::vector<std::string> head{"covered by the first"};
  for (const std::size_t k : options.rows) {
    if (k != 0) head.push_back(std::to_string(k));
  }
  print_head("Coverage by the ranks of the other four corpora", head);
  Json rows      = Json::array();
  const auto add = [&](const std::string& part, const char* of, const auto& share) {
    Json row{{"ranked_without", part}, {"of", of}, {"covered", Json::array()}};
    std::vector<std::string> line{part + ", " + of};
    for (std::size_t i = 0; i < options.rows.size(); ++i) {
      if (options.rows[i] == 0) continue;
      row["covered"].push_back({{"k", options.rows[i]}, {"share", share(i)}});
      line.push_back(fixed(100 * share(i), 2) + " %");
    }
    print_line(line);
    rows.push_back(std::move(row));
  };
  for (const char* part : Corpus::parts) {
    add(part, "the four that were counted",
        [&](std::size_t i) { return bench.coverage(part, options.rows[i]).counted; });
    add(part, "its own corpus",
        [&](std::size_t i) { return bench.coverage(part, options.rows[i]).own; });
    const auto found = domains.find(part);
    if (found == domains.end()) continue;
    const Domain& domain = found->second;
    add(part, "the target's answers", [&](std::size_t i) {
      double covered = 0, tokens = 0;
      for (std::size_t p = 0; p < domain.covered.size(); ++p) {
        covered += static_cast<double>(domain.covered[p][i]);
        tokens += static_cast<double>(domain.covered[p].back());
      }
      return covered / tokens;
    });
  }
  return rows;
}

Json report_products() {
  Json rows = measure_products();
  print_head("The product of a head alone, ms and how many times faster than of all rows",
             {"head", "states", "V", "V/2", "V/4", "V/8", "V/16"});
  std::vector<std::string> line;
  for (const Json& row : rows) {
    if (row["k"] == row["vocabulary_size"])
      line = {row["shape_of"].string(), std::to_string(row["states"].get<std::size_t>())};
    line.push_back(fixed(row["ms"].get<double>(), 2) + " (" +
                   fixed(row["times_faster"].get<double>(), 1) + ")");
    if (line.size() == 7) print_line(line);
  }
  return rows;
}

Json tree_of(const TreeShape& tree) {
  return {{"depth", tree.depth},
          {"width", tree.width},
          {"budget", tree.budget},
          {"min_probability", tree.min_probability}};
}

}  // namespace

Json report(const Options& options, Bench& bench, const Domains& domains) {
  Table replayed, timed;
  std::size_t near_ties = 0;
  for (const auto& [name, domain] : domains) {
    near_ties += domain.near_ties;
    replayed.names.push_back(name), replayed.runs.push_back(&domain.replayed);
    if (domain.timed.empty()) continue;
    timed.names.push_back(name), timed.runs.push_back(&domain.timed);
  }
  Json passes = Json::object();
  std::cout << "A pass of the target takes, in ms:";
  for (const std::size_t n : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    passes[std::to_string(n)] = 1000 * bench.costs().pass(n);
    std::cout << "  " << n << " tokens " << fixed(1000 * bench.costs().pass(n), 1);
  }
  std::cout << '\n';
  Json found{{"target", "LlamaModel, F32 arithmetic"},
             {"vocabulary_size", bench.vocabulary_size()},
             {"draft_head", "int8"},
             {"replayed_tree", tree_of(paper_tree)},
             {"timed_tree", tree_of(options.tree)},
             {"max_tokens", options.max_tokens},
             {"temperature", options.temperature},
             {"ranks", "of the corpus without the prompt's domain"},
             {"ms_of_a_pass", std::move(passes)}};
  found["acceptance"] = report_acceptance(replayed, bench.replayed(), bench);
  double tokens       = 0;
  std::size_t differ  = 0;
  if (!timed.runs.empty()) {
    found["speed"]  = report_speed(timed, bench.timed(), bench);
    found["rounds"] = report_rounds(timed, bench.timed(), bench);
    for (const Json& row : found["speed"]) {
      differ += row["answers_that_differ"].get<std::size_t>();
      for (const Json& domain : row["domains"]) tokens += domain["tokens"].get<double>();
    }
  }
  found["products"]            = report_products();
  found["coverage"]            = report_coverage(options, bench, domains);
  found["tokens_compared"]     = tokens;
  found["answers_that_differ"] = differ;
  found["near_ties"]           = near_ties;
  std::cout << '\n'
            << differ << " timed answers differ from plain decoding, " << fixed(tokens, 0)
            << " tokens of all ways; " << near_ties
            << " of the replayed tokens were chosen by less than 0.001 of a logit\n";
  return found;
}

void draw(const Json& report, const std::string& folder) {
  const auto write = [&](const char* name, const program::Plot& plot) {
    const auto path = std::filesystem::path(folder) / name;
    std::ofstream file(path);
    file << program::draw_svg(plot);
    if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
  };
  program::Plot lengths{.title   = "SmolLM2-135M: tokens of a pass by the draft head's rows",
                        .x_label = "rows K",
                        .y_label = "tokens of a pass",
                        .series  = {},
                        .x_is_logarithmic = true};
  for (const Json& row : report["acceptance"]) {
    if (row["layer"] != "EAGLE" || row["context"].get<bool>()) continue;
    for (std::size_t d = 0; d < row["domains"].size(); ++d) {
      const Json& domain = row["domains"][d];
      if (lengths.series.size() <= d) lengths.series.push_back({.name = domain["domain"].string()});
      lengths.series[d].points.push_back(
          {row["k"].get<double>(), domain["acceptance_length"].get<double>(),
           domain["ci95"][0].get<double>(), domain["ci95"][1].get<double>()});
    }
  }
  write("fr_spec_acceptance.svg", lengths);
  if (!report.contains("rounds")) return;
  program::Plot rounds{.title            = "SmolLM2-135M: where a round of EAGLE's drafts goes",
                       .x_label          = "rows K",
                       .y_label          = "ms of a round",
                       .series           = {},
                       .x_is_logarithmic = true};
  for (const auto& [part, unused] : report["rounds"][0]["ms"].items()) {
    program::PlotSeries series{.name = part};
    std::replace(series.name.begin(), series.name.end(), '_', ' ');
    for (const Json& row : report["rounds"]) {
      if (row["layer"] != "EAGLE" || row["k"].is_null() || row["context"].get<bool>()) continue;
      const auto ms = row["ms"][part].get<double>();
      series.points.push_back({row["k"].get<double>(), ms, ms, ms});
    }
    rounds.series.push_back(std::move(series));
  }
  write("fr_spec_rounds.svg", rounds);
}

}  // namespace fr_spec
