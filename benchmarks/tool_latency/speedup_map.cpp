// The map of Figure 3, as numbers and as a picture.
#include "speedup_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <tooldecode/research/performance_model.hpp>

#include "report.hpp"

namespace tool_latency {

namespace {

// From white over yellow and red to black, even in lightness: 1 is white, 2 black.
std::string colour_of(double speedup) {
  const double t  = std::clamp(speedup - 1, 0.0, 1.0);
  const auto part = [t](double begin) {
    return static_cast<int>(255 * (1 - std::clamp((t - begin) * 3, 0.0, 1.0)));
  };
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", part(2.0 / 3), part(1.0 / 3), part(0));
  return text.data();
}

double grid(std::size_t i) {
  return static_cast<double>(i) / static_cast<double>(SpeedupMap::steps);
}

}  // namespace

SpeedupMap::SpeedupMap() {
  using tooldecode::Seconds;
  for (const double tool : tools) {
    for (std::size_t prediction = 0; prediction <= steps; ++prediction) {
      for (std::size_t acceptance = 0; acceptance <= steps; ++acceptance) {
        values_.push_back(tooldecode::speedup({.generation  = Seconds(1),
                                               .speculation = Seconds(grid(prediction)),
                                               .tool        = Seconds(tool)},
                                              grid(acceptance)));
      }
    }
  }
}

double SpeedupMap::greatest(std::size_t tool) const {
  const auto panel =
      values_.begin() + static_cast<std::ptrdiff_t>(tool * (steps + 1) * (steps + 1));
  return *std::max_element(panel, panel + (steps + 1) * (steps + 1));
}

double SpeedupMap::share_above(std::size_t tool, double speedup) const {
  std::size_t above = 0;
  for (std::size_t prediction = 1; prediction < steps; ++prediction) {
    for (std::size_t acceptance = 1; acceptance <= steps; ++acceptance) {
      above += at(tool, prediction, acceptance) >= speedup;
    }
  }
  return share(above, (steps - 1) * steps);
}

tooldecode::JsonValue SpeedupMap::to_json() const {
  using Json = tooldecode::JsonValue;
  std::vector<double> axis;
  for (std::size_t i = 0; i <= steps; ++i) axis.push_back(rounded(grid(i)));
  Json panels = Json::array();
  for (std::size_t tool = 0; tool < tools.size(); ++tool) {
    Json rows = Json::array();
    for (std::size_t prediction = 0; prediction <= steps; ++prediction) {
      Json row = Json::array();
      for (std::size_t acceptance = 0; acceptance <= steps; ++acceptance) {
        row.push_back(rounded(at(tool, prediction, acceptance)));
      }
      rows.push_back(std::move(row));
    }
    panels.push_back(std::move(rows));
  }
  return {{"what", "S_spec of Equation 2: [T / G][g / G][acceptance]"},
          {"tool_to_generation", tools},
          {"prediction_to_generation", axis},
          {"acceptance", axis},
          {"speedup", std::move(panels)}};
}

std::string SpeedupMap::to_svg() const {
  constexpr double cell = 9, gap = 34, left = 60, top = 70;
  constexpr double side  = cell * static_cast<double>(steps + 1);
  constexpr double width = left + static_cast<double>(tools.size()) * (side + gap) + 70;
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(width, 0) + " " +
      fixed(top + side + 60, 0) +
      "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n";
  const auto text = [&](double x, double y, const std::string& content, const char* more = "") {
    svg += "<text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" " + more + ">" + content +
           "</text>\n";
  };
  const auto box = [&](double x, double y, double w, double h, const std::string& fill,
                       const char* more = "") {
    svg += "<rect x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" width=\"" + fixed(w, 1) +
           "\" height=\"" + fixed(h, 1) + "\" fill=\"" + fill + "\" " + more + "/>\n";
  };
  text(width / 2, 28, "Speedup of client-side speculation, by Equation 2",
       "text-anchor=\"middle\" font-size=\"15\"");
  for (std::size_t tool = 0; tool < tools.size(); ++tool) {
    const double x = left + static_cast<double>(tool) * (side + gap);
    text(x + side / 2, top - 10,
         "T = " + fixed(tools[tool], tools[tool] < 1 ? 2 : 0) + " G, at most " +
             fixed(greatest(tool), 2),
         "text-anchor=\"middle\"");
    for (std::size_t prediction = 0; prediction <= steps; ++prediction) {
      for (std::size_t acceptance = 0; acceptance <= steps; ++acceptance) {
        box(x + cell * static_cast<double>(acceptance),
            top + cell * static_cast<double>(steps - prediction), cell, cell,
            colour_of(at(tool, prediction, acceptance)));
      }
    }
    box(x, top, side, side, "none", "stroke=\"#444444\"");
    for (const double tick : {0.0, 0.5, 1.0}) {
      text(x + cell / 2 + tick * (side - cell), top + side + 16, fixed(tick, 1),
           "text-anchor=\"middle\"");
      if (tool == 0) {
        text(x - 6, top + side - cell / 2 - tick * (side - cell) + 4, fixed(tick, 1),
             "text-anchor=\"end\"");
      }
    }
    text(x + side / 2, top + side + 38, "acceptance", "text-anchor=\"middle\"");
  }
  text(-(top + side / 2), 18, "g / G", "text-anchor=\"middle\" transform=\"rotate(-90)\"");
  const double x = width - 60;
  for (int step = 0; step <= 20; ++step) {
    box(x, top + side - side * (step + 1) / 21.0, 16, side / 21.0 + 0.5,
        colour_of(1 + step / 20.0));
  }
  box(x, top, 16, side, "none", "stroke=\"#444444\"");
  for (const double tick : {1.0, 1.5, 2.0}) {
    text(x + 21, top + side - (tick - 1) * (side - 8), fixed(tick, 1));
  }
  return svg + "</svg>\n";
}

}  // namespace tool_latency
