// One value of each type of libstdc++ that records show as what it stands for.
#include <array>
#include <atomic>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

struct big { long long a; std::string name; };
struct alignas(64) wide { int w; };

struct all {
    std::optional<int> some, none;
    std::optional<std::string> text;
    std::optional<big> large;
    std::variant<int, std::string, big> number, word, object;
    std::variant<std::monostate, double> mono;
    std::unique_ptr<int> owned, null;
    std::shared_ptr<big> shared;
    std::weak_ptr<big> weak;
    std::map<int, std::string> map;
    std::set<long long> set;
    std::multimap<std::string, int> multi;
    std::map<int, wide> aligned;
    std::unordered_map<std::string, int> hashed;
    std::unordered_map<int, double> numbers;
    std::unordered_set<char> chars;
    std::list<int> list;
    std::forward_list<short> forward;
    std::deque<int> deque;
    std::deque<big> bigs;
    std::array<int, 3> array;
    std::array<int, 0> empty;
    std::pair<int, std::string> pair;
    std::tuple<int, std::pair<char, double>> tuple;
    std::stack<int> stack;
    std::queue<int> queue;
    std::priority_queue<int> heap;
    std::atomic<int> atomic;
    std::atomic<bool> flag;
    std::vector<std::optional<int>> options;
    std::map<int, std::map<int, int>> maps;
    std::vector<bool> bits;
    std::map<int, int> nothing;
};

// types of somebody else's that have the libraries' names
namespace other {
template <class T> struct optional { T _M_payload; };
template <class T> struct vector { T *_M_impl; };
template <class T> struct map { struct { T _M_impl; } _M_t; };
template <class T> struct variant { T _M_u; int _M_index; };
template <class T> struct unique_ptr { struct { T *_M_t; } _M_t; };
template <class T> struct list { struct { T _M_node; } _M_impl; };
template <class T> struct deque { struct { T _M_start, _M_finish; } _M_impl; };
template <class T> struct unordered_map { struct { T _M_element_count; } _M_h; };
struct all {
    optional<int> o; vector<int> v; map<int> m; variant<int> w; unique_ptr<int> u; list<int> l; deque<int> d;
    unordered_map<int> h;
};
}

volatile int sink;
#define NI extern "C" __attribute__((noinline, noclone))
NI void look(all *it, const std::map<int, std::string> &map, std::optional<int> may) { sink = it->map.size() + map.size() + *may; }
NI void look_at_others(other::all *it) { sink = it->o._M_payload; }
#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage"
NI std::optional<int> half(int n) { if (n & 1) return {}; return n / 2; }

int main()
{
    all a{};
    a.some = 5; a.text = "text"; a.large = big{-7, "seven"};
    a.number = 3; a.word = "word"; a.object = big{9, "nine"}; a.mono = 2.5;
    a.owned = std::make_unique<int>(4); a.shared = std::make_shared<big>(big{1, "one"}); a.weak = a.shared;
    for (int n = 0; n < 5; n++) {
        a.map[n * 3 % 5] = std::string(n, 'x'); a.set.insert(-n); a.list.push_back(n); a.forward.push_front(n);
        a.stack.push(n); a.queue.push(n); a.heap.push(n); a.chars.insert('a' + n); a.numbers[n] = n / 2.;
    }
    a.multi.insert({"a", 1}); a.multi.insert({"a", 2}); a.aligned[1].w = 11; a.aligned[2].w = 12;
    a.hashed["one"] = 1; a.hashed["two"] = 2;
    for (int n = 0; n < 300; n++) { a.deque.push_back(n); if (n < 150) a.deque.pop_front(); }
    for (int n = 0; n < 20; n++) a.bigs.push_back(big{n, std::string("b") + char('a' + n)});
    a.array = {1, 2, 3}; a.pair = {8, "eight"}; a.tuple = {1, {'c', 1.5}};
    a.atomic = 6; a.flag = true; a.options = {1, {}, 3}; a.maps[1][2] = 3; a.bits = {true, false, true};
    look(&a, a.map, 12);
    other::all o = { { 1 }, { 0 }, { { 2 } }, { 3, 0 }, { { 0 } }, { { 4 } }, { { 5, 6 } }, { { 7 } } };
    __asm__ volatile("" : : "r"(&o) : "memory");
    look_at_others(&o);
    sink = half(8).value_or(0); sink = half(7).value_or(0);
}
