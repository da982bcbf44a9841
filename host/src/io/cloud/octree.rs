//! The octree of a COPC file (Hobu 2021, *COPC: cloud optimized point cloud specification* 1.0): nodes with a chunk of points each.

use super::chunks::Chunk;
use super::errors::FileOf;
use crate::error::Result;
use las::Header;
use las::copc::VoxelKey;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Bytes of an entry of a page: key, offset, bytes, number of points.
const ENTRY: usize = 32;
/// Where the record that describes the octree has the offset and the length of the first page.
const ROOT_PAGE: [usize; 2] = [40, 48];
/// The number of points of an entry that stands for another page.
const IS_PAGE: i32 = -1;
/// The deepest level whose cells have numbers.
const MAX_LEVEL: i32 = 30;

/// A node of an octree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) chunk: Chunk,
    pub(super) level: u32,
    pub(super) bounds: [[f64; 3]; 2],
}

/// Returns the nodes of the octree that have points, in the order of the file, or `None` if the file is no COPC file.
pub(super) fn nodes(
    file: &mut BufReader<File>,
    of: FileOf<'_>,
    header: &Header,
    num_bytes: u64,
) -> Result<Option<Vec<Node>>> {
    let (Some(info), Some(record)) =
        (header.copc_info_vlr(), header.vlrs().iter().find(|record| record.is_copc_info()))
    else {
        return Ok(None);
    };
    if !header.point_format().is_compressed {
        return Err(of.invalid("it describes an octree (COPC), and its points are not compressed"));
    }
    let number = |at: usize| record.data[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mut pages = vec![ROOT_PAGE.map(number)];
    let (mut nodes, mut bytes_left) = (Vec::new(), num_bytes);
    while let Some([offset, len]) = pages.pop() {
        // Pages that refer to each other exceed the file at last.
        if len > bytes_left || offset.saturating_add(len) > num_bytes {
            return Err(of.invalid(format!(
                "the page of the octree at byte {offset} occurs twice or ends after the file"
            )));
        }
        bytes_left -= len;
        let mut page = crate::memory::filled(len as usize, 0, "page of an octree")?;
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(&mut page))
            .map_err(|source| of.io(source))?;
        for entry in page.as_chunks::<ENTRY>().0 {
            let int = |at: usize| i32::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
            let key = VoxelKey::read_from(&mut &entry[..]).map_err(|error| of.las(error))?;
            let (offset, bytes) = (u64::from_le_bytes(std::array::from_fn(|i| entry[16 + i])), int(24));
            match (int(28), u64::try_from(bytes)) {
                (IS_PAGE, Ok(bytes)) => pages.push([offset, bytes]),
                (0, _) => {}
                (num_points @ 1.., Ok(bytes))
                    if (0..=MAX_LEVEL).contains(&key.l) && offset.saturating_add(bytes) <= num_bytes =>
                {
                    let bounds = key.bounds(&info);
                    let bounds = [bounds.min, bounds.max].map(|corner| [corner.x, corner.y, corner.z]);
                    let chunk = Chunk { offset, bytes, num_points: num_points as u64, first: 0 };
                    nodes.push(Node { chunk, level: key.l as u32, bounds });
                }
                (num_points, _) => {
                    return Err(of.invalid(format!(
                        "node {key:?} of the octree has {num_points} points in {bytes} bytes from byte {offset} of {num_bytes}"
                    )));
                }
            }
        }
    }
    nodes.sort_unstable_by_key(|node| node.chunk.offset);
    let (mut first, mut end) = (0_u64, 0);
    for Node { chunk, .. } in &mut nodes {
        if chunk.offset < end {
            return Err(
                of.invalid(format!("two nodes of the octree share the points at byte {}", chunk.offset))
            );
        }
        chunk.first = first;
        (first, end) = (first + chunk.num_points, chunk.offset + chunk.bytes);
    }
    if first != header.number_of_points() {
        let declared = header.number_of_points();
        return Err(of.invalid(format!("its octree has {first} points, and the header declares {declared}")));
    }
    Ok(Some(nodes))
}
