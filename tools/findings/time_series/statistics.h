// Figures of a series of numbers over time: what the judgements in this folder rest on.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace oomrec::tools::findings {

// In order of time; both equally long.
struct Series {
  std::vector<double> seconds, values;

  std::size_t size() const { return values.size(); }
  void add(double at_seconds, double value) {
    seconds.push_back(at_seconds);
    values.push_back(value);
  }
};

// Of a finding, the worst last: the larger of two is that of both.
enum class Severity { none, low, medium, high, critical };
std::string_view word_of(Severity severity);

double mean_of(std::span<const double> values);       // 0 of none
double deviation_of(std::span<const double> values);  // the standard deviation, divided by n

// The value below which `share` (0…1) of them lie, between neighbours by proportion; 0 of none.
double quantile_of(std::vector<double> values, double share);

// Pearson's r, −1…1; 0 where one of both does not vary. Equally long.
double correlation_of(std::span<const double> one, std::span<const double> other);

// The line of least squares.
struct Fit {
  double slope = 0;      // a second
  double intercept = 0;  // at second 0
  double r = 0;          // −1…1
  double p = 1;          // of such an r by chance, two-sided (Student's t); 1 of fewer than three

  double r_squared() const { return r * r; }
};
Fit fit_of(const Series& series);

}  // namespace oomrec::tools::findings
