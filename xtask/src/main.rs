//! kauri's tasks: `cargo xtask <task>`, one file each. Functions that users need, too, are in `host`.

mod assemble;
mod bench;
mod budget;
mod bundle;
mod cargo;
mod compare;
mod consumer;
mod coverage;
mod cuda_crates;
mod demo;
mod doctor;
mod mutants;
mod new_kernel;
mod outside;
mod pack;
mod package;
mod parallel;
mod ptx;
mod schedules;
mod setup;
mod sim;
mod test;
mod tidy;
mod workspace;

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "kauri's tasks")]
enum Task {
    Setup(setup::Setup),
    Ptx(ptx::Ptx),
    Test(test::Test),
    Demo(demo::Demo),
    Bench(bench::Bench),
    Compare(Box<compare::Compare>),
    Doctor(doctor::Doctor),
    Tidy(tidy::Tidy),
    Bundle(bundle::Bundle),
    Package(package::Package),
    Install(package::Install),
    Sim(sim::Sim),
    Mutants(mutants::Mutants),
    Coverage(coverage::Coverage),
    NewKernel(new_kernel::NewKernel),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Setup(task) => task.run(),
        Task::Ptx(task) => task.run(),
        Task::Test(task) => task.run(),
        Task::Demo(task) => task.run(),
        Task::Bench(task) => task.run(),
        Task::Compare(task) => task.run(),
        Task::Doctor(task) => task.run(),
        Task::Tidy(task) => task.run(),
        Task::Bundle(task) => task.run(),
        Task::Package(task) => task.run(),
        Task::Install(task) => task.run(),
        Task::Sim(task) => task.run(),
        Task::Mutants(task) => task.run(),
        Task::Coverage(task) => task.run(),
        Task::NewKernel(task) => task.run(),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    // A failed program has printed the reason; the task ends with its exit code.
    if let Some(cargo::Failed(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
