//! Lists the kernels of a pack, with the bytes that each takes in the file.

use cuda_pack::{Pack, PackError};
use std::fs::File;
use std::io::BufReader;

fn main() -> Result<(), PackError> {
    let Some(path) = std::env::args().nth(1) else {
        println!("usage: list <file.pack>");
        return Ok(());
    };
    let pack = Pack::read(&mut BufReader::new(File::open(path)?))?;
    println!("{} for sm_{}", pack.form().name(), pack.arch());
    for (name, member) in pack.members() {
        println!("{name} of the family {}: {} bytes", member.family(), member.range().count());
    }
    Ok(())
}
