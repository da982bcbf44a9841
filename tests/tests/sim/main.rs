//! Every kernel of the project in the simulator, under the standard schedules: results are right, and the simulator
//! reports no error. `SIM_SEED` and `SIM_ORDER`, as printed in a report, replay a schedule.

mod balanced;
mod balanced_multi_gpu;
mod boxes;
mod boxes_top_k;
mod building_blocks;
mod bvh;
mod demo;
mod ground;
mod join;
mod kdtree;
mod kdtree_batches;
mod kdtree_within;
mod merge;
mod moves;
mod partition;
mod quadtree;
mod query;
mod radix_sort;
mod render;
mod rtree;
mod sah;
mod scan;
mod search;
mod segmented;
mod segmented_sort;
mod select;
mod several_devices;
mod spline;
mod terrain;
mod top_k;

use kauri_test::{bits, noise, on_each_schedule, on_each_schedule_in_turn, uninitialized, upload};
