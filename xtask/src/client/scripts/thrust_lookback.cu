// Algorithms of Thrust and CUB whose blocks learn of each other by a decoupled look-back, each many times; every result is compared with
// the host's. Blocks run on several host threads, so that what they tell each other must arrive whole and in order.
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <numeric>
#include <vector>

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

struct odd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};

// As many bytes as no flag fits beside in one word.
struct wide {
    long long a, b;
    __host__ __device__ bool operator==(const wide &o) const { return a == o.a && b == o.b; }
};
struct add_wide {
    __host__ __device__ wide operator()(const wide &x, const wide &y) const { return {x.a + y.a, x.b + y.b}; }
};

template <class T> static bool same(const std::vector<T> &expected, const thrust::device_vector<T> &got, size_t count)
{
    thrust::host_vector<T> host(got.begin(), got.begin() + count);
    return count == expected.size() && std::equal(expected.begin(), expected.end(), host.begin());
}

static int repeats;

template <class F> static void test(const char *name, F once)
{
    int wrong = 0;
    for (int i = 0; i < repeats; i++) wrong += !once();
    if (wrong) printf("failed %s: wrong in %d of %d\n", name, wrong, repeats);
    else printf("passed %s\n", name);
    fflush(stdout);
}

template <class T> static void scans(const char *inclusive, const char *exclusive, const char *by_key, int n)
{
    std::vector<T> in(n), after(n), before(n), keyed(n);
    std::vector<int> keys(n);
    for (int i = 0; i < n; i++) in[i] = T(i * 2654435761u >> 20), keys[i] = i / 700;
    std::partial_sum(in.begin(), in.end(), after.begin());
    for (int i = 0; i < n; i++) before[i] = T(after[i] - in[i]);
    for (int i = 0; i < n; i++) keyed[i] = i % 700 ? T(keyed[i - 1] + in[i]) : in[i];
    thrust::device_vector<T> d(in.begin(), in.end()), o(n);
    thrust::device_vector<int> k(keys.begin(), keys.end());
    test(inclusive, [&] { thrust::inclusive_scan(d.begin(), d.end(), o.begin()); return same(after, o, n); });
    test(exclusive, [&] { thrust::exclusive_scan(d.begin(), d.end(), o.begin()); return same(before, o, n); });
    test(by_key, [&] {
        thrust::inclusive_scan_by_key(k.begin(), k.end(), d.begin(), o.begin());
        return same(keyed, o, n);
    });
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 1 << 18;
    repeats = argc > 2 ? atoi(argv[2]) : 200;
    scans<unsigned char>("inclusive_scan u8", "exclusive_scan u8", "scan_by_key u8", n);
    scans<int>("inclusive_scan i32", "exclusive_scan i32", "scan_by_key i32", n);
    scans<long long>("inclusive_scan i64", "exclusive_scan i64", "scan_by_key i64", n);

    std::vector<wide> in(n), sums(n);
    for (int i = 0; i < n; i++) in[i] = {i, 3 - i};
    std::partial_sum(in.begin(), in.end(), sums.begin(), add_wide());
    thrust::device_vector<wide> w(in.begin(), in.end()), wo(n);
    test("inclusive_scan 16 bytes", [&] {
        thrust::inclusive_scan(w.begin(), w.end(), wo.begin(), add_wide());
        return same(sums, wo, n);
    });

    std::vector<int> h(n), keys(n), chosen, others;
    unsigned seed = 1;
    for (int i = 0; i < n; i++) seed = seed * 1664525u + 1013904223u, h[i] = seed >> 8, keys[i] = i / 3;
    for (int x : h) (x & 1 ? chosen : others).push_back(x);
    thrust::device_vector<int> d(h.begin(), h.end()), k(keys.begin(), keys.end()), o(n), p(n), q(n);
    test("copy_if", [&] {
        return same(chosen, o, thrust::copy_if(d.begin(), d.end(), o.begin(), odd()) - o.begin());
    });
    test("remove_copy_if", [&] {
        return same(others, o, thrust::remove_copy_if(d.begin(), d.end(), o.begin(), odd()) - o.begin());
    });
    test("stable_partition_copy", [&] {
        auto ends = thrust::stable_partition_copy(d.begin(), d.end(), o.begin(), p.begin(), odd());
        return same(chosen, o, ends.first - o.begin()) && same(others, p, ends.second - p.begin());
    });
    std::vector<int> distinct((n + 2) / 3), totals((n + 2) / 3);
    std::iota(distinct.begin(), distinct.end(), 0);
    for (int i = 0; i < n; i++) totals[i / 3] += h[i] & 0xff;
    test("unique", [&] {
        thrust::copy(k.begin(), k.end(), o.begin());
        return same(distinct, o, thrust::unique(o.begin(), o.end()) - o.begin());
    });
    std::vector<int> low(n);
    for (int i = 0; i < n; i++) low[i] = h[i] & 0xff;
    thrust::device_vector<int> values(low.begin(), low.end());
    test("reduce_by_key", [&] {
        auto ends = thrust::reduce_by_key(k.begin(), k.end(), values.begin(), p.begin(), o.begin());
        return same(distinct, p, ends.first - p.begin()) && same(totals, o, ends.second - o.begin());
    });
    thrust::device_vector<long long> long_values(values.begin(), values.end()), long_sums(n);
    std::vector<long long> long_totals(totals.begin(), totals.end());
    test("reduce_by_key i64", [&] {
        auto ends = thrust::reduce_by_key(k.begin(), k.end(), long_values.begin(), p.begin(), long_sums.begin());
        return same(distinct, p, ends.first - p.begin()) && same(long_totals, long_sums, ends.second - long_sums.begin());
    });

    std::vector<int> sorted(h);
    std::sort(sorted.begin(), sorted.end());
    test("sort", [&] { o = d; thrust::sort(o.begin(), o.end()); return same(sorted, o, n); });
    std::vector<int> order(n), by_key(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return h[a] < h[b]; });
    thrust::device_vector<int> places(n);
    std::iota(by_key.begin(), by_key.end(), 0);
    test("stable_sort_by_key", [&] {
        o = d;
        thrust::copy(by_key.begin(), by_key.end(), places.begin());
        thrust::stable_sort_by_key(o.begin(), o.end(), places.begin());
        return same(sorted, o, n) && same(order, places, n);
    });
    std::vector<int> fives, sevens, both;
    for (int i = 0; i < n; i++) fives.push_back(5 * i), sevens.push_back(7 * i);
    std::set_intersection(fives.begin(), fives.end(), sevens.begin(), sevens.end(), std::back_inserter(both));
    thrust::device_vector<int> f(fives.begin(), fives.end()), s(sevens.begin(), sevens.end());
    test("set_intersection", [&] {
        return same(both, o, thrust::set_intersection(f.begin(), f.end(), s.begin(), s.end(), o.begin()) - o.begin());
    });
    puts("done");
}
