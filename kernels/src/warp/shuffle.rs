//! Shuffles of values of several words between lanes.

use crate::thread::words::{MAX_WORDS, Words};
use cuda_std::prelude::*;

macro_rules! shuffles {
    ($($name:ident $by:ident $what:literal;)*) => { $(
        #[doc = $what]
        ///
        /// # Safety
        /// All lanes call.
        #[inline(always)]
        pub unsafe fn $name<T: Words>(value: T, $by: u32) -> T {
            let own = value.to_words();
            let mut words = [0; MAX_WORDS];
            for word in 0..T::WORDS {
                words[word] = warp::$name(warp::FULL_MASK, own[word], $by);
            }
            T::from_words(words)
        }
    )* };
}
shuffles! {
    shuffle_idx lane "Returns the value of lane `lane`.";
    shuffle_up delta "Returns the value of the lane `delta` below, or the caller's own value if there is none.";
    shuffle_xor bits "Returns the value of the lane whose index differs in `bits`.";
}
