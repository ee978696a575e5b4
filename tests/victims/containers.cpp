// Containers of a C++ program that grow until memory is refused: a vector, or with "map" a map in a
// template with long arguments.
#include <map>
#include <string>
#include <vector>

namespace train {

struct Row {
  double values[64];
};

class Model {
 public:
  void grow() {
    for (;;) rows_.emplace_back();
  }
  template <class Index>
  void fill(Index& index) {
    for (int key = 0;; ++key) index[key].emplace_back(std::size_t{1} << 20, 'x');
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace train

int main(int count, char**) {
  train::Model model;
  std::map<int, std::vector<std::string>> index;
  if (count > 1) model.fill(index);
  model.grow();
}
