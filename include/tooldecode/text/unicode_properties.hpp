/// \file
/// unicode_property: the code points of a general category or a script.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/text/code_points.hpp>

namespace tooldecode::text {

namespace detail {

struct UnicodeName {
  std::string_view alias, name;
};

// General categories, in the order of their numbers in `category_runs`.
inline constexpr std::array<UnicodeName, 30> categories{{
    {"Lu", "Uppercase_Letter"},    {"Ll", "Lowercase_Letter"},  {"Lt", "Titlecase_Letter"},
    {"Lm", "Modifier_Letter"},     {"Lo", "Other_Letter"},      {"Mn", "Nonspacing_Mark"},
    {"Mc", "Spacing_Mark"},        {"Me", "Enclosing_Mark"},    {"Nd", "Decimal_Number"},
    {"Nl", "Letter_Number"},       {"No", "Other_Number"},      {"Pc", "Connector_Punctuation"},
    {"Pd", "Dash_Punctuation"},    {"Ps", "Open_Punctuation"},  {"Pe", "Close_Punctuation"},
    {"Pi", "Initial_Punctuation"}, {"Pf", "Final_Punctuation"}, {"Po", "Other_Punctuation"},
    {"Sm", "Math_Symbol"},         {"Sc", "Currency_Symbol"},   {"Sk", "Modifier_Symbol"},
    {"So", "Other_Symbol"},        {"Zs", "Space_Separator"},   {"Zl", "Line_Separator"},
    {"Zp", "Paragraph_Separator"}, {"Cc", "Control"},           {"Cf", "Format"},
    {"Cs", "Surrogate"},           {"Co", "Private_Use"},       {"Cn", "Unassigned"},
}};

// Groups of categories: those whose short names begin with this letter (LC: cased letters).
inline constexpr std::array<UnicodeName, 12> category_groups{{
    {"L", "Letter"},
    {"LC", "Cased_Letter"},
    {"M", "Mark"},
    {"N", "Number"},
    {"P", "Punctuation"},
    {"S", "Symbol"},
    {"Z", "Separator"},
    {"C", "Other"},
    {"Nd", "digit"},
    {"P", "punct"},
    {"Cc", "cntrl"},
    {"M", "Combining_Mark"},
}};

// The categories of all code points in order, as runs: a category, counted from '<', and a length.
// A number has five bits per digit, low digits first; the last digit counts from '0', the others
// from '^'.
inline constexpr std::string_view category_runs =
    "U^1R1M3O1M3I1J1M1N1M1H1M2D:M2N3M2<JI1M1J1P1G1P1=JI1N1J1N1U_1R1M1O4Q1M1P1Q1@1K1N1V1Q1P1Q1N1F2P"
    "1=1M2P1F1@1L1F3M1<GN1<7=HN1=8<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1"
    "<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=2<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=2<1=1<1=1<1=1<"
    "1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<2=1<1=1<1=3<2"
    "=1<1=1<2=1<3=2<4=1<2=1<3=3<2=1<2=1<1=1<1=1<2=1<1=2<1=1<2=1<3=1<1=1<2=2@1<1=3@4<1>1=1<1>1=1<1>"
    "1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=2<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=2<1>1=1<1=1<3=1<1=1<1=1"
    "<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<"
    "1=1<1=1<1=1<1=7<2=1<2=2<1=1<4=1<1=1<1=1<1=1<1=c2@2=J?BP4?<P>?5P7?1P1?1PAAn3<1=1<1=1?1P1<1=1Y2"
    "?1=3M1<1Y4P2<1M1<3Y1<1Y1<2=1<AY1<9=a1<1=2<3=3<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=5"
    "<1=1N1<1=1<2=2<q1=n1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1Q1A5C"
    "2<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1"
    "<1=1<1=1<1=1<1=1<2=1<1=1<1=1<1=1<1=1<1=1<1=2<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<"
    "1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1"
    "=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1Y1<d1Y2?1M6=g1M1H1Y2Q2O1Y1Ak1H1A1M1A2M1A2M1"
    "A1Y8@KY4@4M2Y;V6N3M2O1M2Q2A;M1V1M3@^1?1@:AED:M4@2A1@a3M1@1A7V1Q1A6?2A2Q1A4@2D:@3Q2@1M>Y1V1@1A"
    "1@NAKY2@w2A;@1Y>D:@_1A9?2Q1M3?1Y2A1O2@FA4?1A9?1A3?1A5Y2M?Y1@IA3Y2M1Y1@;Y5@HP1@7V2Y5A9@g1?1AHV"
    "1A^1B1@t1A1B1A1@1B3A8B4A1B2@1A7@:A2M2D:M1?1@?A1B2Y1@8Y2@2Y2@FY1@7Y1@1Y3@4Y2A1@1B3A4Y2B2Y2B2A1"
    "@1Y8B1Y4@2Y1@3A2Y2D:@2O2F6Q1O1@1M1A1Y2A2B1Y1@6Y4@2Y2@FY1@7Y1@2Y1@2Y1@2Y2A1Y1B3A2Y4A2Y2A3Y3A1Y"
    "7@4Y1@1Y7D:A2@3A1M1Y:A2B1Y1@9Y1@3Y1@FY1@7Y1@2Y1@5Y2A1@1B3A5Y1A2B1Y1B2A1Y2@1Y?@2A2Y2D:M1O1Y7@1"
    "A6Y1A1B2Y1@8Y2@2Y2@FY1@7Y1@2Y1@5Y2A1@1B1A1B1A4Y2B2Y2B2A1Y7A2B1Y4@2Y1@3A2Y2D:Q1@1F6Y:A1@1Y1@6Y"
    "3@3Y1@4Y3@2Y1@1Y1@2Y3@2Y3@3Y3@<Y4B2A1B2Y3B3Y1B3A1Y2@1Y6B1Y>D:F3Q6O1Q1Y5A1B3A1@8Y1@3Y1@GY1@@Y2"
    "A1@1A3B4Y1A3Y1A4Y7A2Y1@3Y1@2Y2@2A2Y2D:Y7M1F7Q1@1A1B2M1@8Y1@3Y1@GY1@:Y1@5Y2A1@1B1A1B5Y1A1B2Y1B"
    "2A2Y7B2Y5@3Y1@2A2Y2D:Y1@2B1Y<A2B2@9Y1@3Y1@g1A2@1B3A4Y1B3Y1B3A1@1Q1Y4@3B1F7@3A2Y2D:F9Q1@6Y1A1B"
    "2Y1@BY3@HY1@9Y1@1Y2@7Y3A1Y4B3A3Y1A1Y1B8Y6D:Y2B2M1Y<@n1A1@2A7Y4O1@6?1A8M1D:M2Yc1@2Y1@1Y1@5Y1@H"
    "Y1@1Y1@:A1@2A9@1Y2@5Y1?1Y1A7Y1D:Y2@4Y^1@1Q3M?Q1M1Q3A2Q6D:F:Q1A1Q1A1Q1A1I1J1I1J1B2@8Y1@b1Y4A>B"
    "1A5M1A2@5A;Y1Ab1Y1Q8A1Q6Y1Q2M5Q4M2Yc1@i1B2A4B1A6B1A2B2A2@1D:M6@6B2A2@4A3@1B3@2B7@3A4@=A1B2A2B"
    "6A1@1B1D:B3A1Q2<d1Y1<1Y5<1Y2=i1M1?1=3@g:Y1@4Y2@7Y1@1Y1@4Y2@g1Y1@4Y2@_1Y1@4Y2@7Y1@1Y1@4Y2@?Y1@"
    "w1Y1@4Y2@a2Y2A3M9FDY3@@Q:Y6<t2Y2=6Y2H1@jCQ1M1@AR1@JI1J1Y3@i2M3E3@8Y7@BA3B1Y9@CA2B1M2Y9@BA2Y<@"
    "=Y1@3Y1A2Y<@r1A2B1A7B8A1B2A;M3?1M3O1@1A1Y2D:Y6F:Y6M6H1M4A3V1A1D:Y6@a1?1@s1Y7@5A2@`1A1@1Y5@d2Y"
    ":@OY1A3B4A2B3Y4B2A1B6A3Y4Q1Y3M2D:@NY2@5Y;@j1Y4@JY6D:F1Y3Q`1@GA2B2A1Y2M2@s1B1A1B1A7Y1A1B1A1B2A"
    "8B6A:Y2A1D:Y6D:Y6M7?1M6Y2A>C1AOY2A<YDA4B1@m1A1B1A5B1A1B5A1B2@8Y1M2D:M7Q:A9Q9M3A2B1@NB1A4B2A2B"
    "1A3@2D:@j1A1B1A2B3A1B1A3B2Y8M4@b1B8A8B2A2Y3M5D:Y3@3D:@N?6M2=9<1=1Y5<i1Y2<3M8Y8A3M1A=B1A7@4A1@"
    "6A1@2B1A2@1Y5=j1?}1==?1=`1?c1A^2<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<"
    "1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1"
    "=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1="
    "1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=9<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1"
    "<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<"
    "1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=9<8=6Y2<6Y2=8<8=8<8=6Y2<6Y2=8Y1"
    "<1Y1<1Y1<1Y1<1=8<8=>Y2=8>8=8>8=8>8=5Y1=2<4>1P1=1P3=3Y1=2<4>1P3=4Y2=2<4Y1P3=8<5P3Y2=3Y1=2<4>1P"
    "2Y1R;V5H6M2K1L1I1K2L1I1K1M8S1T1V5R1M9K1L1M4G2M3N1I1J1M;N1M1G1M:R1V5Y1V:F1?1Y2F6N3I1J1?1F:N3I1"
    "J1Y1?=Y3O`1Y>A=C4A1C3A<Y?Q2<1Q4<1Q2=1<3=2<3=1Q1<1Q2N1<5Q6<1Q1<1Q1<1Q1<4Q1=1<4=1@4=1Q2=2<2N5<1"
    "=4Q1N1Q2=1Q1F@Ea1<1=1E4F1Q2Y4N5Q5N2Q4N1Q2N1Q2N1Q7N1QON2Q2N1Q1N1QONj8Q8I1J1I1J1QDN2Q7I1J1Qo2N1"
    "QNNIQf1N6Qf2YFQ;YEFz1Ql2FFQu5N1Q9N1Qt1N8Qm3N1Qv7I1J1I1J1I1J1I1J1I1J1I1J1I1J1FNQj1N5I1J1NOI1J1"
    "I1J1I1J1I1J1I1J1N@Q^8Na4I1J1I1J1I1J1I1J1I1J1I1J1I1J1I1J1I1J1I1J1I1J1N}1I1J1I1J1N^1I1J1N`8Qn1N"
    "EQ2N6Qe1Y2Qh4<n1=n1<1=1<3=2<1=1<1=1<1=1<4=1<1=2<1=6?2<3=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1"
    "<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<"
    "1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=2Q6<1=1<1=1A3<1=1Y5M4F1M2=d"
    "1Y1=1Y5=1Y2@v1Y7?1M1Y>A1@GY9@7Y1@7Y1@7Y1@7Y1@7Y1@7Y1@7Y1@7Y1A^1M2K1L1K1L1M3K1L1M1K1L1M9H1M2H1"
    "M1K1L1M2K1L1I1J1I1J1I1J1I1J1M5?1M:H2M4H1M1I1M=Q2M3I1J1I1J1I1J1I1J1H1Y`1QJY1Qw2Y<Qt6YJQ@R1M3Q1"
    "?1@1E1I1J1I1J1I1J1I1J1I1J1Q2I1J1I1J1I1J1I1J1H1I1J2Q1E9A4B2H1?5Q2E3?1@1M1Q2Y1@t2Y2A2P2?2@1H1@x"
    "2M1?3@1Y5@i1Y1@|2Y1Q2F4Q:@^1Qd1Y9Q1@@QOY1F:QNF8Q1F?Q^1F:Qe1F?Q^:@^l6Q^2@snD?1@ua1Y3Qu1Y9@f1?6"
    "M2@j8?1M3@@D:@2YD<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1"
    "<1=1<1=1<1=1<1=1@1A1C3M1A:M1?1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1?2A2@d2"
    "E:A2M6Y8PG?9P2<1=1<1=1<1=1<1=1<1=1<1=1<1=3<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1="
    "1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1?1=8<1=1<1=1<2=1<1=1"
    "<1=1<1=1<1=1?1P2<1=1<1=1@1<1=1<1=3<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<5=1<5=1<1=1<1=1<1="
    "1<1=1<1=1<1=1<1=1<4=1<1=1<2=1<1=1<1=1<1=1<1=1<1=1<1=1<1=1<1YD?4<1=1@1?2=1@7A1@3A1@4A1@GB2A2B1"
    "Q4A1Y3F6Q2O1Q1Y6@r1M4Y8B2@p1B@A2Y8M2D:Y6AB@6M3@1M1@2A1D:@LA8M2@GA;B2Y;M1@MY3A3B1@m1A1B2A4B2A2"
    "B3M=Y1?1D:Y4M2@5A1?1@9D:@5Y1@g1A6B2A2B2A2Y9@3A1@8A1B1Y2D:Y2M4@@?1@6Q3@1B1A1B1@p1A1@1A3@2A2@5A"
    "2@1A1@1YH@2?1M2@;B1A2B2M2@1?2B1A1Y:@6Y2@6Y2@6Y9@7Y1@7Y1=i1P1?4=9?1P2Y4=n2@a1B2A1B2A1B2M1B1A1Y"
    "2D:Y6@b{:Y<@GY4@o1Y4W^^2X^f6@l;Y2@h3Yd1=7Y<=5Y5@1A1@:N1@=Y1@5Y1@1Y1@2Y1@2Y1@j3PAQ@@i;J1I1Q@@^"
    "2Q2@t1Q8Y^1@<O1Q3A@M7I1J1M1Y6A@M1H2G2I1J1I1J1I1J1I1J1I1J1I1J1I1J1I1J1M2I1J1M4G3M3Y1M4H1I1J1I1"
    "J1I1J1M3N1H1N3Y1M1O1M2Y4@5Y1@e4Y2V1Y1M3O1M3I1J1M1N1M1H1M2D:M2N3M2<JI1M1J1P1G1P1=JI1N1J1N1I1J1"
    "M1I1J1M2@:?1@k1?2@OY3@6Y2@6Y2@6Y2@3Y3O2N1P1Q1O2Y1Q1N4Q2Y:V3Q2Y2@<Y1@JY1@CY1@2Y1@?Y2@>Y`1@y3Y5"
    "M3Y4Fk1Y3Q9Es1F4QAF2Q3Y1Q=Y3Q1Ym1Qk1A1Y`4@MY3@o1Y?A1FKY4@^1F4Y9@DE1@8E1Y5@d1A5Y5@NY1M1@b1Y4@8"
    "M1E5Yh1<f1=f1@l2Y2D:Y6<b1Y4=b1Y4@f1Y8@r1Y;M1<;Y1<?Y1<7Y1<2Y1=;Y1=?Y1=7Y1=2Y3@r1Y<@u9Y9@FY:@8Y"
    "H?6Y1?h1Y1?9Yc2@6Y2@1Y1@j1Y1@2Y3@1Y2@GY1M1F8@GQ2F7@OY8F9Yn1@CY1@2Y5F5@FF6Y3M1@JY5M1@JYd1@v1Y4"
    "F2@2F@Y2Fl1@1A3Y1A2Y5A4@4Y1@3Y1@MY2A3Y4A1F9Y7M9Y7@MF2M1@MF3Y^1@8Q1@LA2Y4F5M7Y9@t1Y3M7@FY2F8@C"
    "Y5F8@BY7M4Y<F7Yn2@g2Yu1<q1Y==q1Y7F6@b1A4Y8D:Y6D:@4?1@1<FY3A5H1?1=FY8N2Yn6FOY1@h1Y1A2H1Y2@2Y@@"
    "3?1@2Y8M1Q8Y_1A6@MF:@1Y8@FA;F4M5YF@BA4M4Yd1@EF7YD@GY9B1A1B1@s1A?M7Y4FDD:A1@2A2@1Y9A3B1@k1B3A4"
    "B2A2M2V1M4A1Y:V1Y2@IY7D:Y6A3@b1A5B1A8Y1D:M4@1B2@1Y8@a1A1M2@1Y9A2B1@n1B3A9B2@4M4A4M1B1A1D:@1M1"
    "@1M3Y1FDY;@BY1@IB3A3B2A1B1A2M6A1@2A1Y|1@7Y1@1Y1@4Y1@?Y1@:M1Y6@m1A1B3A8Y5D:Y6A2B2Y1@8Y2@2Y2@FY"
    "1@7Y1@2Y1@5Y1A2@1B2A1B4Y2B2Y2B3Y2@1Y6B1Y5@5B2Y2A7Y3A5Y;@:Y1@1Y2@1Y1@d1Y1@1B3A6Y1B1Y2B1Y1B4Y1B"
    "2A1B1A1@1A1@1M2Y1M2Y8A2YM@s1B3A8B2A3B1A1@4M5D:M2Y1M1A1@3YN@n1B3A6B1A1B4A2B1A2@2M1@1Y8D:Yd5@m1"
    "B3A4Y2B4A2B1A2MG@4A2Y`1@n1B3A8B2A1B1A2M3@1Y;D:Y6M=YC@i1A1B1A1B2A6B1A1@1M1Y6D:Y6DDYL@KY2A1B1A1"
    "B2A4B1A5Y4D:F2M3Q1@7Yw5@j1B3A9B1A2M1Yb3<^1=^1D:F9Y<@8Y2@1Y2@8Y1@2Y1@HB6Y1B2Y2A2B1A1@1B1@1B1A1"
    "M3Y9D:Yd2@8Y2@e1B3A4Y2A2B4A1@1M1@1B1YK@1A:@f1A6B1@1A4M8A1Y8@1A6B2A3@l1A=B1A2M3@1M5Y=@g2Y7M:Yt"
    "2A1B1A3B1A1B1Yv2@_1M1Y>D:Y6@9Y1@c1B1A7Y1A6B1A1@1M5Y:D:FCY3M2@NY2AFY1B1A7B1A2B1A2Yg2@7Y1@2Y1@d"
    "1A6Y3A1Y1A2Y1A7@1A1Y8D:Y6@6Y1@2Y1@^1B5Y1A2Y1B2A1B1A1@1Y7D:Y6@g1?1@2Y4D:Yt7@CA2B2M2Y7A2@1B1@=Y"
    "1@`1B2A5Y3B2A1B1A1M=D:A1Ys2@1Y?FEQ8O4QAY=M1@xLYd3Em3Y1M5Y;@b6Yjp2@_3M2Y=@n_1V@A1@6A?Y:@yz3Y5@"
    "eBYws6@NA<B3A3D:Ydt1@wAY7@OY1D:Y4M2@m2Y1D:Y6@NY2A5M1Y:@n1A7M5Q4?4M1Q1Y:D:Y1F7Y1@EY5@CYn=?3@f1"
    "?2M3D:Yd6<^1=^1FGM4Y5<IY2=IYj1@i2Y4A1@1Bu1Y7A4?=Y^2?2M1?1A1Y;B2?2E3Y9@td7Yg1@^1Y_3@q3Y{m8?4Y1"
    "?7Y1?2Y1@a9Y?@1YM@3Y2@1Y>@4Y8@j<Ybf2@i3Y5@=Y3@9Y7@:Y2Q1A2M1V4Yzx3Qn7D:Q3Y3Qr=Y6QGY?Q@N1Y?Al1Y"
    "2AGY9Qr3Yz1Qt7Y:Qe1Y2Qz1B2A3Q3B6V8A8Q2A7QNA4Q{1YEQ`2A3Q1Yx3FDY<FDY<Qu2Y9FIYe4<J=J<J=7Y1=B<J=J"
    "<1Y1<2Y2<1Y2<2Y2<4Y1<8=4Y1=1Y1=7Y1=;<J=J<2Y1<4Y2<8Y1<7Y1=J<2Y1<4Y1<5Y1<1Y3<7Y1=J<J=J<J=J<J=J<"
    "J=J<J=J<J=LY2<IN1=IN1=6<IN1=IN1=6<IN1=IN1=6<IN1=IN1=6<IN1=IN1=6<1=1Y2Dp1Q^@Au1Q4Ap1Q8A1Q>A1Q2"
    "M5Y?A5Y1A?Yn`1=:@1=DY6=6Ys6A7Y1AAY2A7Y1A2Y1A5Y5?|1Y_1A1Yn3@k1Y3A7?7Y2D:Y4@1Q1Y^:@NA1YA@j1A4D:"
    "Y5O1Yn>@K?1A4D:Yt6@NA2@1D:Y4M1Y^6@OY1@3A1@2A1@7A2@5A1Y8@1?1Y^7@7Y1@4Y1@2Y1@?Y1@c6Y2F9A7Yg1<`1"
    "=`1A7?1Y4D:Y4M2YoHFy1Q1F3O1F4Yj2Fk1Q1F?Y`6@4Y1@KY1@2Y1@1Y2@1Y1@:Y1@4Y1@1Y1@1Y6@1Y4@1Y1@1Y1@1Y"
    "1@3Y1@2Y1@1Y2@1Y1@1Y1@1Y1@1Y1@1Y1@2Y1@1Y2@4Y1@7Y1@4Y1@4Y1@1Y1@:Y1@AY5@3Y1@5Y1@AYr1N2Yl8Qj1Y4Q"
    "b3Y<Q?Y2Q?Y1Q?Y1Qc1Y:F=Q_5Yv1QMY=Qj1Y4Q9Y7Q2Y>Q6Yx4Qy7P5QwFY3QAY3Q=Y3Qx6Y6Q<Y4Q1Y?Q<Y4Qv1Y8Q:"
    "Y6Qf1Y8QNY2Q<Y4Q2Y>N9Ye1Qv:Y8Q>Y2Q=Y3Q;Y3Qw1Y1Q1Y4Q@Y2Q<Y4Q:Y7Qq4Y1Qz2D:Q1Yc^1@^ug1Y^1@|f4Y2@"
    "lr5Y2@og7Y?@lCY`k2@|@Y`m1@ix4Y5@hg8YezpEV1YNV^3Y^4An7Ynn}1X|}}1Y2X|}}1Y2";

struct UnicodeScript {
  std::string_view alias, name;
  std::string_view runs;  // gaps and lengths alternate
};
inline constexpr std::array<UnicodeScript, 30> scripts{{
    {"Arab", "Arabic",
     "^n15161>131^11:;J1j31`1n2n1n7`15i21Mnpz1l?2n4^1@n351e4ay3Oa2689_16^vu141K1211211:14111161411"
     "1111312112111111111121124171414111:1A53151Ar12"},
    {"Armn", "Armenian", "og1d12p123aj{15"},
    {"Beng", "Bengali", "^j2418222F1711342922248142152I"},
    {"Zyyy", "Common",
     "0_2J6Jm11?15G1O1_>e1552Dr31916111{C161>131^11z41b@1_42wd11s<4`91mm13e22i6211kd11=174161321cH"
     "<2u21;3;1?A`1|1d113261K1Ag134xDF;E^M^8rC2h4^@|2p<E111I?844y2231x22q4@^1d191n1^2Oo2m11v2f5^l6"
     "^2^fF`1d33c5:r71^51i<1>2plD2n6:Fa11C14q411^1J6J;:1k12^2717:5`834k139n2=q1k1b7Kbkl14zx3{73r=6"
     "G?A}2r3z1t7:e12|13A827N4{1s6D<D<u29Ie4s21e2122122241<11171_21428171L141511371r:2b92p1oa5b2j2"
     "{1`Fj14b3<?2?1?1c1:l5v1J12=j14972>6x4wN3A3=3x66<41?<4v18:6f18N2<42>9e1v:8>2=3;3w1114@2<4:7q4"
     "1e3d^_H1N^3"},
    {"Cyrl", "Cyrillic", "^^1c42g5nx5;^51j21ea4^1^`N^3lzE2^nv1|1_11"},
    {"Deva", "Devanagari", "^f2o24?2J^ye1^1^nL:"},
    {"Ethi", "Ethiopic",
     "^n4g2142711142g1142_1142711142?1w1142a22^13Jdm6G9717171717171717`gO626269717ocm2714121?"},
    {"Geor", "Georgian", "^c4d111512i114nz2i123^`4d11151"},
    {"Grek", "Greek",
     "nK4132411411113111D1}1>@dg65p1545r21^:F262d126281111111O2s11?1>261C2319e91|o`11xlEm2A1}`r1d2"},
    {"Gujr", "Gujarati", "_r2319131F1712152:131321?42<77"},
    {"Guru", "Gurmukhi", "_n2316422F17121212211542233174117A"},
    {"Hani", "Han",
     "^r;J1w2<t6m1111I9>4bN^l6^2^nD^fFl;2h3ffM2<7g^b1^ug1^1|f42lr52og7?lC`k2|@`m1ix45hg8"},
    {"Hang", "Hangul", "^f4^8lo72_8|2o3O_2O_uMMaDb{:<G4o1b{9O36262623"},
    {"Hebr", "Hebrew", "oj1u18K46fg{1J151112121:"},
    {"Hira", "Hiragana", "_`<t263_y}2}8B1M3kc@1"},
    {"Zinh", "Inherited",
     "^Hn3s82b>;J1^G4yh4l12<b?31=17416132d6^2j@2`6_1ww34i32ciq1@@>mN1`71x`41b|l1l12G^A3A827N4pxiHn"
     "7"},
    {"Knda", "Kannada", "^b3=131G1:152913147253142:13"},
    {"Kana", "Katakana", "_c<x223n7@n6m11v2l^q1:1k1p`j14171211}83p11>4"},
    {"Khmr", "Khmer", "^z5|22:6:d?^1"},
    {"Laoo", "Lao", "_r3211151H111G2511171:24"},
    {"Latn", "Latin",
     "_2J6Jm11?15G1O1_>e15yn6d16o1545=1d2_2^8o;1=1@=k4261K1Ag1ut2^1`sNd33p2D?nIi11914tzC7x^1J6Jc_2"
     "61h119cxs1O66"},
    {"Mlym", "Malayalam", "^f3=131q113164@2J"},
    {"Mong", "Mongolian", "^^62211D6w27i1sk}1="},
    {"Mymr", "Myanmar", "^^4^5^hd1O_3^1n`KD"},
    {"Orya", "Oriya", "_v2318222F1712152922237342152B"},
    {"Sinh", "Sinhala", "_j331B3H191127314611186:23j}^2D"},
    {"Taml", "Tamil", "`z2216331432111232333<4533142161>Ec|b2p1=1"},
    {"Telu", "Telugu", "^^3=131G1@291314721312242:79"},
    {"Thai", "Thai", "_n3x15L"},
    {"Tibt", "Tibetan", "^v3f21b14e11b11?1742"},
}};

// Binary properties; code points are included only for those that unicode_property names.
inline constexpr std::string_view binary_properties =
    " AHex ASCII_Hex_Digit Alpha Alphabetic Bidi_C Bidi_Control Bidi_M Bidi_Mirrored CI CWCF "
    "CWCM CWKCF CWL CWT CWU Case_Ignorable Cased Changes_When_Casefolded "
    "Changes_When_Casemapped Changes_When_Lowercased Changes_When_NFKC_Casefolded "
    "Changes_When_Titlecased Changes_When_Uppercased DI Dash Default_Ignorable_Code_Point Dep "
    "Deprecated Dia Diacritic EBase EComp EMod EPres Emoji Emoji_Component Emoji_Modifier "
    "Emoji_Modifier_Base Emoji_Presentation Ext ExtPict Extended_Pictographic Extender Gr_Base "
    "Gr_Ext Grapheme_Base Grapheme_Extend Hex Hex_Digit IDC IDS IDSB IDST IDS_Binary_Operator "
    "IDS_Trinary_Operator ID_Continue ID_Start Ideo Ideographic Join_C Join_Control LOE "
    "Logical_Order_Exception Lower Lowercase Math NChar Noncharacter_Code_Point Pat_Syn Pat_WS "
    "Pattern_Syntax Pattern_White_Space QMark Quotation_Mark RI Radical Regional_Indicator SD "
    "STerm Sentence_Terminal Soft_Dotted Term Terminal_Punctuation UIdeo Unified_Ideograph "
    "Upper Uppercase VS Variation_Selector White_Space XIDC XIDS XID_Continue XID_Start space ";
// Scripts whose code points are not included, and rare names of others.
inline constexpr std::string_view other_scripts =
    " Adlam Adlm Aghb Ahom Anatolian_Hieroglyphs Armi Avestan Avst Bali Balinese Bamu Bamum Bass "
    "Bassa_Vah Batak Batk Berf Beria_Erfe Bhaiksuki Bhks Bopo Bopomofo Brah Brahmi Brai Braille "
    "Bugi Buginese Buhd Buhid Cakm Canadian_Aboriginal Cans Cari Carian Caucasian_Albanian "
    "Chakma Cham Cher Cherokee Chorasmian Chrs Copt Coptic Cpmn Cprt Cuneiform Cypriot "
    "Cypro_Minoan Deseret Diak Dives_Akuru Dogr Dogra Dsrt Dupl Duployan Egyp "
    "Egyptian_Hieroglyphs Elba Elbasan Elym Elymaic Gara Garay Glag Glagolitic Gong Gonm Goth "
    "Gothic Gran Grantha Gukh Gunjala_Gondi Gurung_Khema Hanifi_Rohingya Hano Hanunoo Hatr "
    "Hatran Hluw Hmng Hmnp Hung Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian "
    "Ital Java Javanese Kaithi Kali Kawi Kayah_Li Khar Kharoshthi Khitan_Small_Script Khoj "
    "Khojki Khudawadi Kirat_Rai Kits Krai Kthi Lana Lepc Lepcha Limb Limbu Lina Linb Linear_A "
    "Linear_B Lisu Lyci Lycian Lydi Lydian Mahajani Mahj Maka Makasar Mand Mandaic Mani "
    "Manichaean Marc Marchen Masaram_Gondi Medefaidrin Medf Meetei_Mayek Mend Mende_Kikakui "
    "Merc Mero Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mro Mroo Mtei Mult Multani "
    "Nabataean Nag_Mundari Nagm Nand Nandinagari Narb Nbat New_Tai_Lue Newa Nko Nkoo Nshu Nushu "
    "Nyiakeng_Puachue_Hmong Ogam Ogham Ol_Chiki Ol_Onal Olck Old_Hungarian Old_Italic "
    "Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic "
    "Old_Uyghur Onao Orkh Osage Osge Osma Osmanya Ougr Pahawh_Hmong Palm Palmyrene Pau_Cin_Hau "
    "Pauc Perm Phag Phags_Pa Phli Phlp Phnx Phoenician Plrd Prti Psalter_Pahlavi Qaac Qaai "
    "Rejang Rjng Rohg Runic Runr Samaritan Samr Sarb Saur Saurashtra Sgnw Sharada Shavian Shaw "
    "Shrd Sidd Siddham Sidetic Sidt SignWriting Sind Sogd Sogdian Sogo Sora Sora_Sompeng Soyo "
    "Soyombo Sund Sundanese Sunu Sunuwar Sylo Syloti_Nagri Syrc Syriac Tagalog Tagb Tagbanwa "
    "Tai_Le Tai_Tham Tai_Viet Tai_Yo Takr Takri Tale Talu Tang Tangsa Tangut Tavt Tayo Tfng "
    "Tglg Thaa Thaana Tifinagh Tirh Tirhuta Tnsa Todhri Todr Tolong_Siki Tols Toto "
    "Tulu_Tigalari Tutg Ugar Ugaritic Unknown Vai Vaii Vith Vithkuqi Wancho Wara Warang_Citi "
    "Wcho Xpeo Xsux Yezi Yezidi Yi Yiii Zanabazar_Square Zanb Zzzz ";

// Reads a number and removes it.
char32_t take_number(std::string_view& runs);

// The code points whose category number passes a test.
template <class Test>
CodePointSet of_categories(Test test) {
  std::vector<CodePointSet::Range> ranges;
  char32_t first = 0;
  for (std::string_view runs = category_runs; !runs.empty();) {
    const auto category = static_cast<std::size_t>(runs.front() - '<');
    runs.remove_prefix(1);
    const char32_t length = take_number(runs);
    if (test(category)) ranges.emplace_back(first, first + length - 1);
    first += length;
  }
  return CodePointSet(std::move(ranges));
}

std::optional<CodePointSet> general_category(std::string_view name);

std::optional<CodePointSet> script(std::string_view name);

std::optional<CodePointSet> find_property(std::string_view property);

}  // namespace detail

/// The code points with a property, named as between the braces of ECMA-262's `\p{...}`: a general
/// category (`Lu`, `Letter`, `gc=Nd`, `General_Category=Nd`), one of the more common scripts
/// (`Script=Greek`, `sc=Grek`), `Any`, `ASCII` or `Assigned`; nothing for any other.
///
/// \par Complexity  O(ranges of all categories) at the first use of a name, then a copy
/// \par Threads     may run concurrently
/// \par Source      Unicode 17.0, UnicodeData.txt and Scripts.txt; ECMA-262, table 69
[[nodiscard]] std::optional<CodePointSet> unicode_property(std::string_view property);

/// The property White_Space, which `\s` of Rust's crate regex, Oniguruma and Python matches.
inline constexpr std::array<CodePointSet::Range, 10> white_space_ranges{{{0x09, 0x0D},
                                                                         {0x20, 0x20},
                                                                         {0x85, 0x85},
                                                                         {0xA0, 0xA0},
                                                                         {0x1680, 0x1680},
                                                                         {0x2000, 0x200A},
                                                                         {0x2028, 0x2029},
                                                                         {0x202F, 0x202F},
                                                                         {0x205F, 0x205F},
                                                                         {0x3000, 0x3000}}};
/// The same as a set.
[[nodiscard]] const CodePointSet& unicode_space();

/// `\w` by Unicode's definition, as Rust's crate regex and Oniguruma read it: letters, marks, digits,
/// connectors and joiners.
[[nodiscard]] const CodePointSet& unicode_word();

/// Whether ECMA-262 defines a property with this name, even if `unicode_property` lacks it.
///
/// \par Complexity  O(names)
/// \par Source      ECMA-262, tables 66 to 68; Unicode 17.0, PropertyValueAliases.txt
[[nodiscard]] bool is_property_name(std::string_view property);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/unicode_properties.ipp>
#endif
