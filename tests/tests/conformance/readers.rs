//! Readers of tables and meshes, with valid and broken files: each file gives complete data or an error about the file. Nothing is
//! printed, nothing panics, and memory is limited by the size of the file.

#[path = "readers/seeds.rs"]
mod seeds;

use kauri::LonLat;
use kauri::io::Table;
use kauri_tests::read_any::{read_table, read_triangles};
use std::path::Path;
use std::process::Command;

/// The environment variable that is set in the process that reads broken files.
const READS: &str = "KAURI_READS_BROKEN_FILES";
/// The address space of that process in KiB: much less than the lengths in broken files.
const ADDRESS_SPACE: u64 = 6 << 20;

/// A reader of bytes, which it first writes to the given path. Returns true if the data were read.
type Read = fn(&Path, &[u8]) -> bool;

/// Passes changed copies of a file to `each`, with a few changes of every kind. Every run has the same changes; the environment variable
/// `KAURI_FUZZ_ROUNDS` increases their number.
fn changed(seed: &[u8], others: &[Vec<u8>], mut each: impl FnMut(&[u8])) {
    let rounds = std::env::var("KAURI_FUZZ_ROUNDS").map_or(1, |text| text.parse().expect("a number"));
    let mut state = 7_u64;
    let mut below = |n: usize| {
        // Knuth's 64-bit linear congruential generator. Its upper bits are the better ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    let step = if rounds > 1 { 1 } else { 29 };
    (0..seed.len()).step_by(step).for_each(|len| each(&seed[..len]));
    for at in (0..seed.len()).step_by(step.min(3)) {
        let all = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF];
        let some = [all[at % 9]];
        for bits in if rounds > 1 { &all[..] } else { &some[..] } {
            let mut bytes = seed.to_vec();
            bytes[at] ^= bits;
            each(&bytes);
        }
    }
    for _ in 0..rounds * 100 {
        let mut bytes = seed.to_vec();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            let end = (at + below(9)).min(bytes.len());
            match below(6) {
                0 => bytes[at] = below(256) as u8,
                1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF][below(6)],
                // Very large numbers, as bytes and as text.
                2 => drop(bytes.splice(at..end, [0xFF; 5])),
                3 => drop(bytes.splice(at..at, *b"18446744073709551615")),
                4 => bytes.truncate(at.max(1)),
                _ => {
                    let other = &others[below(others.len())];
                    let from = below(other.len());
                    let to = (from + below(64)).min(other.len());
                    drop(bytes.splice(at..at, other[from..to].iter().copied()));
                }
            }
        }
        each(&bytes);
    }
}

/// Reads all seeds and their changed copies.
fn read_all(name: &str, seeds: &[Vec<u8>], read: Read) {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    if let Some(to) = std::env::var_os("KAURI_SEEDS") {
        let to = Path::new(&to).join(name);
        std::fs::create_dir_all(&to).unwrap();
        let write =
            |(i, seed): (usize, &Vec<u8>)| std::fs::write(to.join(format!("seed-{i}")), seed).unwrap();
        seeds.iter().enumerate().for_each(write);
    }
    let (mut num_read, mut num_changed) = (0, 0);
    for seed in seeds {
        assert!(read(&scratch, seed), "a seed of {name} cannot be read");
        changed(seed, seeds, |bytes| {
            num_read += u32::from(read(&scratch, bytes));
            num_changed += 1;
        });
    }
    // Some changed files are still valid, so the code after the first checks is tested, too.
    let is_mixed = num_read > num_changed / 100 && num_read < num_changed;
    assert!(is_mixed, "{num_read} of {num_changed} changed files of {name} were read");
}

/// Runs `read` in a new process of this test with a limited address space, and checks that it prints nothing to standard error.
fn in_silence(test: &str, read: impl FnOnce()) {
    if std::env::var_os(READS).is_some() {
        return read();
    }
    let test = format!("readers::{test}");
    let exe = std::env::current_exe().unwrap();
    let mut child = if cfg!(target_os = "linux") {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"")]).arg(exe);
        shell
    } else {
        Command::new(exe)
    };
    child.args(["--exact", &test, "--nocapture", "--test-threads=1"]).env(READS, "1");
    let output = child.output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "{stdout}");
    assert_eq!(stderr, "");
}

#[test]
fn broken_tables_and_meshes() {
    in_silence("broken_tables_and_meshes", || {
        read_all("read_csv", &seeds::csv(), read_table);
        read_all("read_ply", &seeds::ply(), read_triangles);
        read_all("read_obj", &seeds::obj(), read_triangles);
    });
}

/// Reads equal values in all encodings and compressions. The checks before the decoder accept all of them.
#[test]
fn parquet_files_of_all_shapes() {
    let folder = tempfile::tempdir().unwrap();
    for (i, seed) in seeds::parquet().iter().enumerate() {
        let path = folder.path().join(format!("{i}.parquet"));
        std::fs::write(&path, seed).unwrap();
        let table = Table::read(&path).unwrap();
        assert_eq!(table.columns().join(" "), "b i j k x y geometry s.t w", "shape {i}");
        let texts = |column: usize| table.texts(column).unwrap_or_else(|error| panic!("shape {i}: {error}"));
        assert_eq!(texts(0).join(" "), "true false false true false true false", "shape {i}");
        assert_eq!(texts(1).join(" "), "4294967289  993  1993 4294967289 ", "shape {i}");
        assert_eq!(texts(2)[4], "1970-01-01 04:46:19.869184 +00:00", "shape {i}");
        assert_eq!(texts(3)[..2], ["1970-01-01 00:00:38.654 +00:00", ""], "shape {i}");
        assert_eq!(texts(4)[2..4].join(" "), "0.6666667 1", "shape {i}");
        assert_eq!(texts(5)[2], (-1.0 / 7.0).to_string(), "shape {i}");
        assert_eq!(texts(7).join("|"), "text 0||text 0||text 1|text 0|", "shape {i}");
        assert_eq!(texts(8).join(" "), "010200  010201  010202 010200 ", "shape {i}");
        let places = table.places(table.place_columns(None, None).unwrap()).unwrap();
        assert_eq!(places[4], LonLat::new(4.0, 5.5), "shape {i}");
    }
}

#[test]
fn broken_parquet_files() {
    in_silence("broken_parquet_files", || read_all("read_parquet", &seeds::parquet(), read_table));
}
