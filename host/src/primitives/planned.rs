//! Temporary memory that is planned and carved in one step.

use crate::device::{Layout, Stream, Temp, Workspace};
use crate::error::Result;

/// Returns the bytes of temporary memory that a plan takes.
pub(crate) fn bytes_of<P>(plan: impl FnOnce(&mut Layout) -> P) -> u64 {
    let mut layout = Layout::new();
    plan(&mut layout);
    layout.bytes()
}

/// Plans temporary memory, and carves it from a workspace. `label` names the purpose in errors.
pub(crate) fn carve<'w, P>(
    stream: &Stream,
    workspace: &'w mut Workspace,
    label: &'static str,
    plan: impl FnOnce(&mut Layout) -> P,
) -> Result<(P, Temp<'w>)> {
    let mut layout = Layout::new();
    let planned = plan(&mut layout);
    Ok((planned, workspace.carve(stream, &layout, label)?))
}
