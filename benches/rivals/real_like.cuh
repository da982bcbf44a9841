// Points as those of New York, in degrees: the same as of benches/src/points/real_like.rs.
#pragma once

#include "primitives.cuh"

namespace real_like {

constexpr double LOW_X = -74.25, LOW_Y = 40.5, SIDE_X = 0.5, SIDE_Y = 0.4, OFF_COAST = 0.01, STATIONS = 128.0, STREETS = 256.0;
constexpr uint64_t COAST = uint64_t(1) << 42, PLACES = uint64_t(1) << 43;

inline double unit64(uint64_t bits) { return double(bits >> 11) / double(uint64_t(1) << 53); }

inline double octave(uint32_t octave, double x) {
    x = x * double(4u << octave);
    const uint64_t place = uint64_t(x);
    const double t = x - double(place);
    auto bend = [&](uint64_t i) { return unit64(noise(COAST, uint64_t(octave) << 40 | i)); };
    const double smooth = t * t * (3.0 - 2.0 * t);
    return (0.04 / double(1u << octave)) * ((1.0 - smooth) * bend(place) + smooth * bend(place + 1));
}

inline double coast(double x) { return 40.6 + (octave(0, x) + octave(1, x) + octave(2, x)); }

struct Place {
    float x, y;
};

inline Place harbour(uint64_t seed, uint64_t i) {
    const double u = unit64(noise(seed, i));
    const uint64_t station = uint64_t(STATIONS * (u * u));
    const double x = unit64(noise(PLACES, 2 * station)), off = unit64(noise(PLACES, 2 * station + 1));
    return {float(LOW_X + SIDE_X * x), float(coast(x) - OFF_COAST - 0.03 * off * off)};
}

inline Place inland(uint64_t seed, uint64_t i) {
    double x = unit64(noise(seed, 4 * i));
    const double v = unit64(noise(seed, 4 * i + 1));
    const double aside = (unit64(noise(seed, 4 * i + 2)) - 0.5) / (20.0 * STREETS);
    const bool is_south_north = (noise(seed, 4 * i + 3) & 1) == 0;
    if (is_south_north) x = (double(uint64_t(x * STREETS)) + 0.5) / STREETS + aside;
    const double shore = coast(x) + OFF_COAST;
    double y = (shore - LOW_Y + v * v * (LOW_Y + SIDE_Y - shore)) / SIDE_Y;
    if (!is_south_north) y = (double(uint64_t(y * STREETS)) + 1.5) / STREETS + aside;
    return {float(LOW_X + SIDE_X * x), float(LOW_Y + SIDE_Y * y)};
}

} // namespace real_like
