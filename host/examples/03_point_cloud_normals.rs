//! Normals of a cloud of points, each from its nearest neighbors, and a picture of the cloud shaded by them.
//!
//! `cargo run --release --example 03_point_cloud_normals -- [CLOUD.obj | CLOUD.xyz] [PICTURE.png]`; without a cloud it makes
//! up a knot of 200,000 points, and the picture is `target/normals.png` unless it is named.

mod arguments;

use arguments::arguments;
use kauri::query::{Queries, QueryOptions};
use kauri::{Device, KdTree, KdTreeOptions, Neighbors, SpatialIndex};
use rayon::prelude::*;
use std::error::Error;
use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use std::time::Instant;

type V3 = [f64; 3];

/// Neighbors that a normal is made of, the point itself among them.
const K: usize = 16;
/// Width and height of the picture, and pixels drawn for each of its own along both.
const SIZE: usize = 900;
const OVERSAMPLING: usize = 2;
/// From the surface to the light; the viewer looks along -z.
const LIGHT: V3 = [-0.45, 0.6, 0.66];
const COLOR: V3 = [250.0, 214.0, 165.0];
const BACKGROUND: V3 = [16.0, 20.0, 30.0];

fn main() -> Result<(), Box<dyn Error>> {
    let (mut cloud, mut picture) = (None, None);
    arguments("03_point_cloud_normals [CLOUD.obj | CLOUD.xyz] [PICTURE.png]", 2, |argument| {
        let path = PathBuf::from(argument);
        match path.extension() {
            Some(extension) if extension == "png" && picture.is_none() => picture = Some(path),
            Some(extension) if (extension == "obj" || extension == "xyz") && cloud.is_none() => {
                cloud = Some(read(&path)?);
            }
            _ => return Err::<(), Box<dyn Error>>("expected one cloud and one picture".into()),
        }
        Ok(())
    });
    let points = turned(cloud.unwrap_or_else(|| knot(200_000)));
    let picture = picture.unwrap_or_else(|| PathBuf::from("target/normals.png"));

    let device = Device::best()?;
    println!("{} points on {device}: {}", points.len(), device.reason());
    let start = Instant::now();
    let tree = KdTree::build(&device, &points, &KdTreeOptions::default())?;
    let built = Instant::now();
    let near = tree.nearest_with(Queries::SelfQuery { include_self: true }, K, &QueryOptions::default())?;
    let asked = Instant::now();
    let normals: Vec<V3> = (0..points.len()).into_par_iter().map(|id| normal(&points, &near, id)).collect();
    let done = Instant::now();
    println!(
        "tree {:.1?}, {K} neighbors of each {:.1?}, normals {:.1?}",
        built - start,
        asked - built,
        done - asked
    );

    write(&picture, &draw(&points, &normals, &near))?;
    println!("picture in {}", picture.display());
    Ok(())
}

/// The vertices of an OBJ file, or the first three numbers of each line of another.
fn read(path: &Path) -> Result<Vec<[f32; 3]>, Box<dyn Error>> {
    let is_obj = path.extension().is_some_and(|extension| extension == "obj");
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut points = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = match line.strip_prefix("v ") {
            Some(vertex) => vertex,
            None if is_obj || line.trim().is_empty() || line.starts_with('#') => continue,
            None => line,
        };
        let numbers: Vec<f32> = line.split_whitespace().take(3).map_while(|word| word.parse().ok()).collect();
        let point = numbers.try_into().map_err(|_| format!("{}:{number}: expected x y z", path.display()))?;
        points.push(point);
    }
    Ok(points)
}

/// Points on a tube, with waves, along a torus knot.
fn knot(num_points: usize) -> Vec<[f32; 3]> {
    let center = |t: f64| {
        let (around, radius) = (TAU * 3.0 * t, 2.0 + (TAU * 2.0 * t).cos() * 0.8);
        [radius * around.cos(), radius * around.sin(), 0.8 * (TAU * 2.0 * t).sin()]
    };
    let point = |i: usize| {
        // Two multiples of irrational numbers, modulo 1, are spread evenly.
        let (t, angle) = ((i as f64 * 0.754_877_666).fract(), TAU * (i as f64 * 0.569_840_296).fract());
        let (here, ahead) = (center(t), center(t + 1e-4));
        let along = unit(minus(ahead, here));
        let side = unit(cross(along, [0.0, 0.0, 1.0]));
        let up = cross(side, along);
        let radius = 0.42 + 0.05 * (angle * 4.0 + TAU * 60.0 * t).sin();
        let (sin, cos) = angle.sin_cos();
        std::array::from_fn(|axis| (here[axis] + radius * (cos * side[axis] + sin * up[axis])) as f32)
    };
    (0..num_points).map(point).collect()
}

/// The points seen a little from the side and from above.
fn turned(mut points: Vec<[f32; 3]>) -> Vec<[f32; 3]> {
    let ((sin_y, cos_y), (sin_x, cos_x)) = (0.5f32.sin_cos(), 0.35f32.sin_cos());
    for point in &mut points {
        let [x, y, z] = *point;
        let (x, z) = (cos_y * x + sin_y * z, cos_y * z - sin_y * x);
        *point = [x, cos_x * y - sin_x * z, cos_x * z + sin_x * y];
    }
    points
}

/// The direction in which the neighbors of a point vary least, on the viewer's side.
fn normal(points: &[[f32; 3]], near: &Neighbors<[f32; 3]>, id: usize) -> V3 {
    let ids = near.row(id).ids();
    // Rows of small clouds end in padding.
    let around: Vec<V3> =
        ids.iter().filter_map(|&id| points.get(id as usize)).map(|point| point.map(f64::from)).collect();
    let mean: V3 =
        std::array::from_fn(|axis| around.iter().map(|p| p[axis]).sum::<f64>() / around.len() as f64);
    let mut covariance = [[0.0; 3]; 3];
    for offset in around.iter().map(|&point| minus(point, mean)) {
        for (row, a) in covariance.iter_mut().zip(offset) {
            for (entry, b) in row.iter_mut().zip(offset) {
                *entry += a * b;
            }
        }
    }
    let normal = least_axis(covariance);
    if normal[2] < 0.0 { normal.map(|x| -x) } else { normal }
}

/// The eigenvector of the least eigenvalue of a symmetric matrix, by Jacobi's rotations.
fn least_axis(mut matrix: [V3; 3]) -> V3 {
    let mut axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for (p, q) in [(0, 1), (0, 2), (1, 2)].into_iter().cycle().take(3 * 8) {
        if matrix[p][q] == 0.0 {
            continue;
        }
        let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
        let tan = theta.signum() / (theta.abs() + theta.hypot(1.0));
        let cos = 1.0 / tan.hypot(1.0);
        let sin = tan * cos;
        for row in &mut matrix {
            (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
        }
        for rows in [&mut matrix, &mut axes] {
            let (a, b) = (rows[p], rows[q]);
            rows[p] = std::array::from_fn(|i| cos * a[i] - sin * b[i]);
            rows[q] = std::array::from_fn(|i| sin * a[i] + cos * b[i]);
        }
    }
    let least = (0..3).min_by(|&a, &b| matrix[a][a].total_cmp(&matrix[b][b])).unwrap_or(0);
    axes[least]
}

/// Every point as a disc across its normal, as large as it takes to reach some neighbors. Discs nearest to the viewer blend
/// into each other.
fn draw(points: &[[f32; 3]], normals: &[V3], near: &Neighbors<[f32; 3]>) -> Vec<u8> {
    let size = SIZE * OVERSAMPLING;
    let bounds = |axis: usize| {
        let values = points.iter().map(move |point| f64::from(point[axis]));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let ((left, right), (bottom, top)) = (bounds(0), bounds(1));
    let scale = 0.9 * size as f64 / (right - left).max(top - bottom).max(1e-30);

    let radius = |id: usize| {
        let reach = near.row(id).dist2().iter().take(K / 2).rfind(|dist2| dist2.is_finite());
        (f64::from(reach.copied().unwrap_or(0.0)).sqrt() * scale).max(1.0)
    };
    // Shows the pixels of a disc, with their depths and the squares of their distances to the center, as shares of the radius.
    let disc = |id: usize, show: &mut dyn FnMut(usize, f64, f64)| {
        let ([x, y, z], normal, radius) = (points[id].map(f64::from), normals[id], radius(id));
        // Rows of a picture go down.
        let center =
            [x - (left + right) / 2.0, (bottom + top) / 2.0 - y].map(|x| x * scale + size as f64 / 2.0);
        let range = |at: f64| (at - radius).max(0.0) as usize..((at + radius).ceil() as usize).min(size);
        for row in range(center[1]) {
            for column in range(center[0]) {
                let (dx, dy) = (column as f64 + 0.5 - center[0], row as f64 + 0.5 - center[1]);
                let dz = (normal[1] * dy - normal[0] * dx) / normal[2].max(0.05);
                let share = (dx * dx + dy * dy + dz * dz) / (radius * radius);
                if share <= 1.0 {
                    show(row * size + column, z * scale + dz, share);
                }
            }
        }
    };

    let mut depths = vec![f64::NEG_INFINITY; size * size];
    for id in 0..points.len() {
        disc(id, &mut |pixel, depth, _| depths[pixel] = depths[pixel].max(depth));
    }
    let mut sums = vec![([0.0; 3], 0.0); size * size];
    for (id, normal) in normals.iter().enumerate() {
        let radius = radius(id);
        // Light that comes round to the other side makes shapes in the shade.
        let light = 0.5 + 0.5 * normal.iter().zip(LIGHT).map(|(x, light)| x * light).sum::<f64>();
        disc(id, &mut |pixel, depth, share| {
            if depth >= depths[pixel] - radius {
                let (sum, weights) = &mut sums[pixel];
                let weight = 1.001 - share;
                *sum = std::array::from_fn(|channel| sum[channel] + weight * COLOR[channel] * light * light);
                *weights += weight;
            }
        });
    }

    let channel = |pixel: usize, channel: usize| match sums[pixel] {
        (_, 0.0) => BACKGROUND[channel],
        (sum, weights) => sum[channel] / weights,
    };
    let mean = |i: usize| {
        let (row, column, of) = (i / 3 / SIZE, i / 3 % SIZE, i % 3);
        let sample = |j: usize| {
            let (row, column) =
                (row * OVERSAMPLING + j / OVERSAMPLING, column * OVERSAMPLING + j % OVERSAMPLING);
            channel(row * size + column, of)
        };
        let samples = OVERSAMPLING * OVERSAMPLING;
        (0..samples).map(sample).sum::<f64>() / samples as f64
    };
    (0..SIZE * SIZE * 3).map(|i| mean(i) as u8).collect()
}

/// Writes a picture of red, green and blue bytes.
fn write(path: &Path, pixels: &[u8]) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut encoder = png::Encoder::new(std::fs::File::create(path)?, SIZE as u32, SIZE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}

fn minus(a: V3, b: V3) -> V3 {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn unit(a: V3) -> V3 {
    let length = (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt();
    a.map(|x| x / length)
}
