/// \file
/// Charts as SVG: series of points with error bars, or curves, on linear or logarithmic axes.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace program {

/// A point and its error bar.
struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  ///< the interval of y
  std::string label{};
};

/// Points of one colour; several points are joined by a line.
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points{};
  bool is_curve    = false;  ///< a line without marks
  bool is_on_right = false;  ///< uses the axis on the right
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<PlotSeries> series;
  bool x_is_logarithmic   = false;
  std::string right_label = {};  ///< of a logarithmic axis on the right
};

namespace detail {

std::string escaped(std::string_view text);

std::string rounded(double value, const char* format = "%.1f");

// An axis over some values, with steps of 1, 2 or 5 times a power of ten, or over their logarithms.
struct Axis {
  double low = 0, high = 1, step = 1;
  bool is_logarithmic = false;

  Axis(double min, double greatest);
  static Axis of_powers(double min, double greatest);
  [[nodiscard]] double at(double value) const;
  [[nodiscard]] std::vector<double> ticks() const;
  [[nodiscard]] std::string text(double tick) const;
};

// Places labels so that they do not overlap.
class Labels {
 public:
  /// Left edge and base line of the first free place beside a point.
  std::array<double, 2> place(double x, double y, std::size_t letters);
  void keep_free(double left, double top, double right, double bottom);

 private:
  struct Box {
    double left, top, right, bottom;
  };
  static bool meet(const Box& a, const Box& b);
  std::vector<Box> taken_;
};

}  // namespace detail

/// The chart as an SVG document on white, with colours for the colour-blind.
std::string draw_svg(const Plot& plot);

}  // namespace program
