//! Stable least-significant-digit radix sort with one sweep per digit (Adinets, Merrill 2022, *Onesweep*): one pass
//! over the keys counts all digits, then the pass of each digit reads and writes every item once.

pub mod histogram;
pub mod onesweep;
