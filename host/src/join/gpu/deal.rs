//! Joins of sets in host memory on several devices: uploads, and parts that the devices take in turn.

use super::slabs::Ids;
use crate::device::{Buffer, Gpu, Stream, Workspace};
use crate::error::Result;
use crate::threads::{each, even};
use bytemuck::Pod;
use cuda_std::mem::SliceMut;
use cust_core::DeviceCopy;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

/// The purposes of buffers, in errors.
pub(super) const COORDS: &str = "points of a join";
pub(super) const SCORES: &str = "scores of a join";

/// Uploads parts and joins them. Each device begins with one part, and takes the next one when that is uploaded; one part is uploaded while
/// another is joined. Returns the most bytes of scratch memory of a device. After an error the devices take no more parts.
pub(super) fn deal<P: Send>(
    gpus: &[Gpu],
    num_parts: usize,
    upload: impl Fn(&Stream, usize) -> Result<P> + Sync,
    join: impl Fn(&Stream, &mut Workspace, P) -> Result<()> + Sync,
) -> Result<u64> {
    let next = AtomicUsize::new(gpus.len());
    let join_parts = |first: usize, stream: &Stream, workspace: &mut Workspace| {
        // Another stream than that of the joins, so that uploads do not wait for them.
        let uploads = &Stream::new(stream.gpu())?;
        thread::scope(|scope| {
            let (sender, parts) = sync_channel(0);
            let (next, upload) = (&next, &upload);
            scope.spawn(move || {
                let mut i = first;
                while i < num_parts {
                    let part = upload(uploads, i);
                    let has_failed = part.is_err();
                    if sender.send(part).is_err() || has_failed {
                        break;
                    }
                    i = next.fetch_add(1, Ordering::Relaxed);
                }
            });
            parts.into_iter().try_for_each(|part| join(stream, workspace, part?))
        })
    };
    let temp_bytes = each(gpus.iter().enumerate(), |(i, gpu)| {
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let joined = join_parts(i, &stream, &mut workspace);
        joined.inspect_err(|_| next.store(num_parts, Ordering::Relaxed))?;
        Ok(workspace.bytes())
    })?;
    Ok(temp_bytes.into_iter().max().unwrap_or(0))
}

/// Uploads `width` items for each of some points.
pub(super) fn upload_items<T: DeviceCopy + Pod + Send + Sync>(
    stream: &Stream,
    from: &[T],
    width: usize,
    ids: &Ids,
    label: &'static str,
) -> Result<Buffer<T>> {
    let mut buffer = Buffer::uninitialized(stream.gpu(), ids.len() * width, label)?;
    // SAFETY: nothing else uses the new memory.
    unsafe { upload_to(stream, buffer.slice_mut(), from, width, ids)? };
    Ok(buffer)
}

/// Uploads rows of some width to each device. Every device uploads a share by `upload`, and copies the other shares from the other devices.
/// Without direct copies between the devices, each uploads all.
pub(super) fn upload_to_all<T: DeviceCopy + Pod + Send + Sync>(
    gpus: &[Gpu],
    (num_rows, width): (usize, usize),
    label: &'static str,
    upload: impl Fn(&Stream, SliceMut<'_, T>, Range<usize>) -> Result<()> + Sync,
) -> Result<Vec<Buffer<T>>> {
    let streams = gpus.iter().map(Stream::new).collect::<Result<Vec<_>>>()?;
    let pairs = streams.iter().flat_map(|to| streams.iter().map(move |from| (to, from)));
    let reached = pairs.map(|(to, from)| to.reaches(from)).collect::<Result<Vec<_>>>()?;
    if reached.contains(&false) {
        return each(&streams, |stream| {
            let mut buffer = Buffer::uninitialized(stream.gpu(), num_rows * width, label)?;
            upload(stream, buffer.slice_mut(), 0..num_rows)?;
            Ok(buffer)
        });
    }
    let shares: Vec<_> = even(num_rows, gpus.len()).collect();
    let mut buffers = each(streams.iter().zip(&shares), |(stream, share)| {
        let mut buffer = Buffer::uninitialized(stream.gpu(), num_rows * width, label)?;
        upload(stream, rows(buffer.slice_mut(), share, width), share.clone())?;
        Ok(buffer)
    })?;
    let all: Vec<_> = buffers.iter_mut().map(Buffer::slice_mut).collect();
    each(streams.iter().enumerate(), |(i, stream)| {
        let mut others = shares.iter().enumerate().filter(|&(other, _)| other != i);
        let copied = others.try_for_each(|(other, share)| {
            let (to, source) = (rows(all[i], share, width), rows(all[other], share, width).read_only());
            // SAFETY: uploads are done, and the buffers stay alive until all copies are.
            unsafe { stream.copy_from(to, &streams[other], source) }
        });
        stream.synchronize().and(copied)
    })?;
    Ok(buffers)
}

/// Uploads `width` items for each of some points to each device.
pub(super) fn upload_items_to_all<T: DeviceCopy + Pod + Send + Sync>(
    gpus: &[Gpu],
    from: &[T],
    width: usize,
    ids: &Ids,
    label: &'static str,
) -> Result<Vec<Buffer<T>>> {
    upload_to_all(gpus, (ids.len(), width), label, |stream, to, share| {
        // SAFETY: nothing else uses the view.
        unsafe { upload_to(stream, to, from, width, &ids.part(share)) }
    })
}

/// Returns the items of a range of rows.
fn rows<'a, T>(all: SliceMut<'a, T>, rows: &Range<usize>, width: usize) -> SliceMut<'a, T> {
    assert!(rows.end * width <= all.len());
    // SAFETY: as asserted.
    unsafe { all.part(rows.start * width, rows.len() * width) }
}

/// Uploads `width` items for each of some points to a view.
///
/// # Safety
/// The view has the items of the points, in memory of the stream's device that no other work uses.
unsafe fn upload_to<T: DeviceCopy + Pod + Send + Sync>(
    stream: &Stream,
    to: SliceMut<'_, T>,
    from: &[T],
    width: usize,
    ids: &Ids,
) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe {
        match ids {
            Ids::Range(range) => stream.upload(to, &from[range.start * width..range.end * width]),
            Ids::List(ids) => stream.upload_by(to, width, |first, to| {
                for (to, &id) in to.chunks_exact_mut(width).zip(&ids[first..]) {
                    to.write_copy_of_slice(&from[id as usize * width..][..width]);
                }
                Ok(())
            }),
        }
    }
}
