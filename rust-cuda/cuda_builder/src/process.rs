//! Runs other programs with captured output and a time limit.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{CudaBuilderError, Result};

/// Output of a program, and whether it succeeded.
pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end, or kills it after `limit`.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Output> {
    let line = describe(command);
    let fail = |reason: String| CudaBuilderError::Command { command: line.clone(), reason };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fail(error.to_string()))?;
    // Both pipes are drained while waiting, because a full pipe would block the program forever.
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let success = wait(&mut child, limit).map_err(|error| fail(error.to_string()))?;
    let Some(success) = success else {
        return Err(fail(format!("not done after {} s", limit.as_secs())));
    };
    Ok(Output {
        success,
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    })
}

/// Like [`run`]; a failing exit status is an error that ends with the program's last lines.
pub(crate) fn run_ok(command: &mut Command, limit: Duration) -> Result<Output> {
    let output = run(command, limit)?;
    if output.success {
        return Ok(output);
    }
    let text = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    Err(CudaBuilderError::Command { command: describe(command), reason: last_lines(text, 5) })
}

/// Returns the command line, for messages.
pub(crate) fn describe(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A read error truncates the text; the exit status still tells success.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// `None` if the program had to be killed.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<bool>> {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn captures_both_streams() {
        let output =
            run_ok(Command::new("sh").args(["-c", "echo out; echo err >&2"]), Duration::from_secs(10));
        let output = output.unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn a_failure_quotes_the_program() {
        let error = run_ok(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), Duration::from_secs(10));
        assert!(error.err().unwrap().to_string().ends_with("failed: why"));
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let begin = Instant::now();
        let error = run(Command::new("sleep").arg("30"), Duration::from_millis(100)).err().unwrap();
        assert!(error.to_string().contains("not done"));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}
