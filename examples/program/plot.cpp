#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <program/plot.hpp>

namespace program::detail {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return result;
}

std::string rounded(double value, const char* format) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

Axis::Axis(double min, double greatest) {
  const double range = std::max(greatest - min, 1e-9 + 1e-3 * std::abs(greatest));
  step               = std::pow(10, std::floor(std::log10(range / 5)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (range / step > 7) step *= factor;
  }
  low  = std::floor((min - 0.03 * range) / step) * step;
  high = std::ceil((greatest + 0.03 * range) / step) * step;
  if (min >= 0) low = std::max(low, 0.0);
}

Axis Axis::of_powers(double min, double greatest) {
  Axis axis(0, 1);
  axis.low            = min > 0 ? std::floor(std::log10(min)) : 0;
  axis.high           = std::max(std::ceil(std::log10(greatest)), axis.low + 1);
  axis.step           = 1;
  axis.is_logarithmic = true;
  return axis;
}

double Axis::at(double value) const {
  return ((is_logarithmic ? std::log10(value) : value) - low) / (high - low);
}

std::vector<double> Axis::ticks() const {
  std::vector<double> result;
  for (double i = std::round(low / step); i * step < high + step / 2; ++i) {
    result.push_back(is_logarithmic ? std::pow(10, i) : i * step);
  }
  return result;
}

std::string Axis::text(double tick) const {
  if (is_logarithmic) {
    const double digits = std::max(0.0, -std::round(std::log10(tick)));
    return rounded(tick, ("%." + rounded(digits, "%.0f") + 'f').c_str());
  }
  return rounded(tick, step >= 0.99 ? "%.0f" : step >= 0.099 ? "%.1f" : "%.3g");
}

std::array<double, 2> Labels::place(double x, double y, std::size_t letters) {
  const double width = 6.5 * static_cast<double>(letters);
  const std::array<std::array<double, 2>, 6> places{{{x + 8, y - 7},
                                                     {x + 8, y + 15},
                                                     {x - 8 - width, y - 7},
                                                     {x - 8 - width, y + 15},
                                                     {x + 8, y - 21},
                                                     {x + 8, y + 29}}};
  for (const auto& [left, base] : places) {
    const Box box{left, base - 10, left + width, base + 2};
    if (std::none_of(taken_.begin(), taken_.end(), [&](const Box& b) { return meet(b, box); })) {
      taken_.push_back(box);
      return {left, base};
    }
  }
  return places[0];
}

void Labels::keep_free(double left, double top, double right, double bottom) {
  taken_.push_back({left, top, right, bottom});
}

bool Labels::meet(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

}  // namespace program::detail

namespace program {

std::string draw_svg(const Plot& plot) {
  using detail::rounded;
  constexpr double width = 860, height = 480, left = 70, top = 50, right = 680, bottom = 420;
  constexpr std::array<const char*, 8> colours{"#000000", "#0072b2", "#d55e00", "#009e73",
                                               "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // Least and greatest on the x axis, the y axis and the right axis.
  std::array<double, 3> low{infinity, infinity, infinity}, high{-infinity, -infinity, -infinity};
  const auto take = [&](std::size_t axis, double value) {
    low[axis] = std::min(low[axis], value), high[axis] = std::max(high[axis], value);
  };
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      take(0, point.x);
      const std::size_t axis = series.is_on_right ? 2 : 1;
      take(axis, point.y);
      if (!series.is_curve) take(axis, point.low), take(axis, point.high);
    }
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (low[axis] > high[axis]) low[axis] = 0, high[axis] = 1;
  }
  const auto across = plot.x_is_logarithmic ? detail::Axis::of_powers(low[0], high[0])
                                            : detail::Axis(low[0], high[0]);
  const detail::Axis up(low[1], high[1]);
  const auto up_right = detail::Axis::of_powers(low[2], high[2]);
  const auto x_of     = [&](double x) { return left + (right - left) * across.at(x); };
  const auto y_at     = [&](const detail::Axis& axis, double y) {
    return bottom - (bottom - top) * axis.at(y);
  };
  const auto y_of        = [&](double y) { return y_at(up, y); };
  const double legend_at = right + (plot.right_label.empty() ? 22 : 92);

  std::string svg;
  const auto line = [&](double x1, double y1, double x2, double y2, const std::string& stroke) {
    svg += "<line x1=\"" + rounded(x1) + "\" y1=\"" + rounded(y1) + "\" x2=\"" + rounded(x2) +
           "\" y2=\"" + rounded(y2) + "\" " + stroke + "/>\n";
  };
  const auto text = [&](double x, double y, const char* more, std::string_view content) {
    svg += "<text x=\"" + rounded(x) + "\" y=\"" + rounded(y) + "\" " + more + ">" +
           detail::escaped(content) + "</text>\n";
  };
  svg += "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + rounded(width, "%.0f") + " " +
         rounded(height, "%.0f") +
         "\" font-family=\"sans-serif\" font-size=\"12\">\n"
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  text((left + right) / 2, 28, "text-anchor=\"middle\" font-size=\"15\"", plot.title);
  const std::string grid = "stroke=\"#e4e4e4\"";
  for (const double tick : across.ticks()) {
    line(x_of(tick), top, x_of(tick), bottom, grid);
    text(x_of(tick), bottom + 18, "text-anchor=\"middle\"", across.text(tick));
  }
  for (const double tick : up.ticks()) {
    line(left, y_of(tick), right, y_of(tick), grid);
    text(left - 8, y_of(tick) + 4, "text-anchor=\"end\"", up.text(tick));
  }
  if (!plot.right_label.empty()) {
    for (const double tick : up_right.ticks()) {
      const double y = y_at(up_right, tick);
      line(right, y, right + 5, y, "stroke=\"#444444\"");
      text(right + 8, y + 4, "", up_right.text(tick));
    }
    line(right, top, right, bottom, "stroke=\"#444444\"");
    text((top + bottom) / 2, -right - 66, "text-anchor=\"middle\" transform=\"rotate(90)\"",
         plot.right_label);
  }
  line(left, bottom, right, bottom, "stroke=\"#444444\"");
  line(left, top, left, bottom, "stroke=\"#444444\"");
  text((left + right) / 2, bottom + 42, "text-anchor=\"middle\"", plot.x_label);
  text(-(top + bottom) / 2, 22, "text-anchor=\"middle\" transform=\"rotate(-90)\"", plot.y_label);

  detail::Labels labels;
  for (const PlotSeries& series : plot.series) {
    if (series.is_curve) continue;
    for (const PlotPoint& p : series.points) {
      labels.keep_free(x_of(p.x) - 5, y_of(p.y) - 5, x_of(p.x) + 5, y_of(p.y) + 5);
    }
  }
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const PlotSeries& series = plot.series[i];
    const std::string colour = colours[i % colours.size()];
    const std::string stroke = "stroke=\"" + colour + "\" stroke-width=\"1.5\"";
    const double legend      = top + 10 + 22 * static_cast<double>(i);
    const detail::Axis& axis = series.is_on_right ? up_right : up;
    for (std::size_t j = 0; j < series.points.size(); ++j) {
      const PlotPoint& p = series.points[j];
      const double x = x_of(p.x), y = y_at(axis, p.y);
      if (j > 0) {
        const PlotPoint& before = series.points[j - 1];
        line(x_of(before.x), y_at(axis, before.y), x, y, stroke);
      }
      if (series.is_curve) continue;
      line(x, y_at(axis, p.low), x, y_at(axis, p.high), stroke);
      for (const double end : {p.low, p.high}) {
        line(x - 4, y_at(axis, end), x + 4, y_at(axis, end), stroke);
      }
      svg += "<circle cx=\"" + rounded(x) + "\" cy=\"" + rounded(y) + "\" r=\"4.5\" fill=\"" +
             colour + "\"/>\n";
    }
    svg += "<circle cx=\"" + rounded(legend_at) + "\" cy=\"" + rounded(legend) +
           "\" r=\"4.5\" fill=\"" + colour + "\"/>\n";
    text(legend_at + 12, legend + 4, "", series.name);
  }
  // Drawn last and with a white rim, to be readable across lines.
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& p : series.points) {
      if (p.label.empty()) continue;
      const auto [at, base] = labels.place(x_of(p.x), y_of(p.y), p.label.size());
      text(at, base,
           "font-size=\"11\" paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"3\"",
           p.label);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace program
