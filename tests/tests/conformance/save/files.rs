//! Paths, writers and readers.

use super::Saved;
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::{Device, Error, KdTree, KdTreeOptions};
use kauri_tests::generate::Shape;
use std::fs;
use std::io::{
    Read, Write, {self},
};
use std::path::Path;

type Tree = KdTree<[f32; 2]>;

fn tree(n: usize) -> Tree {
    let points = Shape::Uniform.points::<f32, 2>(n, 3);
    KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap()
}

fn is_io_of(error: &Error, path: &Path) -> bool {
    matches!(error, Error::Io { path: named, .. } if named == path)
}

#[test]
fn paths_that_cannot_be_written_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").join("tree.kauri");
    for path in [&missing, folder.path()] {
        let errors = [
            tree(5).save(path).unwrap_err(),
            Tree::load(&Device::cpu(), path).err().unwrap(),
            <Tree as Saved>::map(&Device::cpu(), path).err().unwrap(),
        ];
        for error in errors {
            assert!(is_io_of(&error, path), "{error}");
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk() {
    let path = Path::new("/dev/full");
    if path.exists() {
        let error = tree(5).save(path).unwrap_err();
        assert!(is_io_of(&error, path), "{error}");
    }
}

#[test]
fn saving_replaces_the_file_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    let (small, large) = (tree(500), tree(2000));
    small.save(&path).unwrap();
    let mapped = <Tree as Saved>::map(&Device::cpu(), &path).unwrap();
    large.save(&path).unwrap();
    // A tree that has the old file mapped keeps it.
    assert_eq!(mapped.answers(), small.answers());
    assert_eq!(Tree::load(&Device::cpu(), &path).unwrap().answers(), large.answers());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(mapped);
    // A mapped tree can be saved to its own file.
    let mapped = <Tree as Saved>::map(&Device::cpu(), &path).unwrap();
    mapped.save(&path).unwrap();
    assert_eq!(mapped.answers(), large.answers());
    assert_eq!(Tree::load(&Device::cpu(), &path).unwrap().answers(), large.answers());
}

#[test]
fn a_mapped_tree_outlives_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    tree(100).save(&path).unwrap();
    let mapped = <Tree as Saved>::map(&Device::cpu(), &path).unwrap();
    fs::remove_file(&path).unwrap();
    let answers = std::thread::spawn(move || mapped.answers()).join().unwrap();
    assert_eq!(answers, tree(100).answers());
}

/// A writer and a reader with short writes and reads, whose `nth` call fails.
struct Failing<'a> {
    bytes: &'a [u8],
    calls: usize,
    nth: usize,
    kind: io::ErrorKind,
}

impl Failing<'_> {
    fn call(&mut self, len: usize) -> io::Result<usize> {
        self.calls += 1;
        if self.calls == self.nth { Err(self.kind.into()) } else { Ok(len.min(700)) }
    }
}

impl Write for Failing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call(0).map(|_| ())
    }
}

impl Read for Failing<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let len = self.call(to.len())?.min(self.bytes.len());
        let (now, later) = self.bytes.split_at(len);
        to[..len].copy_from_slice(now);
        self.bytes = later;
        Ok(len)
    }
}

#[test]
fn every_call_of_a_writer_or_a_reader_fails_once() {
    let tree = tree(700);
    let bytes = Saved::write(&tree);
    let failing = |nth, kind| Failing { bytes: &bytes, calls: 0, nth, kind };
    let (mut written, mut read) = (1, 1);
    while let Err(error) = tree.write_to(failing(written, io::ErrorKind::StorageFull)) {
        assert!(is_io_of(&error, Path::new("")), "{error}");
        assert!(error.to_string().starts_with("stream: "), "{error}");
        written += 1;
    }
    while let Err(error) = Tree::read_from(&Device::cpu(), failing(read, io::ErrorKind::ConnectionReset)) {
        assert!(is_io_of(&error, Path::new("")), "{error}");
        read += 1;
    }
    assert!(written > 10 && read > 10, "{written} {read}");
    // `Interrupted` is not an error.
    for nth in 1..read {
        tree.write_to(failing(nth, io::ErrorKind::Interrupted)).ok();
        let again = Tree::read_from(&Device::cpu(), failing(nth, io::ErrorKind::Interrupted)).unwrap();
        assert_eq!(again.len(), tree.len());
    }
}

#[test]
fn several_indexes_in_one_stream() {
    let points = Shape::Lattice.points::<f64, 3>(300, 1);
    let other = BalancedKdTree::build(&Device::cpu(), &points, &BalancedOptions::default()).unwrap();
    let mut stream = Vec::new();
    tree(100).write_to(&mut stream).unwrap();
    other.write_to(&mut stream).unwrap();
    tree(7).write_to(&mut stream).unwrap();
    stream.extend(b"and more");

    let mut rest = &stream[..];
    assert_eq!(Tree::read_from(&Device::cpu(), &mut rest).unwrap().answers(), tree(100).answers());
    let read = BalancedKdTree::<[f64; 3]>::read_from(&Device::cpu(), &mut rest).unwrap();
    assert_eq!(read.answers(), other.answers());
    assert_eq!(Tree::read_from(&Device::cpu(), &mut rest).unwrap().answers(), tree(7).answers());
    assert_eq!(rest, b"and more");
}

#[cfg(unix)]
#[test]
fn loading_from_a_pipe() {
    let bytes = Saved::write(&tree(5000));
    let (reader, mut writer) = io::pipe().unwrap();
    let thread = std::thread::spawn(move || writer.write_all(&bytes));
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let loaded = Tree::load(&Device::cpu(), path).unwrap();
    thread.join().unwrap().unwrap();
    assert_eq!(loaded.answers(), tree(5000).answers());
}
