//! `kauri render`, run in this process.

use kauri_tests::device_names;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Runs the program. `@` in an argument is the folder. Returns the exit code, standard output and standard error.
fn run(folder: &TempDir, arguments: &str) -> (u8, String, String) {
    let folder = folder.path().display().to_string();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let all = format!("kauri {arguments}");
    let code =
        kauri_cli::main_with(all.split_whitespace().map(|one| one.replace('@', &folder)), &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_small_knot_on_every_device_by_every_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut pictures = Vec::new();
    let indexes = ["bvh", "sah", "sah-exact"];
    for (device, index) in device_names().iter().flat_map(|device| indexes.map(|index| (device, index))) {
        let arguments =
            "render --model torus-knot --triangles 400 --size 32x24 --samples 1 --ao 2 --out @/a.png";
        let (code, out, err) = run(&folder, &format!("{arguments} --device {device} --index {index}"));
        assert_eq!((code, err.as_str()), (0, ""));
        for text in ["triangles, 32 x 24 pixels", "build ", "trace ", "a second", "a.png"] {
            assert!(out.contains(text), "'{text}' is not in\n{out}");
        }
        pictures.push(fs::read(folder.path().join("a.png")).unwrap());
    }
    assert!(pictures[0].starts_with(b"\x89PNG") && pictures.iter().all(|one| *one == pictures[0]));
    assert_eq!(entries(folder.path()), 1);
}

#[test]
fn animations() {
    let folder = tempfile::tempdir().unwrap();
    for motion in ["waves", "twist"] {
        let arguments =
            "render --model terrain --triangles 200 --size 16x12 --device cpu --frames 3 --out @/a.png";
        let (code, out, err) = run(&folder, &format!("{arguments} --animate {motion}"));
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        let file = fs::read(folder.path().join("a.png")).unwrap();
        // The chunk `acTL` has the number of frames.
        let at = file.windows(4).position(|four| four == b"acTL").unwrap();
        assert_eq!(file[at + 4..at + 8], [0, 0, 0, 3]);
    }
}

#[test]
fn invalid_files_and_arguments() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.ply"), "ply\nformat ascii 1.0\n").unwrap();
    fs::write(folder.path().join("good.obj"), "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n").unwrap();
    for (arguments, what) in [
        ("@/bad.ply --out @/a.png", "bad.ply"),
        ("@/none.ply --out @/a.png", "none.ply: No such file or directory"),
        ("--out @/a.png", "--model"),
        ("@/good.obj --model soup --out @/a.png", "cannot be used with"),
        ("@/good.obj --out @/a.png --size 0x9", "--size: width of a picture 0"),
        ("@/good.obj --out @/a.png --samples 0", "--samples: samples of a pixel 0"),
        ("@/good.obj --out @/a.png --ao 9999", "--ao: rays of ambient occlusion 9999"),
        ("@/good.obj --out @/a.jpg", "--out <FILE.png>': unknown format: the name must end in .png"),
        ("@/good.obj --out @/a", "the name must end in .png"),
        ("@/good.obj --out @/a.png --size 9", "such as 1280x720"),
        ("@/good.obj --out @/a.png --field-of-view 200", "--field-of-view: field of view in degrees 200"),
        ("@/good.obj --out @/a.png --azimuth NaN", "expected a number of degrees"),
        ("@/good.obj --out @/missing/a.png", "missing/a.png: No such file"),
        ("@/good.obj --out @/a.png --frames 3", "--animate"),
    ] {
        let (code, out, err) = run(&folder, &format!("render --device cpu {arguments}"));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments}");
        assert!(err.starts_with("error: ") && err.contains(what), "{err}");
        assert_eq!(entries(folder.path()), 2);
    }
    let (code, _, err) = run(&folder, "render --device cpu @/good.obj --size 8x8 --out @/a.png");
    assert_eq!((code, err.as_str()), (0, ""));
}
