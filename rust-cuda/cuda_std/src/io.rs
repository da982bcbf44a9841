//! Printing from a kernel, for debugging: [`println!`](crate::println) and [`print!`](crate::print).
//!
//! On a GPU the driver collects the texts in a ring buffer of 1 MiB and writes them to standard output at the next
//! synchronization; the text of one call stays together, the order of calls of different threads is open. In the simulator a
//! text appears at once, after the place of its thread: `block 1, thread 3: x = 7`.
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! #[kernel(block = 64)]
//! pub unsafe fn find_large(x: Slice<f32>) {
//!     let i = thread::index_1d();
//!     let value = x.load(i as usize);
//!     if value > 1e6 {
//!         cuda_std::println!("x[{}] = {} (bits {:x})", i, value, value.to_bits());
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The braces are `{}`, and `{:x}` for unsigned integers. Arguments are up to eight integers and floats; others do not compile:
//!
//! ```compile_fail,E0277
//! fn text() {
//!     cuda_std::println!("{}", "text");
//! }
//! ```
//! Nor does a text whose braces do not fit the arguments, as soon as the function is compiled:
//!
//! ```compile_fail
//! cuda_std::println!("{} {}", 1u32);
//! ```
//! A kernel that prints keeps the arguments in local memory and calls the driver: print only while you look for a mistake.

use crate::sys;

/// How an argument is written.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Unsigned,
    Signed,
    Float32,
    Float64,
}

/// A value that [`println!`](crate::println) writes: an integer of up to 64 bits or a float.
pub trait Printed: Copy {
    #[doc(hidden)]
    const FORM: Form;
    /// The value in 64 bits: extended, or as an `f64`.
    #[doc(hidden)]
    fn word(self) -> u64;
}

macro_rules! printed {
    ($($t:ty: $form:ident, $word:expr;)*) => { $(
        impl Printed for $t {
            const FORM: Form = Form::$form;
            #[inline(always)]
            fn word(self) -> u64 {
                $word(self)
            }
        }
    )* };
}
printed! {
    u8: Unsigned, u64::from;
    u16: Unsigned, u64::from;
    u32: Unsigned, u64::from;
    u64: Unsigned, |x| x;
    usize: Unsigned, |x| x as u64;
    i8: Signed, |x| x as u64;
    i16: Signed, |x| x as u64;
    i32: Signed, |x| x as u64;
    i64: Signed, |x| x as u64;
    isize: Signed, |x| x as u64;
    f32: Float32, |x| f64::from(x).to_bits();
    f64: Float64, f64::to_bits;
}

/// Up to eight arguments.
#[doc(hidden)]
pub trait Arguments: Copy {
    const FORMS: &'static [Form];
    fn words(self) -> [u64; 8];
}

macro_rules! arguments {
    ($($($name:ident)*;)*) => { $(
        impl<$($name: Printed),*> Arguments for ($($name,)*) {
            const FORMS: &'static [Form] = &[$($name::FORM),*];
            #[inline(always)]
            #[allow(non_snake_case, unused_mut, unused_assignments, unused_variables)]
            fn words(self) -> [u64; 8] {
                let ($($name,)*) = self;
                let (mut words, mut i) = ([0; 8], 0);
                $( words[i] = $name.word(); i += 1; )*
                words
            }
        }
    )* };
}
arguments! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

/// The text of one call of [`print!`](crate::print).
#[doc(hidden)]
pub trait Text {
    const TEXT: &'static str;
}

/// A part of a text.
pub(crate) enum Piece {
    /// The byte.
    Byte(u8),
    /// The next argument, in hexadecimal if true.
    Argument(bool),
}

/// Reads the piece of a text at a byte; returns it and the first byte behind it.
pub(crate) const fn piece(text: &[u8], at: usize) -> (Piece, usize) {
    match text.split_at(at).1 {
        [b'{', b'{', ..] => (Piece::Byte(b'{'), at + 2),
        [b'}', b'}', ..] => (Piece::Byte(b'}'), at + 2),
        [b'{', b'}', ..] => (Piece::Argument(false), at + 2),
        [b'{', b':', b'x', b'}', ..] => (Piece::Argument(true), at + 4),
        [b'{' | b'}', ..] => panic!("{}", BRACES),
        [byte, ..] => (Piece::Byte(*byte), at + 1),
        [] => panic!("the text has ended"),
    }
}

const BRACES: &str = "the braces in a text of `print!` are `{}`, `{:x}`, `{{` and `}}`";
const NOT_UNSIGNED: &str = "`{:x}` is for unsigned integers";

/// The longest format of the C function `vprintf`, with its final zero.
const MAX_FORMAT: usize = 512;

/// Returns the text as a format of the C function `vprintf`, which the driver offers to kernels.
pub(crate) const fn c_format(text: &str, forms: &[Form]) -> [u8; MAX_FORMAT] {
    let text = text.as_bytes();
    let mut format = [0; MAX_FORMAT];
    let (mut at, mut len, mut argument) = (0, 0, 0);
    while at < text.len() {
        let (piece, next) = piece(text, at);
        at = next;
        let byte;
        let written: &[u8] = match piece {
            Piece::Byte(b'%') => b"%%",
            Piece::Byte(other) => {
                byte = [other];
                &byte
            }
            Piece::Argument(hexadecimal) => {
                assert!(argument < forms.len(), "`print!` has fewer arguments than its text has braces");
                argument += 1;
                match forms[argument - 1] {
                    Form::Unsigned if hexadecimal => b"%llx",
                    _ if hexadecimal => panic!("{}", NOT_UNSIGNED),
                    Form::Unsigned => b"%llu",
                    Form::Signed => b"%lld",
                    // As many digits as distinguish all values.
                    Form::Float32 => b"%.9g",
                    Form::Float64 => b"%.17g",
                }
            }
        };
        let mut i = 0;
        while i < written.len() {
            assert!(len < MAX_FORMAT - 1, "the text of `print!` is too long");
            format[len] = written[i];
            len += 1;
            i += 1;
        }
    }
    assert!(argument == forms.len(), "`print!` has more arguments than its text has braces");
    format
}

/// Prints a text with its arguments; implements [`print!`](crate::print).
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn print<T: Text, A: Arguments>(arguments: A) {
    // Also checks the text where no C format is needed.
    let format = const { &c_format(T::TEXT, A::FORMS) };
    sys::print(format, T::TEXT, A::FORMS, arguments.words())
}

/// Prints to standard output from a kernel: `print!("{} of {:x}\n", i, bits)`, see [`io`](crate::io).
#[macro_export]
macro_rules! print {
    ($text:expr $(, $argument:expr)* $(,)?) => {{
        struct Text;
        impl $crate::io::Text for Text {
            const TEXT: &'static str = $text;
        }
        $crate::io::print::<Text, _>(($($argument,)*))
    }};
}

/// Prints a line to standard output from a kernel, see [`io`](crate::io).
#[macro_export]
macro_rules! println {
    ($text:literal $(, $argument:expr)* $(,)?) => {
        $crate::print!(concat!($text, "\n") $(, $argument)*)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_the_c_function() {
        let format = |text: &str, forms: &[Form]| {
            let bytes = c_format(text, forms);
            std::ffi::CStr::from_bytes_until_nul(&bytes).unwrap().to_str().unwrap().to_owned()
        };
        let all = [Form::Unsigned, Form::Signed, Form::Float32, Form::Float64, Form::Unsigned];
        assert_eq!(format("{} {}, {}\t{} {:x}", &all), "%llu %lld, %.9g\t%.17g %llx");
        assert_eq!(format("100% of {{{}}}", &all[..1]), "100%% of {%llu}");
        for (text, forms) in [("{", 0), ("}", 0), ("{:e}", 1), ("{x}", 1), ("{}", 0), ("", 1), ("{} {:x}", 2)]
        {
            assert!(std::panic::catch_unwind(|| format(text, &all[..forms])).is_err(), "{text}");
        }
        assert!(std::panic::catch_unwind(|| format(&"x".repeat(512), &[])).is_err());
    }
}
