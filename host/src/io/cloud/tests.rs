//! Files that the crate `las` writes, and files that are broken.

use super::*;
use crate::random::Random;
use las::copc::VoxelKey;
use las::point::{Classification, Format};
use las::{Builder, Color, Header, Point, Transform, Vector, Vlr, Writer};
use std::io::{Cursor, Seek, SeekFrom, Write};
use tempfile::TempDir;

const LATTICE: Lattice = Lattice { scale: [0.01, 0.01, 0.001], offset: [1000.0, -500.0, 0.0] };

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn header(format: u8, compressed: bool, lattice: Lattice) -> Header {
    let mut point_format = Format::new(format).unwrap();
    point_format.is_compressed = compressed;
    let mut builder = Builder::from((1, if format < 6 { 3 } else { 4 }));
    builder.point_format = point_format;
    builder.has_wkt_crs = format >= 6;
    let of = |axis: usize| Transform { scale: lattice.scale[axis], offset: lattice.offset[axis] };
    builder.transforms = Vector { x: of(0), y: of(1), z: of(2) };
    builder.into_header().unwrap()
}

/// Returns points with the coordinates of `point_of` and the fields of a format.
fn points(num: usize, format: u8, lattice: Lattice) -> Vec<Point> {
    let format = Format::new(format).unwrap();
    let mut random = Random::of(1, 0);
    (0..num)
        .map(|i| {
            let [x, y, z] = lattice.position(point_of(i));
            let mut below = |bound: u64| random.below(bound);
            let number_of_returns = 1 + below(3) as u8;
            Point {
                x,
                y,
                z,
                intensity: below(65_536) as u16,
                return_number: 1 + below(number_of_returns.into()) as u8,
                number_of_returns,
                classification: Classification::new([2, 6, 9][below(3) as usize]).unwrap(),
                is_withheld: below(5) == 0,
                scan_angle: below(60) as f32 - 30.0,
                user_data: below(256) as u8,
                point_source_id: below(1000) as u16,
                gps_time: format.has_gps_time.then(|| below(1 << 40) as f64 / 64.0),
                color: format.has_color.then(|| Color::new(below(65_536) as u16, 2, 3)),
                nir: format.has_nir.then(|| below(65_536) as u16),
                waveform: format.has_waveform.then(Default::default),
                extra_bytes: vec![7; format.extra_bytes.into()],
                ..Point::default()
            }
        })
        .collect()
}

fn point_of(i: usize) -> [i32; 3] {
    [(i * 37 % 10_007) as i32, -((i * 101 % 9973) as i32), (i % 5000) as i32]
}

fn write(path: &Path, header: Header, points: &[Point]) {
    let mut writer = Writer::from_path(path, header).unwrap();
    points.iter().for_each(|point| writer.write_point(point.clone()).unwrap());
    writer.close().unwrap();
}

/// Writes a file, and returns its path.
fn file(folder: &TempDir, name: &str, format: u8, num: usize) -> PathBuf {
    let path = folder.path().join(name);
    let header = header(format, name.ends_with("laz"), LATTICE);
    write(&path, header, &points(num, format, LATTICE));
    path
}

fn everything(format: u8) -> Attributes {
    Attributes {
        intensity: true,
        return_number: true,
        number_of_returns: true,
        class: true,
        withheld: true,
        scan_angle: true,
        user_data: true,
        source_id: true,
        gps_time: !matches!(format, 0 | 2),
        color: matches!(format, 2 | 3 | 5 | 7 | 8 | 10),
        infrared: matches!(format, 8 | 10),
    }
}

fn check(cloud: &PointCloud, points: &[Point], format: u8) {
    assert_eq!(cloud.points, (0..points.len()).map(point_of).collect::<Vec<_>>());
    let values = &cloud.attributes;
    for (i, point) in points.iter().enumerate() {
        assert_eq!(values.intensity[i], point.intensity);
        assert_eq!(values.return_number[i], point.return_number);
        assert_eq!(values.number_of_returns[i], point.number_of_returns);
        assert_eq!(values.class[i], u8::from(point.classification));
        assert_eq!(values.withheld[i], point.is_withheld);
        assert!(
            (values.scan_angle[i] - point.scan_angle).abs() < 0.01,
            "{} {}",
            values.scan_angle[i],
            point.scan_angle
        );
        assert_eq!(values.user_data[i], point.user_data);
        assert_eq!(values.source_id[i], point.point_source_id);
        assert_eq!(values.gps_time.get(i).copied(), point.gps_time, "format {format}");
        let color = point.color.map(|color| [color.red, color.green, color.blue]);
        assert_eq!(values.color.get(i).copied(), color);
        assert_eq!(values.infrared.get(i).copied(), point.nir);
    }
}

#[test]
fn every_format_comes_back() {
    let folder = folder();
    for format in 0..=10 {
        let points = points(3000, format, LATTICE);
        // The crate does not compress waveforms.
        let extensions: &[&str] = if matches!(format, 4 | 5 | 9 | 10) { &["las"] } else { &["las", "laz"] };
        for extension in extensions {
            let path = file(&folder, &format!("{format}.{extension}"), format, points.len());
            let files = CloudFiles::open(&[&path]).unwrap();
            assert_eq!((files.files()[0].point_format(), files.num_points()), (format, 3000));
            assert_eq!(files.lattice(), LATTICE);
            assert_eq!(files.files()[0].attributes(), everything(format));
            check(&files.read(&everything(format)).unwrap(), &points, format);
        }
    }
}

#[test]
fn many_chunks_stay_in_order() {
    let folder = folder();
    for name in ["a.las", "a.laz"] {
        let path = file(&folder, name, 1, 180_000);
        let cloud = CloudFiles::open(&[&path]).unwrap().read(&everything(1)).unwrap();
        check(&cloud, &points(180_000, 1, LATTICE), 1);
        let mut num_read = 0;
        let files = CloudFiles::open(&[path]).unwrap();
        let visit = |chunk: CloudChunk| {
            num_read += chunk.num_read;
            Ok(if num_read < 50_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        };
        files.for_each_chunk(&Attributes::default(), visit).unwrap();
        assert!((50_000..180_000).contains(&num_read));
    }
}

#[test]
fn filters_leave_out_points() {
    let folder = folder();
    for (name, format) in [("a.las", 1), ("a.laz", 6)] {
        let path = file(&folder, name, format, 5000);
        let points = points(5000, format, LATTICE);
        let bounds = [[1010.0, -550.0, 0.5], [1050.0, -501.0, 4.0]];
        let read = |filter: CloudFilter| {
            let files = CloudFiles::open(&[&path]).unwrap().filter(filter);
            files.read(&Attributes::default()).unwrap().points
        };
        let expected = |keeps: &dyn Fn(&Point) -> bool| -> Vec<[i32; 3]> {
            (0..points.len()).filter(|&i| keeps(&points[i])).map(point_of).collect()
        };
        let all = CloudFilter::default;
        let class = |point: &Point| u8::from(point.classification);
        assert_eq!(read(all().classes([2, 9])), expected(&|point| class(point) != 6));
        assert_eq!(read(all().without_withheld()), expected(&|point| !point.is_withheld));
        assert_eq!(read(all().returns(Returns::First)), expected(&|point| point.return_number == 1));
        let is_last = |point: &Point| point.return_number == point.number_of_returns;
        assert_eq!(read(all().returns(Returns::Last)), expected(&is_last));
        let is_in = |point: &Point| {
            let position = [point.x, point.y, point.z];
            (0..3).all(|axis| bounds[0][axis] <= position[axis] && position[axis] <= bounds[1][axis])
        };
        assert_eq!(read(all().bounds(bounds)), expected(&is_in));
        assert!(!read(all().bounds(bounds)).is_empty());
        assert_eq!(read(all().classes([])), [[0; 3]; 0]);
    }
}

#[test]
fn several_files_are_one_cloud() {
    let folder = folder();
    file(&folder, "tile-1.las", 1, 1000);
    file(&folder, "tile-2.laz", 3, 500);
    // The same positions on a lattice with another offset.
    let other = Lattice { offset: [1200.0, -500.0, 1.0], ..LATTICE };
    write(&folder.path().join("tile-3.las"), header(6, false, other), &points(300, 6, LATTICE));
    let files = CloudFiles::open(&[folder.path().join("tile-*.la?")]).unwrap();
    assert_eq!((files.files().len(), files.num_points()), (3, 1800));
    let cloud = files.read(&Attributes { gps_time: true, ..Attributes::default() }).unwrap();
    let expected: Vec<_> = [1000, 500, 300].iter().flat_map(|&num| (0..num).map(point_of)).collect();
    assert_eq!(cloud.points, expected);
    assert_eq!(cloud.attributes.gps_time.len(), 1800);
    assert_eq!(cloud.positions().next(), Some([1000.0, -500.0, 0.0]));
}

/// Returns the message of the error of opening or reading files.
fn message(paths: &[PathBuf]) -> String {
    let error = CloudFiles::open(paths).and_then(|files| files.read(&Attributes::default())).unwrap_err();
    assert!(matches!(error, Error::InvalidFile { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn files_that_do_not_fit_together() {
    let folder = folder();
    let first = file(&folder, "first.las", 0, 10);
    let other = |name: &str, lattice: Lattice, wkt: Option<&str>| {
        let mut header = header(6, false, lattice);
        if let Some(wkt) = wkt {
            header.set_wkt_crs(wkt.as_bytes().to_vec()).unwrap();
        }
        let path = folder.path().join(name);
        write(&path, header, &points(10, 6, lattice));
        path
    };
    let scale = other("scale.las", Lattice { scale: [0.1; 3], ..LATTICE }, None);
    assert!(message(&[first.clone(), scale]).contains("do not lie on those of"));
    let utm = other("utm.las", LATTICE, Some(r#"PROJCS["WGS 84 / UTM zone 33N",GEOGCS["WGS 84"]]"#));
    let text = message(&[first.clone(), utm.clone()]);
    assert!(
        text.contains("its reference system (CRS) is WGS 84 / UTM zone 33N, that of")
            && text.contains("is none"),
        "{text}"
    );
    let cloud = CloudFiles::open(&[utm]).unwrap().read(&Attributes::default()).unwrap();
    assert_eq!(cloud.reference_system.unwrap().to_string(), "WGS 84 / UTM zone 33N");
    assert!(message(&[folder.path().join("none-*.las")]).contains("no file matches"));
    let files = CloudFiles::open(&[first]).unwrap();
    let error = files.read(&Attributes { color: true, ..Attributes::default() }).unwrap_err();
    assert!(error.to_string().contains("points of format 0 have no color"), "{error}");
    let error = files.filter(CloudFilter::default().levels(0..=2)).read(&Attributes::default()).unwrap_err();
    assert!(error.to_string().contains("no COPC file"), "{error}");
    let none: [&Path; 0] = [];
    assert!(matches!(CloudFiles::open(&none), Err(Error::OutOfRange { .. })));
}

#[test]
fn headers_that_lie() {
    let folder = folder();
    let path = file(&folder, "a.las", 0, 100);
    let bytes = std::fs::read(&path).unwrap();
    let other = folder.path().join("other.las");
    let with = |at: usize, new: &[u8]| {
        let mut changed = bytes.clone();
        changed[at..at + new.len()].copy_from_slice(new);
        std::fs::write(&other, changed).unwrap();
        message(std::slice::from_ref(&other))
    };
    // The number of points, the scale of x, the offset of y, the point format.
    assert!(
        with(107, &u32::MAX.to_le_bytes())
            .contains("declares 4294967295 points, and the file has bytes for 100")
    );
    for scale in [0.0, f64::NAN, f64::INFINITY, -1.0] {
        assert!(with(131, &scale.to_le_bytes()).contains("on axis 0 the scale is"));
    }
    assert!(with(163, &f64::NAN.to_le_bytes()).contains("on axis 1 the scale is 0.01 and the offset NaN"));
    assert!(with(104, &[60]).contains("format"));
    assert!(with(0, b"LASX").contains("LASF"));
    std::fs::write(&other, []).unwrap();
    assert!(message(std::slice::from_ref(&other)).contains("cut short"));
    assert!(matches!(CloudFiles::open(&[folder.path().join("nothing.las")]), Err(Error::Io { .. })));
}

#[test]
fn reference_systems_in_any_extended_record() {
    let folder = folder();
    let path = folder.path().join("a.las");
    let mut builder = Builder::from(header(6, false, LATTICE));
    let record = |user_id: &str, record_id: u16, data: &[u8]| Vlr {
        user_id: user_id.into(),
        record_id,
        description: String::new(),
        data: data.into(),
    };
    builder.evlrs =
        vec![record("other", 1, b"nothing"), record("LASF_Projection", 2112, b"PROJCS[\"second\"]\0")];
    let mut writer = Writer::from_path(&path, builder.into_header().unwrap()).unwrap();
    points(3, 6, LATTICE).into_iter().for_each(|point| writer.write_point(point).unwrap());
    writer.close().unwrap();
    let wkt = |path: &Path| {
        let files = CloudFiles::open(&[path]).map_err(|error| error.to_string())?;
        Ok::<_, String>(files.reference_system().and_then(|system| system.wkt.clone()))
    };
    assert_eq!(wkt(&path).unwrap().as_deref(), Some("PROJCS[\"second\"]"));
    // The second record ends behind the file.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(wkt(&path).unwrap_err().contains("the extended record at byte"));
}

/// Writes a COPC file: the root has `num` points, each child of the root too; the children are in another page of the hierarchy.
fn copc(path: &Path, num: usize) -> Vec<[i32; 3]> {
    let mut builder = Builder::from((1, 4));
    builder.point_format = Format::new(6).unwrap();
    builder.point_format.is_compressed = true;
    builder.has_wkt_crs = true;
    let of = |axis: usize| Transform { scale: LATTICE.scale[axis], offset: LATTICE.offset[axis] };
    builder.transforms = Vector { x: of(0), y: of(1), z: of(2) };
    let laz_items =
        laz::LazVlrBuilder::default().with_point_format(6, 0).unwrap().with_variable_chunk_size().build();
    let mut laz_record = Cursor::new(Vec::new());
    laz_items.write_to(&mut laz_record).unwrap();
    let record = |user_id: &str, record_id: u16, data: Vec<u8>| Vlr {
        user_id: user_id.into(),
        record_id,
        description: String::new(),
        data,
    };
    builder.vlrs = vec![
        record("copc", 1, vec![0; 160]),
        record(laz::LazVlr::USER_ID, laz::LazVlr::RECORD_ID, laz_record.into_inner()),
    ];
    let mut raw = builder.into_header().unwrap().into_raw().unwrap();
    // Nodes: the root, and its eight children. The octree is the cube of side 128 from the least corner.
    let mut keys = vec![VoxelKey { l: 0, x: 0, y: 0, z: 0 }];
    keys.extend((0..8).map(|child| VoxelKey { l: 1, x: child & 1, y: child >> 1 & 1, z: child >> 2 }));
    let corner = [1000.0, -600.0, 0.0];
    let mut random = Random::of(3, 0);
    let mut nodes = Vec::new();
    for key in &keys {
        let side = 128.0 / f64::from(1 << key.l);
        let low = [key.x, key.y, key.z].map(f64::from);
        let points: Vec<[i32; 3]> = (0..num)
            .map(|_| {
                std::array::from_fn(|axis| {
                    let at = corner[axis]
                        + side
                            * (low[axis] + 0.01 + 0.98 * random.below(1 << 20) as f64 / f64::from(1 << 20));
                    ((at - LATTICE.offset[axis]) / LATTICE.scale[axis]) as i32
                })
            })
            .collect();
        nodes.push(points);
    }
    let total = num * keys.len();
    raw.number_of_point_records = 0;
    raw.large_file = Some(las::raw::header::LargeFile {
        number_of_point_records: total as u64,
        number_of_points_by_return: [0; 15],
    });
    let mut file = Cursor::new(Vec::new());
    raw.evlr = Some(las::raw::header::Evlr { start_of_first_evlr: 0, number_of_evlrs: 1 });
    raw.write_to(&mut file).unwrap();
    let info_at = file.position() + 54;
    let write_record = |file: &mut Cursor<Vec<u8>>, user_id: &str, record_id: u16, data: &[u8]| {
        let mut id = [0; 16];
        id[..user_id.len()].copy_from_slice(user_id.as_bytes());
        file.write_all(&[0; 2]).unwrap();
        file.write_all(&id).unwrap();
        file.write_all(&record_id.to_le_bytes()).unwrap();
        file.write_all(&(data.len() as u16).to_le_bytes()).unwrap();
        file.write_all(&[0; 32]).unwrap();
        file.write_all(data).unwrap();
    };
    write_record(&mut file, "copc", 1, &[0; 160]);
    let mut laz_record = Cursor::new(Vec::new());
    laz_items.write_to(&mut laz_record).unwrap();
    write_record(&mut file, laz::LazVlr::USER_ID, laz::LazVlr::RECORD_ID, laz_record.get_ref());
    assert_eq!(file.position(), u64::from(raw.offset_to_point_data));
    let mut compressor = laz::LasZipCompressor::new(&mut file, laz_items).unwrap();
    let mut chunks = Vec::new();
    for points in &nodes {
        let before = if chunks.is_empty() {
            u64::from(raw.offset_to_point_data) + 8
        } else {
            compressor.get().position()
        };
        for point in points {
            let mut bytes = [0; 30];
            for axis in 0..3 {
                bytes[4 * axis..][..4].copy_from_slice(&point[axis].to_le_bytes());
            }
            bytes[14] = 0x11;
            compressor.compress_one(&bytes).unwrap();
        }
        compressor.finish_current_chunk().unwrap();
        chunks.push((before, compressor.get().position() - before));
    }
    compressor.done().unwrap();
    drop(compressor);
    // Pages: the root and an entry for the second page; then the children.
    let extended = file.seek(SeekFrom::End(0)).unwrap();
    let entry = |key: &VoxelKey, offset: u64, bytes: i32, num: i32| {
        let mut entry = Vec::new();
        [key.l, key.x, key.y, key.z].iter().for_each(|part| entry.extend(part.to_le_bytes()));
        entry.extend(offset.to_le_bytes());
        entry.extend(bytes.to_le_bytes());
        entry.extend(num.to_le_bytes());
        entry
    };
    let data = |i: usize| entry(&keys[i], chunks[i].0, chunks[i].1 as i32, num as i32);
    let mut pages = data(0);
    pages.extend(entry(&keys[1], extended + 60 + 64, 8 * 32, -1));
    (1..9).for_each(|i| pages.extend(data(i)));
    let mut id = [0; 16];
    id[..4].copy_from_slice(b"copc");
    file.write_all(&[0; 2]).unwrap();
    file.write_all(&id).unwrap();
    file.write_all(&1000_u16.to_le_bytes()).unwrap();
    file.write_all(&(pages.len() as u64).to_le_bytes()).unwrap();
    file.write_all(&[0; 32]).unwrap();
    file.write_all(&pages).unwrap();
    let mut bytes = file.into_inner();
    bytes[235..243].copy_from_slice(&extended.to_le_bytes());
    let info = &mut bytes[info_at as usize..][..160];
    let numbers = [corner[0] + 64.0, corner[1] + 64.0, corner[2] + 64.0, 64.0, 1.0];
    numbers
        .iter()
        .enumerate()
        .for_each(|(i, number)| info[8 * i..][..8].copy_from_slice(&number.to_le_bytes()));
    info[40..48].copy_from_slice(&(extended + 60).to_le_bytes());
    info[48..56].copy_from_slice(&64_u64.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
    nodes.concat()
}

#[test]
fn octrees_are_read_by_level_and_box() {
    let folder = folder();
    let path = folder.path().join("a.copc.laz");
    let expected = copc(&path, 200);
    let files = CloudFiles::open(&[&path]).unwrap();
    assert_eq!((files.files()[0].num_levels(), files.num_points()), (Some(2), 1800));
    let read =
        |filter: CloudFilter| files.clone().filter(filter).read(&Attributes::default()).unwrap().points;
    assert_eq!(read(CloudFilter::default()), expected);
    assert_eq!(read(CloudFilter::default().levels(0..=0)), expected[..200]);
    assert_eq!(read(CloudFilter::default().levels(1..=7)), expected[200..]);
    let bounds = [[1000.0, -600.0, 0.0], [1020.0, -580.0, 30.0]];
    let is_in = |point: &&[i32; 3]| {
        let position = LATTICE.position(**point);
        (0..3).all(|axis| bounds[0][axis] <= position[axis] && position[axis] <= bounds[1][axis])
    };
    let inside: Vec<_> = expected.iter().filter(is_in).copied().collect();
    assert!(!inside.is_empty());
    assert_eq!(read(CloudFilter::default().bounds(bounds)), inside);
    assert_eq!(files.files()[0].chunks.all.len(), 9);
    // A page that refers to itself, and a node with the points of another: entries of 32 bytes, with the offset at byte 16.
    let bytes = std::fs::read(&path).unwrap();
    let pages = bytes.len() - 10 * 32;
    let with = |entry: usize, of: usize, len: usize| {
        let mut changed = bytes.clone();
        changed.copy_within(pages + of..pages + of + len, pages + entry * 32 + 16);
        std::fs::write(&path, changed).unwrap();
        message(std::slice::from_ref(&path))
    };
    let node = |of: usize| of * 32 + 16;
    assert!(with(3, node(2), 12).contains("two nodes of the octree share the points"));
    let mut changed = bytes.clone();
    let root = (pages as u64).to_le_bytes();
    changed[pages + node(1)..][..8].copy_from_slice(&root);
    std::fs::write(&path, changed).unwrap();
    assert!(message(std::slice::from_ref(&path)).contains("occurs twice or ends after the file"));
}

#[test]
fn broken_files_are_errors() {
    let folder = folder();
    let octree = folder.path().join("b.copc.laz");
    copc(&octree, 20);
    let paths =
        [file(&folder, "a.las", 3, 40), file(&folder, "a.laz", 1, 40), file(&folder, "b.laz", 7, 40), octree];
    let other = folder.path().join("other");
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(&other, bytes).unwrap();
            let files = CloudFiles::open(std::slice::from_ref(&other));
            let read =
                files.and_then(|files| files.read(&Attributes { class: true, ..Attributes::default() }));
            match read {
                Err(Error::InvalidFile { .. } | Error::OutOfMemory { .. }) | Ok(_) => {}
                Err(error) => panic!("{error:?}"),
            }
        };
        read(&bytes);
        (0..bytes.len()).step_by(17).for_each(|len| read(&bytes[..len]));
        // Every byte of the header, and some of the points.
        for at in (0..bytes.len()).filter(|at| *at < 700 || at % 11 == 0) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            read(&changed);
            changed[at] = !bytes[at];
            read(&changed);
        }
        let mut random = Random::of(bytes.len() as u64, 0);
        for _ in 0..300 {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(6) {
                let at = random.below(bytes.len() as u64) as usize;
                changed[at] = random.below(256) as u8;
            }
            read(&changed);
        }
    }
}
