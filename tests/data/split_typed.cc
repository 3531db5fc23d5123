namespace geo {
struct Base { virtual int area(int k) const { return k; } int id = 3; };
struct Square : Base {
    int side;
    explicit Square(int side) : side(side) {}
    int area(int k) const override { return side * side * k; }
};
enum class Color : short { RED, GREEN = 5 };
}
__attribute__((noinline)) int look(const geo::Square *b, unsigned char c, geo::Color d) { return b->area(c) + int(d); }
extern "C" int main() { geo::Square q(5); return look(&q, 3, geo::Color::GREEN); }
