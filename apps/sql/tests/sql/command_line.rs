//! The program.

use std::fs;

/// Runs the program, and returns its exit code and what it wrote on standard output and standard error.
fn run(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["kauri-sql"].into_iter().chain(args.iter().copied());
    let code = kauri_sql::cli::main_with(args, &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn results_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fs::write(path("points.csv"), "id,x,y\n1,0,0\n2,3,4\n").unwrap();
    let table = format!("p={}", path("points.csv"));
    let sql = "SELECT id, id_right, distance FROM knn_join(p, p, 2) WHERE id < id_right";
    fs::write(path("query.sql"), sql).unwrap();
    let (code, out, err) = run(&[sql, "--table", &table, "--device", "cpu"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains("| id | id_right | distance |") && out.contains("| 1  | 2        | 5.0      |"),
        "{out}"
    );
    let (code, out, err) =
        run(&["--file", &path("query.sql"), "--table", &table, "--format", "csv", "--timing"]);
    assert_eq!((code, out.as_str()), (0, "id,id_right,distance\n1,2,5.0\n"));
    assert!(err.starts_with("planned in "), "{err}");
    let (_, out, _) = run(&[sql, "--table", &table, "--format", "json"]);
    assert_eq!(out, "[{\"id\":1,\"id_right\":2,\"distance\":5.0}]\n");
}

#[test]
fn failures_exit_with_2() {
    for (args, expected) in [
        (&["--format", "xml", "SELECT 1"][..], "invalid value 'xml'"),
        (&[], "required"),
        (&["SELECT 1", "--file", "q.sql"], "cannot be used with"),
        (&["SELECT 1", "--table", "cities"], "expected NAME=FILE"),
        (
            &["SELECT 1", "--table", "cities=cities.txt"],
            "is not a file with the ending .csv, .parquet, .las or .laz",
        ),
        (&["--file", "missing.sql"], "missing.sql: "),
        (&["SELECT 1", "--cluster", "ftp://host"], "ftp://host is not the address of a cluster"),
        (&["SELECT FROM FROM"], "error: "),
        (
            &["SELECT * FROM knn_join('missing.csv', 'missing.csv', 0)"],
            "table or file 'missing.csv' not found",
        ),
    ] {
        let (code, out, err) = run(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}
