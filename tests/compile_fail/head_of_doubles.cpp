// expected-error: HeadView: a head's weights must be float or tooldecode::BFloat16
// expected-lines: 30
#include <cstddef>

#include <tooldecode/model/head_view.hpp>

#ifdef TOOLDECODE_EXPECT_ERROR
using Weight = double;
#else
using Weight = float;
#endif

struct Matrix {
  const Weight* data() const { return nullptr; }
  std::size_t rows() const { return 0; }
  std::size_t cols() const { return 0; }
};

void use(tooldecode::HeadView) {}

void view(const Matrix& matrix) {
  use(matrix);
}
