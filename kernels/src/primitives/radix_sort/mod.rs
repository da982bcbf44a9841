//! Least-significant-digit radix sort in one sweep a digit (Adinets, Merrill 2022, "Onesweep"): one pass over the keys
//! counts all digits, then each digit's pass reads every item once and writes it once. Stable.

pub mod histogram;
pub mod onesweep;
