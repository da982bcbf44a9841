//! Parts of a join in host memory, dealt to devices.

use super::slabs::Ids;
use crate::device::{Buffer, Gpu, Staging, Stream, Workspace};
use crate::error::Result;
use crate::memory::vec_with_capacity;
use crate::threads::each;
use bytemuck::Pod;
use cust_core::DeviceCopy;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

/// Larger arrays are uploaded by way of page-locked memory.
const STAGED: usize = 256 << 20;

/// Uploads parts and joins them. Each device begins with one part, and takes the next one when that is uploaded; one part is uploaded while
/// another is joined. Returns the most bytes of scratch memory of a device. After an error the devices take no more parts.
pub(super) fn deal<P: Send>(
    gpus: &[Gpu],
    num_parts: usize,
    upload: impl Fn(&mut Uploader<'_>, usize) -> Result<P> + Sync,
    join: impl Fn(&Stream, &mut Workspace, P) -> Result<()> + Sync,
) -> Result<u64> {
    let next = AtomicUsize::new(gpus.len());
    let join_parts = |first: usize, stream: &Stream, workspace: &mut Workspace| {
        thread::scope(|scope| {
            let (sender, parts) = sync_channel(0);
            let (next, upload) = (&next, &upload);
            scope.spawn(move || {
                let (mut uploader, mut i) = (Uploader::new(stream), first);
                while i < num_parts {
                    let part = upload(&mut uploader, i);
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

/// Uploads arrays to a device.
pub(super) struct Uploader<'a> {
    pub(super) stream: &'a Stream,
    staging: Option<Staging>,
}

impl<'a> Uploader<'a> {
    pub(super) fn new(stream: &'a Stream) -> Self {
        Self { stream, staging: None }
    }

    /// Uploads `width` items for each of some points.
    pub(super) fn items<T: DeviceCopy + Pod + Send + Sync>(
        &mut self,
        from: &[T],
        width: usize,
        ids: &Ids,
        label: &'static str,
    ) -> Result<Buffer<T>> {
        let len = ids.len() * width;
        let make = |first: usize, to: &mut [MaybeUninit<T>]| match ids {
            Ids::Range(range) => {
                to.write_copy_of_slice(&from[(range.start + first) * width..][..to.len()]);
            }
            Ids::List(ids) => {
                for (to, &id) in to.chunks_exact_mut(width).zip(&ids[first..]) {
                    to.write_copy_of_slice(&from[id as usize * width..][..width]);
                }
            }
        };
        if len * size_of::<T>() >= STAGED {
            let staging = match &mut self.staging {
                Some(staging) => staging,
                none => none.insert(Staging::new(self.stream.gpu())?),
            };
            return staging.upload(ids.len(), width, label, make);
        }
        match ids {
            Ids::Range(range) => Buffer::from_slice(self.stream, &from[range.start * width..][..len], label),
            Ids::List(ids) => {
                let mut items: Vec<T> = vec_with_capacity(len, label)?;
                ids.iter().for_each(|&id| items.extend_from_slice(&from[id as usize * width..][..width]));
                Buffer::from_slice(self.stream, &items, label)
            }
        }
    }
}
