//! Dispatch from a number of dimensions to a constant.

/// Evaluates `$body` with the constant `$D` = `$dims`, which must be 1 to 8.
macro_rules! with_dims {
    ($dims:expr, $D:ident => $body:expr) => {
        $crate::point::with_dims!(@ $dims, $D, $body, 1 2 3 4 5 6 7 8)
    };
    (@ $dims:expr, $D:ident, $body:expr, $($n:literal)*) => {
        match $dims {
            $($n => { const $D: usize = $n; $body })*
            dims => unreachable!("{dims} dimensions"),
        }
    };
}
pub(crate) use with_dims;

/// Calls the body with the constant of its name: a listed number of dimensions that equals `$dims`, or else that of the general kernel.
macro_rules! with_kernel_dims {
    ($dims:expr, $D:ident in [$($listed:literal),*] or $general:ident => $body:expr) => {
        match $dims {
            $($listed => {
                const $D: usize = $listed;
                $body
            })*
            _ => {
                const $D: usize = $general;
                $body
            }
        }
    };
}
pub(crate) use with_kernel_dims;
