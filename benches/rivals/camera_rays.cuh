// The rays of kauri's suite `sah`, computed on the host: rays of a camera, random rays, and rays from the surface that the camera sees.
#pragma once

#include "meshes.cuh"

#include <limits>

struct Ray {
    Vec3 origin;
    float t_min = 0;
    Vec3 direction;
    float t_max = std::numeric_limits<float>::infinity();

    Ray(const Vec3 &origin, const Vec3 &direction) : origin(origin), direction(direction) {}
};

// The hit of a ray at `origin + t * direction`, with the barycentric weights of the second and the third corner of the triangle.
struct Hit {
    float t, u, v;
    uint32_t triangle;
};

constexpr uint32_t NO_TRIANGLE = UINT32_MAX;
constexpr uint32_t WIDTH = 1920, HEIGHT = 1080;

inline float dot(const Vec3 &a, const Vec3 &b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline Vec3 minus(const Vec3 &a, const Vec3 &b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

// A pinhole camera that shows all vertices of a mesh. Positions are rounded to floats and the rest is computed in doubles, as by kauri's `Camera`.
class Camera {
    using Vec = std::array<double, 3>;

    static double dot(const Vec &a, const Vec &b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
    static Vec cross(const Vec &a, const Vec &b) {
        return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    }
    static Vec plus(const Vec &a, double by, const Vec &b) { return {a[0] + by * b[0], a[1] + by * b[1], a[2] + by * b[2]}; }
    static Vec unit(const Vec &a) {
        const double length = std::sqrt(dot(a, a));
        return {a[0] / length, a[1] / length, a[2] / length};
    }
    static Vec widened(const Vec3 &a) { return {a[0], a[1], a[2]}; }
    static Vec3 rounded(const Vec &a) { return {float(a[0]), float(a[1]), float(a[2])}; }

    Vec3 position{0.6f, -1.0f, 0.5f}, target{};
    Vec right, up, ahead;

    // Half the height of the picture at distance 1: the field of view is 40 degrees.
    static double slope() { return std::tan(0.5 * (40.0 * (3.14159265358979323846 / 180.0))); }

    void look() {
        ahead = unit(plus(widened(target), -1.0, widened(position)));
        const Vec above{0, 0, 1};
        up = unit(plus(above, -dot(above, ahead), ahead));
        right = cross(ahead, up);
    }

public:
    explicit Camera(const Mesh &mesh) {
        look();
        Vec3 low = mesh.vertices[0], high = low;
        for (const Vec3 &at : mesh.vertices) {
            for (int axis = 0; axis < 3; axis++) {
                low[axis] = std::min(low[axis], at[axis]);
                high[axis] = std::max(high[axis], at[axis]);
            }
        }
        Vec center;
        for (int axis = 0; axis < 3; axis++) center[axis] = 0.5 * low[axis] + 0.5 * high[axis];
        const double aspect = double(WIDTH) / double(HEIGHT);
        double distance = 0;
        for (const Vec3 &vertex : mesh.vertices) {
            const Vec at = plus(widened(vertex), -1.0, center);
            const double beside = std::max(std::fabs(dot(at, right)) / aspect, std::fabs(dot(at, up)));
            distance = std::max(distance, beside / slope() - dot(at, ahead));
        }
        constexpr double MARGIN = 1.02;
        position = rounded(plus(center, -MARGIN * distance, ahead));
        target = rounded(center);
        look();
    }

    // Returns the ray through the center of each pixel, row by row.
    std::vector<Ray> rays() const {
        std::vector<Ray> rays;
        rays.reserve(size_t(WIDTH) * HEIGHT);
        const double pixel = 2.0 * slope() / HEIGHT;
        for (uint32_t y = 0; y < HEIGHT; y++) {
            for (uint32_t x = 0; x < WIDTH; x++) {
                const Vec beside = plus(ahead, (x + 0.5 - 0.5 * WIDTH) * pixel, right);
                rays.emplace_back(position, rounded(unit(plus(beside, (0.5 * HEIGHT - (y + 0.5)) * pixel, up))));
            }
        }
        return rays;
    }
};

// The rays that begin in a mesh.
struct MeshRays {
    const Mesh &mesh;
    uint64_t seed;
    // The bounding box of all triangles.
    Vec3 low, high;

    MeshRays(const Mesh &mesh, uint64_t seed) : mesh(mesh), seed(seed), low(mesh.vertices[mesh.triangles[0][0]]), high(low) {
        for (const Corners &triangle : mesh.triangles) {
            for (uint32_t vertex : triangle) {
                for (int axis = 0; axis < 3; axis++) {
                    low[axis] = std::min(low[axis], mesh.vertices[vertex][axis]);
                    high[axis] = std::max(high[axis], mesh.vertices[vertex][axis]);
                }
            }
        }
    }

    // Returns rays from random points of the mesh's box in random directions.
    std::vector<Ray> random(size_t num) const {
        std::vector<Ray> rays;
        rays.reserve(num);
        for (size_t i = 0; i < num; i++) {
            Vec3 origin, direction;
            for (int axis = 0; axis < 3; axis++) {
                origin[axis] = low[axis] + unit(noise(seed, 6 * i + axis)) * (high[axis] - low[axis]);
                direction[axis] = 2.0f * unit(noise(seed, 6 * i + 3 + axis)) - 1.0f;
            }
            rays.emplace_back(origin, direction);
        }
        return rays;
    }

    // Returns rays from the hits of a camera's rays towards the sun, except for surfaces that face away from the sun.
    std::vector<Ray> shadow(const std::vector<Ray> &primary, const std::vector<Hit> &hits) const {
        return away(primary, hits, [](size_t, const Vec3 &) { return Vec3{0.4f, -0.5f, 0.8f}; });
    }

    // Returns rays from the hits of a camera's rays in cosine-weighted random directions.
    std::vector<Ray> occlusion(const std::vector<Ray> &primary, const std::vector<Hit> &hits) const {
        return away(primary, hits, [this](size_t i, const Vec3 &normal) {
            constexpr float TAU = 6.28318530717958647692f;
            const float z = 2.0f * unit(noise(seed, 4 * i)) - 1.0f, angle = TAU * unit(noise(seed, 4 * i + 1));
            const float radius = std::sqrt(1.0f - z * z);
            return Vec3{radius * std::cos(angle) + normal[0], radius * std::sin(angle) + normal[1], z + normal[2]};
        });
    }

private:
    template <class F>
    std::vector<Ray> away(const std::vector<Ray> &primary, const std::vector<Hit> &hits, F direction) const {
        float offset = 0;
        for (int axis = 0; axis < 3; axis++) offset = std::max(offset, 1e-4f * (high[axis] - low[axis]));
        std::vector<Ray> rays;
        for (size_t i = 0; i < primary.size(); i++) {
            if (hits[i].triangle == NO_TRIANGLE) continue;
            const Corners &corners = mesh.triangles[hits[i].triangle];
            const Vec3 a = mesh.vertices[corners[0]];
            const Vec3 e = minus(mesh.vertices[corners[1]], a), f = minus(mesh.vertices[corners[2]], a);
            Vec3 normal{e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0]};
            const float length = std::max(std::sqrt(dot(normal, normal)), std::numeric_limits<float>::min());
            const float side = dot(normal, primary[i].direction) > 0 ? -1.0f : 1.0f;
            Vec3 origin;
            for (int axis = 0; axis < 3; axis++) {
                normal[axis] = normal[axis] * side / length;
                origin[axis] = primary[i].origin[axis] + hits[i].t * primary[i].direction[axis] + offset * normal[axis];
            }
            const Vec3 towards = direction(i, normal);
            if (dot(normal, towards) > 0) rays.emplace_back(origin, towards);
        }
        return rays;
    }
};
