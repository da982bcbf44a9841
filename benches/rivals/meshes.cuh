// Triangle meshes in host memory: files of raw arrays, and the generated meshes of kauri's suite `sah`, bit for bit.
#pragma once

#include "primitives.cuh"

#include <array>
#include <cmath>
#include <fstream>

using Vec3 = std::array<float, 3>;
using Corners = std::array<uint32_t, 3>;

struct Mesh {
    std::string name;
    std::vector<Vec3> vertices;
    std::vector<Corners> triangles;
};

// Reads a file of two u64 (the numbers of vertices and of triangles), then f32 x 3 of each vertex, then u32 x 3 of each triangle, little-endian.
// The mesh has the name of the file without its ending.
inline Mesh read_raw(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    uint64_t counts[2] = {0, 0};
    file.read(reinterpret_cast<char *>(counts), sizeof(counts));
    Mesh mesh;
    // A file of another format has larger counts.
    if (file && counts[0] <= UINT32_MAX && counts[1] <= UINT32_MAX) {
        mesh.vertices.resize(counts[0]);
        mesh.triangles.resize(counts[1]);
        file.read(reinterpret_cast<char *>(mesh.vertices.data()), counts[0] * sizeof(Vec3));
        file.read(reinterpret_cast<char *>(mesh.triangles.data()), counts[1] * sizeof(Corners));
    }
    bool is_valid = bool(file) && !mesh.triangles.empty();
    for (const Corners &triangle : mesh.triangles) {
        for (uint32_t vertex : triangle) is_valid &= vertex < mesh.vertices.size();
    }
    if (!is_valid) {
        std::fprintf(stderr, "%s is no raw mesh\n", path.c_str());
        std::exit(1);
    }
    const size_t begin = path.find_last_of('/') + 1, dot = path.find_last_of('.');
    mesh.name = path.substr(begin, dot == std::string::npos || dot <= begin ? dot : dot - begin);
    return mesh;
}

inline double unit_double(uint64_t bits) { return double(bits >> 11) / double(1ull << 53); }

// The random numbers of a triangle of a soup.
struct Random {
    uint64_t state;

    Random(uint64_t seed, uint64_t i) : state(splitmix64(seed ^ splitmix64(i))) {}
    double unit() {
        state += 0x9E3779B97F4A7C15ull;
        return unit_double(splitmix64(state));
    }
};

// `n` random triangles in the unit cube, each in a cube with sides of `size`.
inline Mesh soup(size_t n, double size, uint64_t seed) {
    Mesh mesh{"soup", {}, {}};
    size = std::min(size, 1.0);
    mesh.vertices.reserve(3 * n);
    mesh.triangles.reserve(n);
    for (size_t i = 0; i < n; i++) {
        Random random(seed, i);
        double low[3];
        for (double &x : low) x = (1.0 - size) * random.unit();
        for (int corner = 0; corner < 3; corner++) {
            Vec3 at;
            for (int axis = 0; axis < 3; axis++) at[axis] = float(low[axis] + size * random.unit());
            mesh.vertices.push_back(at);
        }
        const uint32_t first = uint32_t(3 * i);
        mesh.triangles.push_back({first, first + 1, first + 2});
    }
    return mesh;
}

// Value noise (Perlin 1985) from 0 to 1 on lattice number `which`.
inline double value_noise(uint64_t seed, uint64_t which, double x, double y) {
    const uint64_t i = uint64_t(x), j = uint64_t(y);
    auto corner = [&](uint64_t i, uint64_t j) {
        return unit_double(splitmix64(seed ^ (which << 56) ^ splitmix64((i << 32) | j)));
    };
    auto smooth = [](double t) { return t * t * (3.0 - 2.0 * t); };
    const double s = smooth(x - std::trunc(x)), t = smooth(y - std::trunc(y));
    auto along = [&](uint64_t j) { return (1.0 - s) * corner(i, j) + s * corner(i + 1, j); };
    return (1.0 - t) * along(j) + t * along(j + 1);
}

// A terrain over the unit square by eight octaves of noise, two triangles for each of `side` x `side` squares.
inline Mesh terrain(uint32_t side, uint64_t seed) {
    constexpr double HILLS = 4.0, RELIEF = 0.1;
    constexpr int OCTAVES = 8;
    Mesh mesh{"terrain", {}, {}};
    for (uint32_t j = 0; j <= side; j++) {
        for (uint32_t i = 0; i <= side; i++) {
            const double x = double(i) / side, y = double(j) / side;
            double z = 0;
            for (int octave = 0; octave < OCTAVES; octave++) {
                const double scale = double(1 << octave);
                z += value_noise(seed, octave, x * HILLS * scale, y * HILLS * scale) * RELIEF / scale;
            }
            mesh.vertices.push_back({float(x), float(y), float(z)});
        }
    }
    for (uint32_t j = 0; j < side; j++) {
        for (uint32_t i = 0; i < side; i++) {
            const uint32_t a = j * (side + 1) + i, b = a + 1, d = a + side + 1, c = d + 1;
            mesh.triangles.push_back({a, b, c});
            mesh.triangles.push_back({a, c, d});
        }
    }
    return mesh;
}

// Random vector number `i`, with coordinates from -1 to 1.
inline Vec3 random_vector(uint64_t seed, size_t i) {
    auto coordinate = [&](size_t axis) { return float(noise(seed, 3 * i + axis) >> 40) / float(1 << 23) - 1.0f; };
    return {coordinate(0), coordinate(1), coordinate(2)};
}

inline Vec3 plus(const Vec3 &a, float by, const Vec3 &b) { return {a[0] + by * b[0], a[1] + by * b[1], a[2] + by * b[2]}; }

// A ball of about `n` triangles: curved hairs from the center outward, each a ribbon.
inline Mesh hairball(size_t n, uint64_t seed) {
    constexpr size_t SEGMENTS = 32;
    Mesh mesh{"hairball", {}, {}};
    for (size_t hair = 0; hair < (n + 2 * SEGMENTS - 1) / (2 * SEGMENTS); hair++) {
        auto random = [&](size_t i) { return random_vector(seed, hair * (SEGMENTS + 2) + i); };
        Vec3 at{}, direction = random(0);
        const Vec3 across = random(1);
        for (size_t segment = 0; segment <= SEGMENTS; segment++) {
            const uint32_t first = uint32_t(mesh.vertices.size());
            mesh.vertices.push_back(at);
            mesh.vertices.push_back(plus(at, 0.001f, across));
            if (segment < SEGMENTS) {
                mesh.triangles.push_back({first, first + 1, first + 2});
                mesh.triangles.push_back({first + 1, first + 3, first + 2});
            }
            direction = plus(direction, 0.3f, random(2 + std::min(segment, SEGMENTS - 1)));
            at = plus(at, 1.0f / float(SEGMENTS), direction);
        }
    }
    return mesh;
}

// `n` triangles half as long as the scene and a thousandth as wide, in random directions.
inline Mesh long_thin_triangles(size_t n, uint64_t seed) {
    Mesh mesh{"long thin triangles", {}, {}};
    for (size_t i = 0; i < n; i++) {
        const Vec3 at = random_vector(seed, 3 * i);
        mesh.vertices.push_back(at);
        mesh.vertices.push_back(plus(at, 0.5f, random_vector(seed, 3 * i + 1)));
        mesh.vertices.push_back(plus(at, 0.0005f, random_vector(seed, 3 * i + 2)));
        const uint32_t first = uint32_t(3 * i);
        mesh.triangles.push_back({first, first + 1, first + 2});
    }
    return mesh;
}

// The generated meshes of a size, as the suite has them.
inline std::vector<Mesh> generated_meshes(size_t n, uint64_t seed) {
    constexpr size_t MAX_HARD_TRIANGLES = 1000000;
    std::vector<Mesh> meshes;
    meshes.push_back(soup(n, 2.0 / std::cbrt(double(n)), seed));
    if (n <= MAX_HARD_TRIANGLES) {
        meshes.push_back(terrain(std::max(uint32_t(std::sqrt(double(n / 2))), 1u), seed));
        meshes.push_back(hairball(n, seed));
        meshes.push_back(long_thin_triangles(n, seed));
    }
    return meshes;
}
