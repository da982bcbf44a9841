//! Points of SpatialBench's distributions.
//!
//! SpatialBench 0.2.0 takes both tables from a nested Thomas process in one of eight boxes, which cover the continents and are chosen by
//! their area on the sphere. In the unit square, a city is chosen by its weight, and then one of its neighborhoods. Weights have Pareto
//! distributions. City centers are a Halton sequence; neighborhoods have a normal distribution around the center of their city, and
//! points around the center of their neighborhood. The square is then stretched to the box.
//!
//! The parameters are SpatialBench's, while the random numbers are others: the points are not equal to its own.

/// West, south, east and north of the boxes around Africa, Europe, southern and northern Asia, Oceania, South America, and the south and
/// the north of North America, in degrees.
const BOXES: [[f64; 4]; 8] = [
    [-20.062752, -40.044425, 64.131567, 37.579421],
    [-11.964479, 37.926872, 64.144374, 71.82884],
    [64.58354, -9.709049, 145.526096, 51.672557],
    [64.495655, 51.944267, 178.834704, 77.897255],
    [112.481901, -48.980212, 180.768942, -10.228433],
    [-83.833822, -56.170016, -33.904338, 12.211188],
    [-124.890724, 12.382931, -69.511192, 42.55308],
    [-166.478008, 42.681087, -52.053245, 72.659041],
];

/// A nested Thomas process.
struct Params {
    seed: u64,
    cities: usize,
    /// Mean, standard deviation, minimum and maximum of the number of neighborhoods of a city.
    neighborhoods: [f64; 4],
    /// The standard deviation of neighborhoods around their city, in the unit square.
    city_sigma: f64,
    /// The standard deviation of points around their neighborhood, in the unit square.
    neighborhood_sigma: f64,
    /// The shape of the Pareto distribution of the weights of cities.
    city_alpha: f64,
    /// The shape of the Pareto distribution of the weights of neighborhoods.
    neighborhood_alpha: f64,
}

/// Generates points. Point `i` depends on `i` alone.
pub(crate) struct Clusters {
    params: Params,
    boxes: Vec<f64>,
    /// The shares of the cities, cumulated.
    cities: Vec<f64>,
    /// The shares of the neighborhoods of each city, cumulated.
    neighborhoods: Vec<Vec<f64>>,
}

impl Clusters {
    /// The pickup points of trips.
    pub(crate) fn trips() -> Self {
        Self::new(Params {
            seed: 1,
            cities: 60_000,
            neighborhoods: [15.0, 12.0, 2.0, 80.0],
            city_sigma: 0.006,
            neighborhood_sigma: 0.003,
            city_alpha: 0.8,
            neighborhood_alpha: 1.0,
        })
    }

    /// The centers of buildings.
    pub(crate) fn buildings() -> Self {
        Self::new(Params {
            seed: 2,
            cities: 10_000,
            neighborhoods: [5.0, 3.0, 1.0, 15.0],
            city_sigma: 0.1,
            neighborhood_sigma: 0.01,
            city_alpha: 1.2,
            neighborhood_alpha: 1.0,
        })
    }

    fn new(params: Params) -> Self {
        let mut random = Random::new(params.seed, 0);
        let cities = shares((0..params.cities).map(|_| random.pareto(params.city_alpha)));
        let neighborhoods = (0..params.cities).map(|_| {
            let [mean, sigma, min, max] = params.neighborhoods;
            let count = (mean + sigma * random.normal()).round().clamp(min, max) as usize;
            shares((0..count).map(|_| random.pareto(params.neighborhood_alpha)))
        });
        let area = |[west, south, east, north]: [f64; 4]| {
            (east - west) * (north.to_radians().sin() - south.to_radians().sin())
        };
        Self {
            boxes: shares(BOXES.into_iter().map(area)),
            neighborhoods: neighborhoods.collect(),
            cities,
            params,
        }
    }

    /// Generates a point: longitude and latitude in degrees.
    pub(crate) fn point(&self, index: u64) -> [f64; 2] {
        let mut random = Random::new(self.params.seed, 1 + index);
        let [west, south, east, north] = BOXES[random.choose(&self.boxes)];
        let city = random.choose(&self.cities);
        let neighborhood = random.choose(&self.neighborhoods[city]);
        let city_center = [halton(city as u64 + 1, 2), halton(city as u64 + 1, 3)];
        // A neighborhood has a stream of random numbers that no point has.
        let stream = (1 << 63) | (city as u64) << 16 | neighborhood as u64;
        let center = Random::new(self.params.seed, stream).near(city_center, self.params.city_sigma);
        let [x, y] = random.near(center, self.params.neighborhood_sigma);
        [west + x * (east - west), south + y * (north - south)]
    }
}

/// Returns the cumulated shares of weights; the last one is 1.
fn shares(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = weights.map(|weight| {
        sum += weight;
        sum
    });
    let sums: Vec<f64> = sums.collect();
    sums.into_iter().map(|partial| partial / sum).collect()
}

/// Returns a number of the Halton sequence of a base.
fn halton(mut index: u64, base: u64) -> f64 {
    let (mut value, mut digit) = (0.0, 1.0);
    while index > 0 {
        digit /= base as f64;
        value += digit * (index % base) as f64;
        index /= base;
    }
    value
}

/// A stream of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn new(seed: u64, stream: u64) -> Self {
        let start = Self(seed).next() ^ stream;
        Self(Self(start).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn pareto(&mut self, alpha: f64) -> f64 {
        (1.0 - self.unit()).powf(-1.0 / alpha)
    }

    fn choose(&mut self, shares: &[f64]) -> usize {
        let number = self.unit();
        shares.partition_point(|&share| share <= number).min(shares.len() - 1)
    }

    /// Returns a point of the unit square with a normal distribution around `center`.
    fn near(&mut self, center: [f64; 2], sigma: f64) -> [f64; 2] {
        center.map(|axis| (axis + sigma * self.normal()).clamp(0.0, 1.0))
    }
}
