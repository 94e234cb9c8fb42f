//! The lock of this machine: one run measures at a time.
//!
//! It is a `flock` on a file of the user's, so it ends with the process that holds it. The front
//! takes the same lock on its own machine (`machine/lock.py`). The file names the holder's run and
//! what it does: engines of one run do not wait for each other.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::getuid;

use crate::failure::{Failure, refused};
use crate::lines::emit;
use crate::protocol::{FromEngine, ToEngine};
use crate::role;

/// A holder that has just taken the lock has written its name by then.
const WRITTEN: Duration = Duration::from_millis(20);

/// Holds the lock while the front wants it, and does nothing else.
#[derive(Debug, Default)]
pub(crate) struct Role {
    held: Option<File>,
}

impl Role {
    /// Takes the lock for a run. If another run has it, returns what that run does.
    fn take(&mut self, token: &str, what: &str) -> Option<String> {
        if self.held.is_some() {
            return None;
        }
        // Where there can be no file, nobody can be waited for.
        let path = path()?;
        let file = open(&path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let text = format!("{token}\n{what}\n");
            let _ = file.set_len(0).and_then(|()| file.write_all_at(text.as_bytes(), 0));
            self.held = Some(file);
            return None;
        }
        thread::sleep(WRITTEN);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let (holder, what) = text.split_once('\n').unwrap_or_default();
        (holder != token).then(|| what.trim().to_owned())
    }
}

impl role::Role for Role {
    fn handle_message(&mut self, message: ToEngine) -> Result<(), Failure> {
        let ToEngine::Lock { token, what, hold } = message else {
            return refused("an engine that holds the lock does nothing else");
        };
        let by = if hold { self.take(&token, &what) } else { None };
        if !hold {
            self.held = None;
        }
        Ok(emit(&FromEngine::Lock { by })?)
    }

    fn handle_event(&mut self, _: role::Event) -> Result<(), Failure> {
        Ok(())
    }

    fn stop(&mut self) {}

    fn ended(&self) -> bool {
        true
    }

    fn idle(&self) -> bool {
        true
    }
}

/// The file of the lock: in the user's folder of this boot, else of the state of programs.
fn path() -> Option<PathBuf> {
    let of_user = || format!("/run/user/{}", getuid().as_raw()).into();
    let runtime = PathBuf::from(env::var_os("XDG_RUNTIME_DIR").unwrap_or_else(of_user));
    if runtime.is_dir() {
        return Some(runtime.join("trueload.lock"));
    }
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".local/state"));
    let folder = env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home)?.join("trueload");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    // Homes may be shared by several machines.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(folder.join(format!("{}.lock", host.trim())))
}

fn open(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path).ok()
}
