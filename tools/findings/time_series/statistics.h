// Statistics of a series of numbers over time: the basis of all decisions in this folder.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace oomrec::tools::findings {

// Sorted by time; both of equal length.
struct Series {
  std::vector<double> seconds, values;

  std::size_t size() const { return values.size(); }
  void add(double at_seconds, double value) {
    seconds.push_back(at_seconds);
    values.push_back(value);
  }
};

// Severity of a finding, worst last: std::max() combines two.
enum class Severity { none, low, medium, high, critical };
std::string_view word_of(Severity severity);

double mean_of(std::span<const double> values);       // 0 if empty
double deviation_of(std::span<const double> values);  // of the population (divides by n)

// The value below which `share` (0…1) of the values are, interpolated; 0 if empty.
double quantile_of(std::vector<double> values, double share);

// Pearson's r, −1…1; 0 if one of them is constant. Both of equal length.
double correlation_of(std::span<const double> one, std::span<const double> other);

// The least-squares line.
struct Fit {
  double slope = 0;      // per second
  double intercept = 0;  // at second 0
  double r = 0;          // −1…1
  double p = 1;          // two-sided p-value of r (Student's t); 1 for fewer than three points

  double r_squared() const { return r * r; }
};
Fit fit_of(const Series& series);

}  // namespace oomrec::tools::findings
